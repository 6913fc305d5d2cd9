"""Simultaneous and streaming speech translation for ESPnet models."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from espnet_ext.model import load_model
    from espnet_ext.session import SimulSession
    from espnet_ext.session_pool import SessionPool

__version__ = "0.1.0"
__all__ = ["SessionPool", "SimulSession", "load_model"]


def __getattr__(name: str) -> object:
    """Import torch and ESPnet only when a session or a model is asked for."""
    if name == "SimulSession":
        from espnet_ext.session import SimulSession

        return SimulSession
    if name == "SessionPool":
        from espnet_ext.session_pool import SessionPool

        return SessionPool
    if name == "load_model":
        from espnet_ext.model import load_model

        return load_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
