"""One process at a time on a directory."""

import fcntl
import logging
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from espnet_ext.errors import UserError

ENDING_S = 20.0  # how long the children of a killed holder, which share its lock, may take to end


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold the lock of a directory or file: `.NAME.lock` beside it, which names the holder's process and host.

    The lock is the kernel's, so it ends with its holder and the holder's children, whatever ended them; children
    that outlive a killed holder are waited for. What it has left half-written (`atomic_write`'s temporary files) is
    removed. Raises UserError that names the holder when it is another process.
    """
    path = Path(path).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f".{path.name}.lock"), "a+", encoding="utf-8") as stream:
        deadline = time.monotonic() + ENDING_S
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                stream.seek(0)
                holder = stream.read().strip() or "unknown"
                if not _is_dead(holder) or time.monotonic() > deadline:
                    message = f"{path}: another run is at work on it ({holder}); wait for its end or stop it"
                    raise UserError(message) from None
                time.sleep(0.05)
            except OSError as error:
                logging.warning("%s: not locked (%s): see that no other run works on it", path, error.strerror)
                break
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        stream.flush()
        for leftover in chain(path.glob(".*.tmp"), path.parent.glob(f".{path.name}.*.tmp")):
            leftover.unlink(missing_ok=True)
        yield


def _is_dead(holder: str) -> bool:
    """Whether a lock's text names a process of this host that is gone."""
    found = re.fullmatch(rf"process (\d+) on {re.escape(socket.gethostname())}", holder)
    return found is not None and not Path("/proc", found[1]).exists()
