"""One process at a time on a directory."""

import fcntl
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from espnet_ext.errors import UserError


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold the lock of a directory or file: `.NAME.lock` beside it, which names the holder's process and host.

    The lock is the kernel's, so it ends with its holder, whatever ended that; what a killed holder has left
    half-written (`atomic_write`'s temporary files) is removed.
    Raises UserError that names the holder when it is another process.
    """
    path = Path(path).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f".{path.name}.lock"), "a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            holder = stream.read().strip() or "unknown"
            raise UserError(f"{path}: another run is at work on it ({holder}); wait for its end or stop it") from None
        except OSError as error:
            logging.warning("%s: not locked (%s): see that no other run works on it", path, error.strerror)
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        stream.flush()
        for leftover in chain(path.glob(".*.tmp"), path.parent.glob(f".{path.name}.*.tmp")):
            leftover.unlink(missing_ok=True)
        yield
