"""Wait-k on encoder frames: the target stays k source intervals behind."""

from espnet_ext.policy.context import Context


class WaitK:
    """Stable are at most `frames // interval - k` tokens."""

    def __init__(self, k: int, interval: int) -> None:
        self.k = k
        self.interval = interval

    def reset(self) -> None:
        """Nothing to forget."""

    def stable_length(self, context: Context) -> int:
        """Number of leading candidate tokens to commit."""
        return max(0, min(len(context.tokens), context.frames // self.interval - self.k))
