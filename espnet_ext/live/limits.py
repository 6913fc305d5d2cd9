"""What clients of the server may do."""

from collections.abc import Collection
from dataclasses import dataclass

from espnet_ext.errors import UserError


@dataclass(frozen=True)
class Limits:
    """See the command's options. Raises UserError, naming the option, for a value that cannot be."""

    max_sessions: int = 16
    idle_timeout_s: float = 60.0
    max_sentence_s: float = 120.0
    max_message_bytes: int = 2**20
    token: str | None = None
    allowed_origins: Collection[str] = ()

    def __post_init__(self) -> None:
        for name, lowest in (("max_sessions", 1), ("max_message_bytes", 1024)):
            if getattr(self, name) < lowest:
                raise UserError(f"{name}: must be at least {lowest}, not {getattr(self, name)}")
        for name in ("idle_timeout_s", "max_sentence_s"):
            if not 0 < getattr(self, name) < float("inf"):
                raise UserError(f"{name}: must be above 0, not {getattr(self, name)}")
        if self.token == "":
            raise UserError("token: is empty; leave the option out to serve without one")
