"""Audio as it comes, for people: files of any rate and channels, a pipe, the microphone; as mono at 16 kHz.

Every source yields float32 samples in pieces of about `piece_s` seconds.
"""

import importlib
import io
import os
import queue
import shutil
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType

import numpy as np
import soundfile
import soxr

from espnet_ext.audio.reader import SAMPLE_RATE, check_finite
from espnet_ext.errors import UserError

STDIN, MICROPHONE = "-", "mic"
STREAMED = (b"RIFF", b"RF64")  # what libsndfile can read from a pipe while it is written: wav


def open_source(name: str, piece_s: float, raw: bool = False) -> Iterator[np.ndarray]:
    """The samples of a file, of `-` (standard input) or of `mic`; `raw`: 16-bit little-endian mono samples at 16 kHz.

    Raises UserError, now or while it is read, for audio that cannot be read or recorded.
    """
    if name == MICROPHONE:
        return _record(piece_s)
    if name == STDIN and sys.stdin.isatty():
        raise UserError("-: standard input is a terminal; pipe audio into it")
    file = 0 if name == STDIN else name
    if raw:
        return _read_raw(file, piece_s)
    return _in_background(_read(file, name, piece_s)) if name == STDIN else _read(file, name, piece_s)


def known_length_s(name: str) -> float:
    """Length of a file in seconds; 0 for a source that has no end yet and for what is no audio."""
    if name in (STDIN, MICROPHONE):
        return 0.0
    try:
        return soundfile.info(name).duration
    except soundfile.SoundFileError:
        return 0.0


def _read(file: str | int, name: str, piece_s: float) -> Iterator[np.ndarray]:
    """Mean of the channels, resampled to 16 kHz where the rate is another."""
    try:
        piped = file == 0 and not stat.S_ISREG(os.fstat(file).st_mode)
        source = _seekable_or_streamed() if piped else file
        with soundfile.SoundFile(source, closefd=source != 0) as sound:
            size = max(1, round(piece_s * sound.samplerate))
            resampler = None
            if sound.samplerate != SAMPLE_RATE:
                resampler = soxr.ResampleStream(sound.samplerate, SAMPLE_RATE, 1, dtype="float32")
            read = 0
            last = False
            while not last:
                samples = sound.read(size, dtype="float32", always_2d=True).mean(axis=1)
                check_finite(samples, name)
                read += len(samples)
                last = not len(samples)
                yield samples if resampler is None else resampler.resample_chunk(samples, last=last)
            if not piped and read < sound.frames:
                raise UserError(f"{name}: cut short: {read} of {sound.frames} samples")
    except (soundfile.SoundFileError, OSError) as error:
        raise UserError(f"{name}: cannot read audio: {error}") from error


def _in_background(samples: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """The same from a thread: unlike libsndfile's wait for a pipe, the wait for a queue can be ended by ctrl-C."""
    pieces: queue.Queue[np.ndarray | UserError | None] = queue.Queue(maxsize=1)

    def work() -> None:
        try:
            for piece in samples:
                pieces.put(piece)
            pieces.put(None)
        except UserError as error:
            pieces.put(error)

    threading.Thread(target=work, daemon=True).start()
    while (piece := pieces.get()) is not None:
        if isinstance(piece, UserError):
            raise piece
        yield piece


def _seekable_or_streamed() -> int | io.BytesIO:
    """Standard input as libsndfile can read it: wav as it comes, by a descriptor; other formats when they are whole."""
    head = os.read(0, 4)
    if head not in STREAMED:
        with open(0, "rb", buffering=0, closefd=False) as stdin:
            return io.BytesIO(head + stdin.read())
    end, beginning = os.pipe()
    os.write(beginning, head)
    threading.Thread(target=_copy_stdin, args=(beginning,), daemon=True).start()
    return end


def _copy_stdin(descriptor: int) -> None:
    with (
        suppress(BrokenPipeError),
        open(0, "rb", buffering=0, closefd=False) as stdin,
        open(descriptor, "wb", buffering=0) as copy,
    ):
        shutil.copyfileobj(stdin, copy)


def _read_raw(file: str | int, piece_s: float) -> Iterator[np.ndarray]:
    size = 2 * max(1, round(piece_s * SAMPLE_RATE))
    with open(file, "rb", closefd=file != 0) as stream:
        while content := stream.read(size):
            yield np.frombuffer(content[: len(content) // 2 * 2], "<i2").astype(np.float32) / 32768


def recorder() -> ModuleType:
    """The optional package that records. Raises UserError when it or its library is not installed."""
    try:
        return importlib.import_module("sounddevice")
    except ImportError:
        raise UserError("mic: recording needs the package sounddevice: pip install sounddevice") from None
    except OSError as error:
        raise UserError(f"mic: sounddevice needs the system's PortAudio library: {error}") from None


def _record(piece_s: float) -> Iterator[np.ndarray]:
    sounddevice = recorder()
    pieces: queue.SimpleQueue[np.ndarray] = queue.SimpleQueue()
    try:
        with sounddevice.InputStream(
            samplerate=SAMPLE_RATE,
            channels=1,
            dtype="float32",
            blocksize=round(piece_s * SAMPLE_RATE),
            callback=lambda samples, frames, time, status: pieces.put(samples[:, 0].copy()),
        ):
            while True:
                yield pieces.get()
    except sounddevice.PortAudioError as error:
        raise UserError(f"mic: cannot record: {error}") from None
