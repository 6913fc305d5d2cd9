"""Hold-n (IBWBS paper, section 2.3): the last n tokens of the candidate are withheld."""

from collections.abc import Sequence


class HoldN:
    """Stable is the candidate without its last `hold_n` tokens."""

    def __init__(self, hold_n: int) -> None:
        self.hold_n = hold_n

    def reset(self) -> None:
        """Nothing to forget."""

    def stable_length(self, tokens: Sequence[int]) -> int:
        """Number of leading candidate tokens to commit."""
        return max(0, len(tokens) - self.hold_n)
