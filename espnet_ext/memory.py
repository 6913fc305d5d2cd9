"""Memory that tensors of ever new sizes cost: holes in the C library's heap, and oneDNN's code for each size."""

import ctypes
import os

PRIMITIVES = 256


def limit_onednn() -> None:
    """Let oneDNN keep the code of 256 products and convolutions, not of 1024, unless the environment says how many.

    A window of audio that grows and shrinks has new sizes for minutes, and each costs tens of kilobytes. Without effect
    where oneDNN has been used in this process before.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(PRIMITIVES))


def trim_heap() -> None:
    """glibc's `malloc_trim`, some ms; nothing where the C library is another one."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
