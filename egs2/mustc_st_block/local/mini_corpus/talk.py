"""A talk: its sentences with pauses in one recording, and the segments the recording is cut into."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from mini_corpus.grammar import Piece, words
from mini_corpus.synthesis import SAMPLE_RATE, Voice, applause, laughter, synthesise

VOICES = ("en-us", "en-us+f2", "en", "en-us+m3", "en+f2", "en-us+Mario")
EVENTS = {
    applause: words("(Applause)", "(Applaus)", "(Aplausos)", "(Applaudissements)"),
    laughter: words("(Laughter)", "(Gelächter)", "(Risas)", "(Rires)"),
}
SHORTEST, LONGEST = 2.0, 15.0  # seconds of a segment


@dataclass(frozen=True)
class Talk:
    """What a talk says. `number` names its wav and its speaker; `train` talks are cut in MuST-C's irregular ways."""

    split: str
    number: int
    sentences: tuple[list[Piece], ...]
    seed: str

    @property
    def train(self) -> bool:
        return self.split == "train"


@dataclass(frozen=True)
class Unit:
    """A piece of a sentence, or a noise, in the recording. Times in seconds."""

    text: Piece
    start: float
    end: float
    noise: bool = False


@dataclass(frozen=True)
class Segment:
    """One line of the corpus. Times in seconds; words are those of the English text."""

    offset: float
    duration: float
    text: Piece
    words: int
    whole: bool


def record(talk: Talk) -> tuple[np.ndarray, list[list[Unit]]]:
    """The talk's int16 samples at 16 kHz, and the units of each sentence or noise."""
    rng = Random(f"{talk.seed} record {talk.number}")
    generator = np.random.default_rng(rng.getrandbits(64))
    voice = Voice(VOICES[talk.number % len(VOICES)], rng.randint(160, 174))
    parts: list[np.ndarray] = []
    groups: list[list[Unit]] = []
    position = 0

    def silence(seconds: float) -> None:
        nonlocal position
        parts.append(np.zeros(int(seconds * SAMPLE_RATE), np.float32))
        position += len(parts[-1])

    def sound(samples: np.ndarray, text: Piece, noise: bool = False) -> Unit:
        nonlocal position
        parts.append(samples)
        start, position = position, position + len(samples)
        return Unit(text, start / SAMPLE_RATE, position / SAMPLE_RATE, noise)

    level = 10 ** (rng.uniform(-25, -21) / 20)
    silence(rng.uniform(0.5, 2.0))
    for pieces in talk.sentences:
        units = []
        for index, piece in enumerate(pieces):
            if index:
                silence(rng.uniform(0.25, 0.4) if pieces[index - 1]["en"][-1] in ",;:" else rng.uniform(0.08, 0.16))
            # a comma keeps the synthesiser from lowering its voice inside a sentence
            text = piece["en"] if piece["en"][-1] in ".,;:?" else piece["en"] + ","
            samples = synthesise(text, voice)
            gain = min(level / np.sqrt(np.mean(samples**2)), 0.9 / np.abs(samples).max())
            units.append(sound(samples * gain, piece))
        groups.append(units)
        silence(rng.uniform(0.4, 1.0))
        if rng.random() < 0.05:
            noise = rng.choice(list(EVENTS))
            groups.append([sound(noise(rng.uniform(2.0, 3.5), generator), EVENTS[noise], noise=True)])
            silence(rng.uniform(0.4, 1.0))
    silence(rng.uniform(0.5, 1.5))
    samples = np.concatenate(parts)
    samples += generator.standard_normal(len(samples), np.float32) * np.float32(10 ** (-66 / 20))
    return np.round(np.clip(samples, -1, 1) * 32767).astype(np.int16), groups


def segments(talk: Talk, groups: Sequence[Sequence[Unit]]) -> list[Segment]:
    """The lines of the corpus, in order: most are one sentence.

    In train a third hold several sentences or begin or end inside one; in the other sets a few hold two. A noise is a
    line of its own in train, or the end of a sentence's line.
    """
    rng = Random(f"{talk.seed} segments {talk.number}")
    lines: list[list[Unit]] = []
    index = 0
    while index < len(groups):
        taken, cut = _cut(rng, groups[index : index + 3], talk.train)
        lines.extend(cut)
        index += taken
    whole = {id(group[0]): group[-1] for group in groups}
    return [_segment(line, whole.get(id(line[0])) is line[-1]) for line in lines]


def _cut(rng: Random, groups: Sequence[Sequence[Unit]], train: bool) -> tuple[int, list[list[Unit]]]:
    """How many of the next three groups are used, and the lines they make."""
    first, second, third = (list(groups[i]) if i < len(groups) else [] for i in range(3))
    draw = rng.random()
    if first[0].noise:
        return 1, [first]
    if second and second[0].noise:
        return (2, [first + second]) if not train or draw < 0.5 else (1, [first])
    if third and third[0].noise:
        return 1, [first]
    taken, lines = 1, [first]
    if not train:
        if draw < 0.06:
            taken, lines = 2, [first + second]
    elif draw < 0.11:
        taken, lines = 3, [first + second + third]
    elif draw < 0.27:
        taken, lines = 2, [first + second]
    elif draw < 0.32:
        taken, lines = 1, [first[:1], first[1:]]
    elif draw < 0.37:
        taken, lines = 2, [first[:1], first[1:] + second]
    elif draw < 0.42:
        taken, lines = 2, [first + second[:-1], second[-1:]]
    fits = all(line and SHORTEST <= line[-1].end - line[0].start <= LONGEST - 0.1 for line in lines)
    return (taken, lines) if taken <= len(groups) and fits else (1, [first])


def _segment(units: Sequence[Unit], whole: bool) -> Segment:
    """A line from just before its first unit to just after its last, on MuST-C's grid of 10 ms."""
    start = int(round((units[0].start - 0.04) * 100))
    end = int(round((units[-1].end + 0.04) * 100))
    text = {language: " ".join(unit.text[language] for unit in units) for language in units[0].text}
    spoken = sum(len(unit.text["en"].split()) for unit in units if not unit.noise)
    return Segment(start / 100, (end - start) / 100, text, spoken, whole)
