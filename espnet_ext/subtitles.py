"""SubRip subtitles of a translation: cues from words and the times at which they were released."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import batched

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

LINE_WIDTH = 42  # characters; wide ones count two
LINES = 2
SHORTEST_S, LONGEST_S = 1.0, 7.0
CHARACTERS_PER_S = 20.0
SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？")
CLOSING = "\"'”’»«“)]"


@dataclass(frozen=True)
class Cue:
    """Lines on the screen from `start` to `end`, in seconds."""

    start: float
    end: float
    lines: tuple[str, ...]

    def srt(self, number: int) -> str:
        """The cue as an entry of an .srt file."""
        return "\n".join([str(number), f"{_time(self.start)} --> {_time(self.end)}", *self.lines, "", ""])


def ends_sentence(unit: str) -> bool:
    """Whether a sentence ends with this word or character."""
    return unit.rstrip(CLOSING).endswith(SENTENCE_ENDS)


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` terminal cells, filled from the first; words longer than that are cut."""
    return [line.plain.rstrip() for line in Text(text).wrap(_CONSOLE, width)]


_CONSOLE = Console()


class CueMaker:
    """Gathers released words into cues that are no longer than two lines, never overlap and can be read in time.

    A cue ends with a sentence, when its lines are full, or after `LONGEST_S`. It is shown from the release of its first
    word, or from the end of the cue before, until its last word is out and its text can have been read.
    """

    def __init__(self, joiner: str) -> None:
        self.joiner = joiner
        self.words: list[str] = []
        self.times: list[float] = []
        self.free = 0.0  # when the screen is

    def add(self, words: Iterable[str], delays_ms: Iterable[float]) -> Iterator[Cue]:
        """Take words with their delays; gives the cues that they complete."""
        for word, delay_ms in zip(words, delays_ms, strict=True):
            time = delay_ms / 1000
            if self.words and (len(self._wrapped([*self.words, word])) > LINES or time - self.times[0] > LONGEST_S):
                yield from self.finish()
            self.words.append(word)
            self.times.append(time)
            if ends_sentence(word):
                yield from self.finish()

    def finish(self) -> Iterator[Cue]:
        """The cue of what is left."""
        if not self.words:
            return
        first, last = self.times[0], self.times[-1]
        # More than one cue only of a single word that does not fit.
        for lines in batched(self._wrapped(self.words), LINES):
            start = max(first, self.free)
            reading = max(SHORTEST_S, sum(map(cell_len, lines)) / CHARACTERS_PER_S)
            self.free = max(start + reading, last)
            yield Cue(start, self.free, lines)
        self.words, self.times = [], []

    def _wrapped(self, words: Sequence[str]) -> list[str]:
        return wrap(self.joiner.join(words), LINE_WIDTH)


def _time(seconds: float) -> str:
    ms = round(1000 * seconds)
    return f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02},{ms % 1000:03}"
