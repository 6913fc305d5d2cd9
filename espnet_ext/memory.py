"""Memory that is free, given back to the system: tensors of ever new sizes leave holes in the C library's heap."""

import ctypes


def trim_heap() -> None:
    """glibc's `malloc_trim`, some ms; nothing where the C library is another one."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
