"""Many sessions of one model at once: what they do at the same time shares each decoder call."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from espnet_ext.config import DecodeConfig
from espnet_ext.errors import UserError
from espnet_ext.model import SpeechModel
from espnet_ext.search.beam_step import Expansions, drive_together
from espnet_ext.session import SimulSession, Update


class SessionPool:
    """Up to `limit` sessions of one model. Each gives the text it would give alone.

    The beam steps of sessions that are pushed together run side by side, one decoder call for a step of all of them.
    Every session may have options of its own.
    """

    def __init__(self, model: SpeechModel, limit: int = 16) -> None:
        self.model = model
        self.limit = limit
        self.sessions: set[SimulSession] = set()

    def open(self, config: DecodeConfig | None = None, **options: object) -> SimulSession:
        """A new session. Raises UserError when all places are taken, and for options that cannot be."""
        if len(self.sessions) >= self.limit:
            raise UserError(f"all {self.limit} sessions are in use; try again later")
        session = SimulSession(self.model, config, **options)
        self.sessions.add(session)
        return session

    def close(self, session: SimulSession) -> None:
        """Free the session's place, whatever state it is in."""
        self.sessions.discard(session)

    def push(self, samples: Mapping[SimulSession, np.ndarray]) -> dict[SimulSession, Update | Exception]:
        """`SimulSession.push` for each session. The result of one that fails is its exception; the others go on."""
        return self._run(samples, lambda session: session.start_push(samples[session]))

    def flush(self, sessions: Iterable[SimulSession]) -> dict[SimulSession, Update | Exception]:
        """`SimulSession.flush` for each session, failures as in `push`."""
        return self._run(sessions, SimulSession.start_flush)

    def finish(self, sessions: Iterable[SimulSession]) -> dict[SimulSession, Update | Exception]:
        """`SimulSession.finish` for each session, failures as in `push`."""
        return self._run(sessions, SimulSession.start_finish)

    def _run(
        self, sessions: Iterable[SimulSession], start: Callable[[SimulSession], Expansions[Update]]
    ) -> dict[SimulSession, Update | Exception]:
        results: dict[SimulSession, Update | Exception] = {}
        started: dict[SimulSession, Expansions[Update]] = {}
        for session in sessions:
            if session not in self.sessions:
                raise ValueError("a session of another pool, or one that was closed")
            try:
                started[session] = start(session)
            except (UserError, RuntimeError) as error:
                results[session] = error
        results.update(zip(started, drive_together(list(started.values())), strict=True))
        return results
