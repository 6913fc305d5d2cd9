"""What every command shares: argument errors in one line, exit codes, the boolean type."""

import argparse
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


def run(main: Callable[[], int | None]) -> NoReturn:
    """Run a command's `main` and exit: 0 or its own code; 2 with one line for a `UserError`; 130 on ctrl-C."""
    try:
        code = main() or 0
    except UserError as error:
        one_line = " ".join(str(error).split())
        print(f"error: {one_line}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)
