"""Whole words only: tokens become text when the word they belong to is complete."""

from collections.abc import Sequence

from espnet_ext.log.units import split_units, uses_characters
from espnet_ext.model.protocol import Vocabulary


class Emitter:
    """Turns the growing committed prefix of one utterance into words, or characters where those are the unit.

    A word is complete when the next one begins or the input ends.
    """

    def __init__(self, vocabulary: Vocabulary, tgt_lang: str) -> None:
        self.vocabulary = vocabulary
        self.tgt_lang = tgt_lang
        self.reset()

    def reset(self) -> None:
        """Start the next utterance."""
        self.released = 0  # tokens

    def release(self, tokens: Sequence[int], final: bool) -> list[str]:
        """The units that are complete now and were not before, given all committed tokens."""
        end = len(tokens) if final or uses_characters(self.tgt_lang) else self._complete(tokens)
        units = self.units(tokens[self.released : end])
        self.released = end
        return units

    def units(self, tokens: Sequence[int]) -> list[str]:
        """Latency units of a token sequence that begins at a word."""
        return split_units(self.vocabulary.text(tokens), self.tgt_lang)

    def _complete(self, tokens: Sequence[int]) -> int:
        """Index of the first token of the last, possibly unfinished, word."""
        for index in range(len(tokens) - 1, self.released, -1):
            if self.vocabulary.starts_word(tokens[index]):
                return index
        return self.released
