"""Progress of long work: a bar on a terminal, a plain line now and then in a file."""

import logging
import sys
import time
from collections.abc import Iterable, Iterator

from rich.progress import track

LOG_EVERY_S = 10.0


def progress[T](items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Yield the items, showing how many of `total` are done. Output goes to stderr; `what` names the work."""
    if sys.stderr.isatty():
        from rich.console import Console

        yield from track(items, description=what, total=total, console=Console(stderr=True), transient=True)
        return
    begun = said = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - said >= LOG_EVERY_S and done < total:
            logging.info("%s: %d of %d, %.0f s left", what, done, total, (now - begun) / done * (total - done))
            said = now
