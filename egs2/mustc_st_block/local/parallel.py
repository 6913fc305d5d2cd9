"""Work on many items in several processes: none outlives its parent, none is lost unnoticed."""

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from step import say

from espnet_ext.errors import UserError

PR_SET_PDEATHSIG = 1


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Let this process get a signal when its parent, of this id, ends, so that no orphan goes on writing."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def _begin_child(parent: int) -> None:
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is the parent's


def in_parallel[I, R](function: Callable[[I], R], items: Sequence[I], nj: int, name: str) -> Iterator[R]:
    """Results of `function` for every item, as they come, from at most `nj` processes.

    More processes than items are not started, with a line that says so; `name` is what the line calls the items.
    Raises UserError when a process was killed; the first exception of an item ends the work.
    """
    jobs = min(nj, len(items))
    if jobs < nj:
        say(f"{len(items)} {name}, so {jobs} jobs instead of {nj}")
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("fork"), _begin_child, (os.getpid(),))
    try:
        for future in as_completed([pool.submit(function, item) for item in items]):
            yield future.result()
    except BrokenProcessPool:
        raise UserError("a job was killed by SIGKILL; run this again, with less --nj if memory is short") from None
    finally:
        pool.shutdown(cancel_futures=True)
