"""Audio history by attention (StreamAtt paper, section 3.2): what the retained text was translated from."""

from collections.abc import Sequence


class Attention:
    """Keeps the audio from the earliest frame that a retained token attends to most."""

    def first_frame(self, retained: Sequence[int], last: int | None, frames: int) -> int:
        """The first of `frames` frames that stays.

        Args:
            retained: attention peaks of the tokens that stay.
            last: peak of the last token put out, where the audio begins when no token stays; None before the first.
        """
        return min(retained, default=last or 0)
