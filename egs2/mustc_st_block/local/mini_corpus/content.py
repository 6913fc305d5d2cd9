"""Which sentences the talks of the four sets say, no sentence of a test set near one of train."""

from collections.abc import Iterable
from random import Random

from mini_corpus.grammar import Piece, Sampler
from mini_corpus.talk import Talk

SENTENCES_PER_TALK = {"train": 24, "dev": 9, "tst-COMMON": 9, "tst-HE": 9}
FIRST_NUMBER = {"train": 1, "dev": 1001, "tst-COMMON": 2001, "tst-HE": 3001}
SECONDS_PER_CHARACTER = 0.0672  # of English text, at the synthesiser's rate
WORDS = range(13, 27)  # of a sentence in English: about 4 to 10 s


class Neighbourhood:
    """Sentences that can be asked whether one of them is within one word of another sentence.

    Two word sequences are within one substitution when they agree with the same word masked, and within one insertion
    when the shorter is the longer with one word left out.
    """

    def __init__(self, sentences: Iterable[str] = ()) -> None:
        self._whole: set[tuple[str, ...]] = set()
        self._masked: set[tuple[str, ...]] = set()
        self._shortened: set[tuple[str, ...]] = set()
        for sentence in sentences:
            self.add(sentence)

    def add(self, sentence: str) -> None:
        words = tuple(sentence.split())
        self._whole.add(words)
        for masked, shortened in self._variants(words):
            self._masked.add(masked)
            self._shortened.add(shortened)

    def __contains__(self, sentence: str) -> bool:
        return tuple(sentence.split()) in self._whole

    def near(self, sentence: str) -> bool:
        """Whether a sentence added is this one or differs from it by one word."""
        words = tuple(sentence.split())
        if words in self._whole or words in self._shortened:
            return True
        return any(masked in self._masked or shortened in self._whole for masked, shortened in self._variants(words))

    @staticmethod
    def _variants(words: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], tuple[str, ...]]]:
        for i in range(len(words)):
            yield (*words[:i], "", *words[i + 1 :]), (*words[:i], *words[i + 1 :])


def english(sentence: list[Piece]) -> str:
    return " ".join(piece["en"] for piece in sentence)


def plan(seed: int, hours: float, test_talks: int) -> list[Talk]:
    """All talks: test sets first, then talks of train until about `hours` are said.

    A test set does not change with `hours`.
    """
    talks = []
    held_out = Neighbourhood()
    for split in ("dev", "tst-COMMON", "tst-HE"):
        sampler = Sampler(Random(f"{seed} {split}"))
        for number in range(test_talks if split != "tst-HE" else max(test_talks // 4, 1)):
            talks.append(_talk(split, number, sampler, seed, held_out))
            for sentence in talks[-1].sentences:
                held_out.add(english(sentence))
    sampler = Sampler(Random(f"{seed} train"))
    train: list[Talk] = []
    seconds = 0.0
    while seconds < 3600 * hours:
        train.append(_talk("train", len(train), sampler, seed, held_out))
        seconds += SECONDS_PER_CHARACTER * sum(len(english(sentence)) for sentence in train[-1].sentences)
    return train + talks


def _talk(split: str, number: int, sampler: Sampler, seed: int, held_out: Neighbourhood) -> Talk:
    sentences: list[list[Piece]] = []
    while len(sentences) < SENTENCES_PER_TALK[split]:
        sentence = sampler.sentence()
        text = english(sentence)
        if len(text.split()) in WORDS and not held_out.near(text):
            sentences.append(sentence)
    return Talk(split, FIRST_NUMBER[split] + number, tuple(sentences), f"{seed} {split}")
