"""What every command shares: argument errors in one line, exit codes, the boolean type."""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import NoReturn

from espnet_ext.errors import UserError


class ArgumentParser(argparse.ArgumentParser):
    """An `argparse` parser whose errors are one line on stderr and exit code 2, and which never abbreviates."""

    called: str | None = None  # the name that the user typed, where it is not the module's

    def __init__(self, **kwargs: object) -> None:
        kwargs["prog"] = self.called or kwargs.get("prog")
        kwargs.setdefault("formatter_class", argparse.ArgumentDefaultsHelpFormatter)
        super().__init__(allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        one_line = " ".join(message.split())
        self.exit(2, f"{self.prog}: error: {one_line} (see --help)\n")


def str2bool(text: str) -> bool:
    """`true` or `false`, as in ESPnet's commands."""
    if text.lower() in ("true", "1", "yes"):
        return True
    if text.lower() in ("false", "0", "no"):
        return False
    raise argparse.ArgumentTypeError(f"expected true or false, got {text!r}")


def print_error(message: str) -> int:
    """Print an error in one line; returns the exit code."""
    print("error:", *message.split(), file=sys.stderr)
    return 2


def is_full(error: OSError) -> bool:
    """Whether a write failed because the disk, the quota or the allowed size of a file is used up."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def describe(error: OSError) -> str:
    """What the system refused, in one line; for a full disk also what to do."""
    what = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    if is_full(error):
        return f"{what}; make room, then run this again: it goes on where it was"
    return what


class UntilInterrupted[T]:
    """Yields items until there are no more or ctrl-C is pressed, `interrupted` then; the second ctrl-C acts as usual.

    Ctrl-C ends the wait for an item, and never what is done with one.
    """

    def __init__(self, items: Iterator[T]) -> None:
        self.items = items
        self.waiting = False
        self.interrupted = False

    def __iter__(self) -> Iterator[T]:
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            while not self.interrupted:
                self.waiting = True
                try:
                    item = next(self.items)
                except (StopIteration, KeyboardInterrupt):
                    return
                finally:
                    self.waiting = False
                yield item
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupt(self, *_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.interrupted = True
        if self.waiting:
            raise KeyboardInterrupt


def run(main: Callable[[], int | None]) -> NoReturn:
    """Run a command's `main` and exit: 0 or its own code; 2 with one line for `UserError`, `OSError`; 130 on ctrl-C.

    When nobody reads standard output any more (`| head`), the command ends without a word, with the shell's 141.
    """
    try:
        code = main() or 0
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for the flush at exit
        code = 128 + signal.SIGPIPE
    except UserError as error:
        code = print_error(str(error))
    except OSError as error:
        code = print_error(describe(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)
