"""One client of the server: its messages in order, its session, its answers."""

import asyncio
import logging
from dataclasses import dataclass

import numpy as np
import soxr
from aiohttp import WSMsgType

from espnet_ext.audio.pauses import Pauses
from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.config import DecodeConfig
from espnet_ext.errors import UserError
from espnet_ext.live.engine import Engine
from espnet_ext.live.limits import Limits
from espnet_ext.live.metrics import Metrics
from espnet_ext.live.protocol import Control, parse_audio, parse_control, shorten, update_message
from espnet_ext.live.socket import Socket
from espnet_ext.log.units import uses_characters
from espnet_ext.session import SimulSession, Update

QUEUED_MESSAGES = 8


@dataclass(frozen=True)
class _Audio:
    samples: np.ndarray
    received: float  # s of the event loop's clock


class Connection:
    """Translates what one socket brings until it closes.

    A few messages wait here, the rest in the network: a client that sends faster than its audio is translated, or
    does not read its answers, is slowed down, loses nothing and keeps nobody waiting.
    """

    def __init__(
        self,
        socket: Socket,
        engine: Engine,
        config: DecodeConfig,
        metrics: Metrics,
        limits: Limits,
    ) -> None:
        self.socket = socket
        self.engine = engine
        self.config = config
        self.metrics = metrics
        self.limits = limits
        self.inbox: asyncio.Queue[_Audio | Control | UserError] = asyncio.Queue(QUEUED_MESSAGES)
        self.extended = False
        self.split_at_pauses = False

    async def serve(self) -> None:
        """Run until the client goes. Raises UserError for what it does wrong; its place is free afterwards."""
        self.session: SimulSession = await self.engine.open(self.config)
        self.session.name = self.socket.name
        self.metrics.sessions += 1
        self._begin_stream()
        reading, working = asyncio.create_task(self._read()), asyncio.create_task(self._work())
        try:
            await asyncio.wait((reading, working), return_when=asyncio.FIRST_COMPLETED)
            if working.done() or not reading.result():
                await working
        finally:
            for task in (reading, working):
                task.cancel()
            await asyncio.gather(reading, working, return_exceptions=True)
            await self.engine.close(self.session)

    def _begin_stream(self) -> None:
        self.rate: int | None = None
        self.resampler: soxr.ResampleStream | None = None
        self.pauses = Pauses()
        self.unstable = ""
        self.begun = False  # whether audio has come
        self.released = False  # whether text has
        self.sentence_begin_ms = 0.0
        self.warned = False

    async def _read(self) -> bool:
        """Queue messages; returns whether the client has gone, else it has sent what cannot be, which is queued."""
        loop = asyncio.get_running_loop()
        async for message in self.socket:
            try:
                if message.type == WSMsgType.BINARY:
                    await self.inbox.put(_Audio(parse_audio(message.data), loop.time()))
                elif message.type == WSMsgType.TEXT:
                    await self.inbox.put(parse_control(message.data))
            except UserError as error:
                await self.inbox.put(error)
                return False
        return True

    async def _work(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self.limits.idle_timeout_s):
                    message = await self.inbox.get()
            except TimeoutError:
                raise UserError(f"nothing came for {self.limits.idle_timeout_s:g} s: the session is closed") from None
            if isinstance(message, UserError):
                raise message
            if isinstance(message, _Audio):
                await self._take_audio(message)
            else:
                await self._take_control(message)

    async def _take_audio(self, audio: _Audio) -> None:
        if not self.begun and self.rate not in (None, SAMPLE_RATE):
            self.resampler = soxr.ResampleStream(self.rate, SAMPLE_RATE, 1, dtype="float32")
        self.begun = True
        self.metrics.audio_s += len(audio.samples) / (self.rate or SAMPLE_RATE)
        samples = audio.samples
        if self.resampler is not None:
            samples = await asyncio.to_thread(self.resampler.resample_chunk, samples)
        await self._push(samples, audio.received)

    async def _push(self, samples: np.ndarray, received: float) -> None:
        *sentences, rest = self.pauses.split(samples)
        for sentence in sentences:
            await self._push_steps(sentence, received)
            if self.split_at_pauses:
                await self._flush(received)
        await self._push_steps(rest, received)

    async def _push_steps(self, samples: np.ndarray, received: float) -> None:
        """Push step by step: the steps of others come between those of one who sends much at once."""
        step = max(1, round(self.session.chunk_ms * SAMPLE_RATE / 1000))
        for begin in range(0, len(samples), step):
            update = await self.engine.push(self.session, samples[begin : begin + step])
            if update.units or (self.extended and update.unstable != self.unstable):
                await self._send_update(update, received)
            await self._mind_length(update, received)

    async def _take_control(self, control: Control) -> None:
        self._check_languages(control)
        if control.sample_rate is not None:
            if self.begun and control.sample_rate != (self.rate or SAMPLE_RATE):
                raise UserError(f"sample_rate: {control.sample_rate} in the middle of a stream; it must come before")
            self.rate = control.sample_rate
        if control.metrics_metadata is not None:
            logging.info("%s: %s", self.socket.name, shorten(control.metrics_metadata))
        self.extended |= control.extended
        if control.pauses is not None:
            self.split_at_pauses = control.pauses
        if control.tune is not None:
            self.session.tune(**control.tune)
        received = asyncio.get_running_loop().time()
        if control.flush:
            await self._flush(received)
        if control.end_of_stream:
            await self._end_stream(received)

    async def _end_stream(self, received: float) -> None:
        if self.resampler is not None:
            rest = self.resampler.resample_chunk(np.zeros(0, np.float32), last=True)
            await self._push(rest, received)
        await self._send_update(await self.engine.finish(self.session), received)
        await self._send({"end_of_processing": True})
        self.session.reset(self.socket.name)
        self._begin_stream()

    def _check_languages(self, control: Control) -> None:
        for key, wanted, own in (
            ("target_lang", control.target_lang, self.config.tgt_lang),
            ("source_lang", control.source_lang, self.config.src_lang),
        ):
            if wanted is not None and wanted != own:
                raise UserError(f"{key}: this server has {own}, not {shorten(wanted)}")

    async def _send_update(self, update: Update, received: float) -> None:
        lag = asyncio.get_running_loop().time() - received
        text = update.text
        if text and self.released and not uses_characters(self.config.tgt_lang):
            text = f" {text}"
        self.released |= bool(update.units)
        self.unstable = update.unstable
        await self._send(update_message(update, text, self.extended, 1000 * lag))
        self.metrics.words += len(update.units)
        self.metrics.observe_lag(lag)

    async def _mind_length(self, update: Update, received: float) -> None:
        """Say once that a sentence is longer than those of the training, end one that would fill the memory."""
        length_s = (update.delay_ms - self.sentence_begin_ms) / 1000
        if self.config.long_form or length_s <= min(self.config.max_audio_s, self.limits.max_sentence_s):
            return
        if length_s > self.limits.max_sentence_s:
            await self._notify(f"{length_s:.0f} s without the end of a sentence: one is made here")
            await self._flush(received)
        elif not self.warned:
            self.warned = True
            advice = "flush at a pause, or serve with --long_form true"
            await self._notify(f"{length_s:.0f} s without the end of a sentence: {advice}")

    async def _flush(self, received: float) -> None:
        await self._send_update(await self.engine.flush(self.session), received)
        self.sentence_begin_ms, self.warned = self.session.source_ms, False

    async def _notify(self, notice: str) -> None:
        if self.extended:
            await self._send({"notice": notice})

    async def _send(self, message: dict[str, object]) -> None:
        try:
            async with asyncio.timeout(self.limits.idle_timeout_s):
                await self.socket.send_json(message)
        except TimeoutError:
            raise UserError(
                f"answers were not read for {self.limits.idle_timeout_s:g} s: the session is closed"
            ) from None
