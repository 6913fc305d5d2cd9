"""Waiting by CTC: the target stays k tokens behind what greedy CTC finds in the audio so far."""

from espnet_ext.policy.context import Context


class CtcWait:
    """Stable are at most `ctc_length - k` tokens."""

    def __init__(self, k: int) -> None:
        self.k = k

    def reset(self) -> None:
        """Nothing to forget."""

    def stable_length(self, context: Context) -> int:
        """Number of leading candidate tokens to commit."""
        return max(0, min(len(context.tokens), context.ctc_length() - self.k))
