"""A talk: its sentences with pauses in one recording, and the segments the recording is cut into."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from random import Random

import numpy as np

from mini_corpus.grammar import Piece, words
from mini_corpus.synthesis import SAMPLE_RATE, Voice, applause, laughter, synthesise

VOICES = (Voice("en-us", 154), Voice("en-us+f2", 151), Voice("en-us+m3", 157))
NOISES = {
    applause: words("(Applause)", "(Applaus)", "(Aplausos)", "(Applaudissements)"),
    laughter: words("(Laughter)", "(Gelächter)", "(Risas)", "(Rires)"),
}
SHORTEST, LONGEST = 2.0, 15.0  # seconds of a segment
TAIL = (0.2, 0.4)  # seconds of a segment after its last word
ROOM_NOISE = np.float32(10 ** (-66 / 20))


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


class Tape:
    """A recording as it grows."""

    def __init__(self) -> None:
        self.parts: list[np.ndarray] = []
        self.position = 0  # in samples

    def silence(self, seconds: float) -> None:
        self._append(np.zeros(int(seconds * SAMPLE_RATE), np.float32))

    def sound(self, samples: np.ndarray, text: Piece, noise: bool = False) -> Unit:
        start = self.position
        self._append(samples)
        return Unit(text, start / SAMPLE_RATE, self.position / SAMPLE_RATE, noise)

    def _append(self, samples: np.ndarray) -> None:
        self.parts.append(samples)
        self.position += len(samples)


def record(talk: Talk) -> tuple[np.ndarray, list[list[Unit]]]:
    """The talk's int16 samples at 16 kHz, and the units of each sentence or noise."""
    rng = Random(f"{talk.seed} record {talk.number}")
    generator = np.random.default_rng(rng.getrandbits(64))
    voice = VOICES[talk.number % len(VOICES)]
    level = 10 ** (rng.uniform(-25, -21) / 20)
    tape = Tape()
    groups: list[list[Unit]] = []
    tape.silence(rng.uniform(0.5, 2.0))
    for pieces in talk.sentences:
        groups.append(_say(pieces, voice, level, tape, rng))
        tape.silence(rng.uniform(0.4, 1.0))
        if rng.random() < 0.05:
            noise = rng.choice(list(NOISES))
            groups.append([tape.sound(noise(rng.uniform(2.0, 3.5), generator), NOISES[noise], noise=True)])
            tape.silence(rng.uniform(0.4, 1.0))
    tape.silence(rng.uniform(0.5, 1.5))
    samples = np.concatenate(tape.parts)
    samples += generator.standard_normal(len(samples), np.float32) * ROOM_NOISE
    return np.round(np.clip(samples, -1, 1) * 32767).astype(np.int16), groups


def _say(pieces: Sequence[Piece], voice: Voice, level: float, tape: Tape, rng: Random) -> list[Unit]:
    """Speak the pieces of a sentence at the root mean square `level`, with short pauses between them."""
    units = []
    pause = 0.0
    for piece in pieces:
        tape.silence(pause)
        at_mark = piece["en"][-1] in ".,;:?"
        # a comma keeps the synthesiser from lowering its voice inside a sentence
        samples = synthesise(piece["en"] if at_mark else piece["en"] + ",", voice)
        gain = min(level / np.sqrt(np.mean(samples**2)), 0.9 / np.abs(samples).max())
        units.append(tape.sound(samples * gain, piece))
        pause = rng.uniform(0.25, 0.4) if at_mark else rng.uniform(0.08, 0.16)
    return units


def segments(talk: Talk, groups: Sequence[Sequence[Unit]]) -> list[Segment]:
    """The lines of the corpus, in order: most are one sentence.

    In train a third hold several sentences or begin or end inside one; in the other sets a few hold two. A noise is the
    end of a sentence's line, in train also a line of its own or between two sentences.
    """
    rng = Random(f"{talk.seed} segments {talk.number}")
    lines: list[list[Unit]] = []
    index = 0
    while index < len(groups):
        taken, cut = _cut(rng, groups[index : index + 3], talk.train)
        lines.extend(cut)
        index += taken
    starts = [line[0].start for line in lines[1:]]
    return [_segment(line, start, rng) for line, start in zip(lines, [*starts, inf], strict=True)]


def _cut(rng: Random, groups: Sequence[Sequence[Unit]], train: bool) -> tuple[int, list[list[Unit]]]:
    """How many of the next three groups are used, and the lines they make."""
    first, second, third = (list(groups[i]) if i < len(groups) else [] for i in range(3))
    draw = rng.random()
    if first[0].noise:
        return 1, [first]
    if third and third[0].noise:
        return 1, [first]
    taken, lines = 1, [first]
    if second and second[0].noise:
        taken = 2 if not train else 1 if draw < 0.4 else 2 if draw < 0.7 or not third else 3
        lines = [[unit for group in (first, second, third)[:taken] for unit in group]]
    elif not train:
        if draw < 0.06:
            taken, lines = 2, [first + second]
    elif draw < 0.12:
        taken, lines = 3, [first + second + third]
    elif draw < 0.29:
        taken, lines = 2, [first + second]
    elif draw < 0.35:
        taken, lines = 1, [first[:1], first[1:]]
    elif draw < 0.41:
        taken, lines = 2, [first[:1], first[1:] + second]
    elif draw < 0.47:
        taken, lines = 2, [first + second[:-1], second[-1:]]
    fits = all(line and SHORTEST <= line[-1].end - line[0].start <= LONGEST - TAIL[1] - 0.05 for line in lines)
    return (taken, lines) if taken <= len(groups) and fits else (1, [first])


def _segment(units: Sequence[Unit], next_start: float, rng: Random) -> Segment:
    """A line from just before its first unit to a while after its last, on MuST-C's grid of 10 ms."""
    end = units[-1].end
    start = int(round((units[0].start - 0.04) * 100))
    end = int(round((end + min(rng.uniform(*TAIL), next_start - end - 0.04)) * 100))
    text = {language: " ".join(unit.text[language] for unit in units) for language in units[0].text}
    spoken = sum(len(unit.text["en"].split()) for unit in units if not unit.noise)
    return Segment(start / 100, (end - start) / 100, text, spoken)
