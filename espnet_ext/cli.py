"""What every command shares: argument errors in one line, exit codes, the boolean type."""

import argparse
import errno
import sys
from collections.abc import Callable
from typing import NoReturn

from espnet_ext.errors import UserError


class ArgumentParser(argparse.ArgumentParser):
    """An `argparse` parser whose errors are one line on stderr and exit code 2, and which never abbreviates."""

    def __init__(self, **kwargs: object) -> None:
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


def run(main: Callable[[], int | None]) -> NoReturn:
    """Run a command's `main` and exit: 0 or its own code; 2 with one line for `UserError`, `OSError`; 130 on ctrl-C."""
    try:
        code = main() or 0
    except UserError as error:
        code = print_error(str(error))
    except OSError as error:
        code = print_error(describe(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)
