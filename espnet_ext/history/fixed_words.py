"""Text history of a fixed number of words (StreamAtt paper, section 3.2)."""

from collections.abc import Sequence


class FixedWords:
    """Keeps the last `n` words."""

    def __init__(self, n: int) -> None:
        self.n = n

    def kept(self, words: Sequence[str]) -> int:
        """How many words, counted from the end, stay."""
        return min(self.n, len(words))
