"""What of the past an endless translation keeps: text and audio together, within bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class TextHistory(Protocol):
    """Chooses the words that stay."""

    def kept(self, words: Sequence[str]) -> int:
        """How many words, counted from the end, stay."""


class AudioHistory(Protocol):
    """Chooses the encoder frames that stay."""

    def first_frame(self, retained: Sequence[int], last: int | None, frames: int) -> int:
        """The first of `frames` frames that stays, given the attention peaks of the tokens that do."""


@dataclass(frozen=True)
class Word:
    """A word of the history: its text, and the encoder frame that each of its tokens attends to most."""

    text: str
    peaks: tuple[int, ...]


@dataclass(frozen=True)
class Trim:
    """What leaves the history: tokens and encoder frames from its beginning; `capped` when the bound on audio bit."""

    tokens: int
    frames: int
    capped: bool


class History:
    """The history of one stream.

    Args:
        text, audio: what stays.
        text_cap: tokens that the text may have.
        most_frames: encoder frames that may stay.
        least_frames: frames that stay in any case, as a block encoder has no memory of fewer.
    """

    def __init__(
        self, text: TextHistory, audio: AudioHistory, text_cap: int, most_frames: int, least_frames: int = 0
    ) -> None:
        self.text = text
        self.audio = audio
        self.text_cap = text_cap
        self.most_frames = most_frames
        self.least_frames = least_frames

    def trim(self, words: Sequence[Word], frames: int) -> Trim:
        """What leaves, of the words retained so far over `frames` frames of retained audio."""
        kept = list(words[len(words) - self.text.kept([word.text for word in words]) :])
        while sum(len(word.peaks) for word in kept) > self.text_cap:
            del kept[0]
        retained = [peak for word in kept for peak in word.peaks]
        last = words[-1].peaks[-1] if words else None
        wanted = min(self.audio.first_frame(retained, last, frames), max(0, frames - self.least_frames))
        first = max(wanted, frames - self.most_frames)
        if first > wanted:
            while kept and min(kept[0].peaks) < first:
                del kept[0]
        gone = words[: len(words) - len(kept)]
        return Trim(sum(len(word.peaks) for word in gone), first, first > wanted)
