"""Audio history of a fixed duration, the naive baseline of the StreamAtt paper."""

from collections.abc import Sequence

WORD_MS = 280  # what the paper allows a word


class FixedDuration:
    """Keeps the last `count` frames, whatever was translated from them."""

    def __init__(self, count: int) -> None:
        self.count = count

    def first_frame(self, retained: Sequence[int], last: int | None, frames: int) -> int:
        """The first of `frames` frames that stays."""
        return max(0, frames - self.count)
