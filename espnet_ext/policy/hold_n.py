"""Hold-n (IBWBS paper, section 2.3): the last n tokens of the candidate are withheld."""

from espnet_ext.policy.context import Context


class HoldN:
    """Stable is the candidate without its last `hold_n` tokens."""

    def __init__(self, hold_n: int) -> None:
        self.hold_n = hold_n

    def reset(self) -> None:
        """Nothing to forget."""

    def stable_length(self, context: Context) -> int:
        """Number of leading candidate tokens to commit."""
        return max(0, len(context.tokens) - self.hold_n)
