"""Kaldi's calling form of job programs, shared by run.py and slurm.py: `[options] [JOB=1:N] LOG COMMAND...`."""

import ctypes
import fcntl
import re
import shlex
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

TAIL_LINES = 15
MARK = "#job "  # begins the lines that a job program adds to a log
PR_SET_PDEATHSIG = 1
OPERATOR = re.compile(r"[|&;<>]+|\d?>>?(&\d)?|[()]")


def die(message: str, code: int = 2) -> NoReturn:
    """Print one line and exit."""
    print(f"error: {' '.join(message.split())}", file=sys.stderr, flush=True)
    sys.exit(code)


@dataclass(frozen=True)
class Call:
    """A parsed command line. `variable` (`JOB`) stands for the job's number in log and command; None without one."""

    options: dict[str, str]
    variable: str | None
    first: int
    last: int
    log: str
    words: list[str]

    @property
    def numbers(self) -> range:
        """The numbers of the jobs."""
        return range(self.first, self.last + 1)

    @property
    def command(self) -> str:
        """The command as text for a shell: words that are its operators (`|`, `>`, `&&`) act, all else is literal."""
        return " ".join(word if OPERATOR.fullmatch(word) else shlex.quote(word) for word in self.words)

    def fill(self, text: str, number: int) -> str:
        """`text` with the job's number in place of the variable."""
        return text.replace(self.variable, str(number)) if self.variable else text

    def log_of(self, number: int) -> Path:
        """The log of one job."""
        return Path(self.fill(self.log, number))

    def title(self, number: int) -> str:
        """How messages name a job."""
        return f"{self.variable}={number}" if self.variable else "the job"


def parse(argv: Sequence[str], usage: str) -> Call:
    """Parse a command line; prints one line and exits with 2 when it is wrong. `--num-threads` is `num_threads`."""
    words = list(argv)
    if not words or words[0] in ("-h", "--help"):
        print(usage)
        sys.exit(0 if words else 2)
    options: dict[str, str] = {}
    variable, first, last = None, 1, 1
    while words:
        if words[0].startswith("--"):
            if len(words) < 2:
                die(f"option {words[0]} needs a value (see --help)")
            options[words[0][2:].replace("-", "_")] = words[1]
            del words[:2]
        elif found := re.fullmatch(r"([A-Za-z_]\w*)=(\d+)(?::(\d+))?", words[0]):
            variable, first, last = found[1], int(found[2]), int(found[3] or found[2])
            if not 1 <= first <= last:
                die(f"{words[0]}: numbers go from 1 or more upwards, for example {variable}=1:4")
            del words[0]
        else:
            break
    if len(words) < 2:
        die("a log and a command are needed (see --help)")
    if last > first and variable not in words[0]:
        die(f"{words[0]}: the jobs would share one log; put {variable} into its name")
    return Call(options, variable, first, last, words[0], words[1:])


def positive(options: Mapping[str, str], name: str) -> int | None:
    """The whole number above 0 that an option gives; None when it is absent or 0, as in Kaldi."""
    text = options.get(name, "0")
    if not text.isdecimal():
        die(f"--{name.replace('_', '-')} {text!r}: a whole number is expected")
    return int(text) or None


def claim(call: Call) -> IO[bytes]:
    """Hold the call's logs against another call while the stream that is returned is open, and empty them.

    Dies where a call that is still running holds them.
    """
    log = call.log_of(call.first)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        stream = log.open("ab")
    except OSError as error:
        die(f"{log}: the log cannot be written: {error.strerror}")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        die(f"{log}: another run is writing this log; wait for its end or stop it")
    except OSError:  # a file system without locks
        pass
    for number in call.numbers:
        prepare(call.log_of(number))
    return stream


def prepare(log: Path) -> None:
    """Make the directory of a log and empty the log of an earlier run."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.open("wb").close()
    except OSError as error:
        die(f"{log}: the log cannot be written: {error.strerror}")


def tail(log: Path) -> str:
    """The last lines of a log, for a message."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError as error:
        return f"({log}: {error.strerror})"
    return "\n".join(text.split("\n")[-TAIL_LINES:])


def fail(call: Call, problems: Mapping[int, str], codes: Mapping[int, int]) -> NoReturn:
    """Name the jobs that did not end well, after the tail of the first one's log; exit with the code of the first."""
    first = min(problems)
    if call.variable:
        print(tail(call.log_of(first)), file=sys.stderr)
    named = "; ".join(f"{call.title(n)} {text}, see {call.log_of(n)}" for n, text in sorted(problems.items()))
    of_all = f"{len(problems)} of {len(call.numbers)} jobs failed: " if call.variable else ""
    die(of_all + named, codes.get(first) or 1)


def of_code(code: int) -> str:
    """Words for an exit code as a shell gives it."""
    if code > 128 and code - 128 in {s.value for s in signal.Signals}:
        return f"was killed by {signal.Signals(code - 128).name}"
    return f"exited with code {code}"


class Stop(threading.Event):
    """Set by SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP; also when the calling program dies."""

    def __init__(self) -> None:
        super().__init__()
        self.signal = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    def _on_signal(self, number: int, _frame: object) -> None:
        self.signal = number
        self.set()
