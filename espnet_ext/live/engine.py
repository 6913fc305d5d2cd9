"""Sessions for coroutines: one thread computes, the event loop never waits for it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from espnet_ext.config import DecodeConfig
from espnet_ext.model import SpeechModel
from espnet_ext.policy.own import load_own
from espnet_ext.session import SimulSession, Update
from espnet_ext.session_pool import SessionPool


@dataclass
class _Job:
    """What a session waits for: these samples are translated, a sentence ends (`flush`), the stream ends (`finish`)."""

    kind: str
    samples: np.ndarray | None
    done: asyncio.Future[Update]


class Engine:
    """A `SessionPool` driven by one thread: what waits when the thread becomes free runs together.

    A session has one job at a time. To be used in one event loop.
    """

    def __init__(self, model: SpeechModel, limit: int) -> None:
        self.pool = SessionPool(model, limit)
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self.waiting: dict[SimulSession, _Job] = {}
        self.driver: asyncio.Task | None = None

    async def open(self, config: DecodeConfig) -> SimulSession:
        """A new session. Raises UserError when all places are taken."""
        return await self._in_thread(lambda: self.pool.open(config, policy=load_own(config.policy)))

    async def close(self, session: SimulSession) -> None:
        """Free the session's place, whatever it was doing."""
        self.waiting.pop(session, None)
        await self._in_thread(self.pool.close, session)

    async def push(self, session: SimulSession, samples: np.ndarray) -> Update:
        """`SimulSession.push`."""
        return await self._submit(session, _Job("push", samples, asyncio.Future()))

    async def flush(self, session: SimulSession) -> Update:
        """`SimulSession.flush`."""
        return await self._submit(session, _Job("flush", None, asyncio.Future()))

    async def finish(self, session: SimulSession) -> Update:
        """`SimulSession.finish`."""
        return await self._submit(session, _Job("finish", None, asyncio.Future()))

    def stop(self) -> None:
        """Let the thread end with what it is doing."""
        self.thread.shutdown(wait=True, cancel_futures=True)

    async def _in_thread(self, call: Callable, *args: object) -> object:
        return await asyncio.get_running_loop().run_in_executor(self.thread, call, *args)

    async def _submit(self, session: SimulSession, job: _Job) -> Update:
        self.waiting[session] = job
        if self.driver is None or self.driver.done():
            self.driver = asyncio.create_task(self._drive())
        return await job.done

    async def _drive(self) -> None:
        while self.waiting:
            jobs, self.waiting = self.waiting, {}
            try:
                results = await self._in_thread(self._run, jobs)
            except Exception as error:  # noqa: BLE001 - raised in the coroutines that wait
                results = dict.fromkeys(jobs, error)
            for session, job in jobs.items():
                if job.done.done():  # the client has gone
                    continue
                result = results[session]
                if isinstance(result, Exception):
                    job.done.set_exception(result)
                else:
                    job.done.set_result(result)

    def _run(self, jobs: dict[SimulSession, _Job]) -> dict[SimulSession, Update | Exception]:
        of_kind: dict[str, dict[SimulSession, np.ndarray | None]] = {"push": {}, "flush": {}, "finish": {}}
        for session, job in jobs.items():
            if session in self.pool.sessions:
                of_kind[job.kind][session] = job.samples
        results = dict.fromkeys(jobs, RuntimeError("the session was closed"))
        for kind, sessions in of_kind.items():
            results |= getattr(self.pool, kind)(sessions)
        return results
