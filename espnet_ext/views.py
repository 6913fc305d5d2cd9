"""How a growing translation is shown: on a terminal, as plain lines, as JSON, as subtitles."""

import json
import logging
import os
import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from espnet_ext.log.clocks import finish_times
from espnet_ext.log.units import uses_characters
from espnet_ext.subtitles import Cue, CueMaker, ends_sentence, wrap

if TYPE_CHECKING:
    from espnet_ext.session import SimulSession, Update


class View(Protocol):
    """Shows one stream after another."""

    def update(self, session: "SimulSession", update: "Update") -> None:
        """Show what a step has changed."""

    def end(self) -> None:
        """The stream is over, or was broken off."""


class LogLines(logging.Handler):
    """Log lines on standard error, wherever that is at the time; `text` makes way for them."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
        self.text: PlainLines | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        if self.text is not None:
            self.text.make_way()
        print(self.format(record), file=sys.stderr, flush=True)


def joiner(session: "SimulSession") -> str:
    """What stands between two units of the target language."""
    return "" if uses_characters(session.config.tgt_lang) else " "


class PlainLines:
    """What is released and nothing else, as soon as it is, a sentence a line."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self.inside = False

    def update(self, session: "SimulSession", update: "Update") -> None:
        """Write the new words."""
        for unit in update.units:
            self.stream.write(joiner(session) * self.inside + unit)
            self.inside = not ends_sentence(unit)
            if not self.inside:
                self.stream.write("\n")
        self.stream.flush()

    def make_way(self) -> None:
        """End the line if standard error goes where the text does: something is going to be written there."""
        if _are_one(self.stream, sys.stderr):
            self.end()

    def end(self) -> None:
        """End the line."""
        self.stream.write("\n" * self.inside)
        self.stream.flush()
        self.inside = False


def _are_one(one: IO[str], other: IO[str]) -> bool:
    """Whether two streams are the same file, pipe or terminal."""
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (AttributeError, OSError):  # no stream, or one of Python's own
        return False


class TerminalLines:
    """The same on a terminal, and after it, dim and redrawn in place, the unstable rest of the best hypothesis.

    Lines that can no longer change scroll away as any output does; only the last one and the rest are redrawn.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live: Live | None = None
        self.line = ""

    def update(self, session: "SimulSession", update: "Update") -> None:
        """Redraw where something has changed."""
        if self.live is None:
            self.live = Live(
                console=self.console, auto_refresh=False, transient=True, redirect_stderr=sys.stderr.isatty()
            )
            self.live.start()
        for unit in update.units:
            self.line += joiner(session) * bool(self.line) + unit
            *full, self.line = wrap(self.line, self.console.width)
            if ends_sentence(unit):
                full, self.line = [*full, self.line], ""
            for line in full:
                self._print(line)
        rest = joiner(session) * bool(self.line) + update.unstable if update.unstable else ""
        shown = Text.assemble((self.line, "bold"), (rest, "dim")).wrap(self.console, self.console.width)
        self.live.update(Group(*shown[-(self.console.height - 1) :]), refresh=True)  # its end where it does not fit

    def end(self) -> None:
        """Leave what was released, without the rest."""
        if self.live is not None:
            if self.line:
                self._print(self.line)
            self.live.update("", refresh=True)
            self.live.stop()
        self.live, self.line = None, ""

    def _print(self, line: str) -> None:
        self.console.print(Text(line, style="bold"))


class JsonLines:
    """A JSON object a step: `text` (new words), `unstable`, `delay_ms`, `elapsed_ms`, `final`, and the `source`."""

    def __init__(self, stream: IO[str], source: str) -> None:
        self.stream = stream
        self.source = source
        self.steps = 0

    def update(self, session: "SimulSession", update: "Update") -> None:
        """Write a line where a step is complete."""
        if len(session.steps) == self.steps:
            return
        self.steps = len(session.steps)
        line = {
            "source": self.source,
            "text": update.text,
            "unstable": update.unstable,
            "delay_ms": update.delay_ms,
            "elapsed_ms": finish_times(session.steps)[-1],
            "final": update.final,
        }
        self.stream.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.stream.flush()

    def end(self) -> None:
        """Nothing to end."""


class Subtitles:
    """SubRip cues, each as soon as it is complete."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream
        self.maker: CueMaker | None = None
        self.number = 0

    def update(self, session: "SimulSession", update: "Update") -> None:
        """Write the cues that the new words complete."""
        self.maker = self.maker or CueMaker(joiner(session))
        self._write(self.maker.add(update.units, update.delays))

    def end(self) -> None:
        """Write the last cue."""
        if self.maker is not None:
            self._write(self.maker.finish())

    def _write(self, cues: Iterable[Cue]) -> None:
        for cue in cues:
            self.number += 1
            self.stream.write(cue.srt(self.number))
        self.stream.flush()
