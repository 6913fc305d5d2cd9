"""Audio as it comes, for people: files of any rate and channels, a pipe, the microphone; as mono at 16 kHz.

Every source yields float32 samples in pieces of about `piece_s` seconds.
"""

import importlib
import io
import os
import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

import numpy as np
import soundfile
import soxr

from espnet_ext.audio.reader import SAMPLE_RATE, check_finite
from espnet_ext.audio.sound import Header, open_sound, read_header
from espnet_ext.errors import UserError

STDIN, MICROPHONE = "-", "mic"
STREAMED = (b"RIFF", b"RF64")  # what libsndfile can read from a pipe while it is written: wav
PIECE = 2**16  # bytes
UNRECOGNISED = 1  # libsndfile's code of the error


def open_source(name: str, piece_s: float, raw: bool = False) -> Iterator[np.ndarray]:
    """The samples of a file, of `-` (standard input) or of `mic`; `raw`: 16-bit little-endian mono samples at 16 kHz.

    Raises UserError, now or while it is read, for audio that cannot be read or recorded.
    """
    if name == MICROPHONE:
        return _record(piece_s)
    if raw:
        return _read_raw(name, piece_s)
    return _read_pipe(name, piece_s) if _is_pipe(name) else _read_file(name, piece_s)


def known_length_s(name: str) -> float:
    """Length of a file in seconds; 0 for a source that has no end yet."""
    if name == MICROPHONE or _is_pipe(name):
        return 0.0
    with _reading(name), open_sound(_path(name)) as (sound, frames):
        return frames / sound.samplerate


def check_source(name: str, raw: bool = False) -> None:
    """Raise UserError for what cannot be read or recorded, as far as that is known without taking any of a stream."""
    path = Path(name)
    if name == MICROPHONE:
        recorder()
        return
    if name == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise UserError(f"-: standard input is {'a terminal' if sys.stdin else 'closed'}; pipe audio into it")
    elif path.is_dir():
        raise UserError(f"{name}: is a directory; name the files in it")
    elif not path.exists():
        raise UserError(f"{name}: no such file (audio)")
    elif not path.is_file() and not path.is_fifo():
        raise UserError(f"{name}: neither a file nor a pipe")
    if not raw:
        known_length_s(name)


def _path(name: str) -> str:
    return "/dev/stdin" if name == STDIN else name


def _label(name: str) -> str:
    return "standard input" if name == STDIN else name


def _is_pipe(name: str) -> bool:
    return not Path(_path(name)).is_file()


def _open(name: str) -> BinaryIO:
    return open(0 if name == STDIN else name, "rb", buffering=0, closefd=name != STDIN)


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Turns the errors of reading into UserErrors."""
    try:
        yield
    except soundfile.LibsndfileError as error:
        if not _is_pipe(name) and not os.path.getsize(_path(name)):
            raise _empty(name) from None
        if error.code == UNRECOGNISED:
            raise UserError(
                f"{_label(name)}: not audio that libsndfile knows; samples without a header need --raw"
            ) from None
        raise UserError(f"{_label(name)}: cannot read audio: {error.error_string}") from error
    except OSError as error:
        raise UserError(f"{_label(name)}: cannot read audio: {error.strerror or error}") from error


def _empty(name: str) -> UserError:
    return UserError(f"{_label(name)} is empty; give it audio")


def _read_file(name: str, piece_s: float) -> Iterator[np.ndarray]:
    with _reading(name), open_sound(_path(name)) as (sound, frames):
        yield from _mono(sound, frames, name, piece_s)


def _read_pipe(name: str, piece_s: float) -> Iterator[np.ndarray]:
    """Wav as it comes, by a descriptor; other formats when they are whole."""
    with _reading(name), _open(name) as stream:
        header = read_header(stream)
        if not header.content:
            raise _empty(name)
        if header.content[:4] in STREAMED:
            yield from _in_background(_read_streamed(header, stream, name, piece_s))
        else:
            with soundfile.SoundFile(io.BytesIO(header.content + stream.read())) as sound:
                yield from _mono(sound, sound.frames, name, piece_s)


def _read_streamed(header: Header, stream: BinaryIO, name: str, piece_s: float) -> Iterator[np.ndarray]:
    """A wav stream; where its header leaves the size open, libsndfile is told so in its own way."""
    content = header.content[:-4] + b"\xff" * 4 if header.is_open else header.content
    end, beginning = os.pipe()
    threading.Thread(target=_copy, args=(content, stream, beginning), daemon=True).start()
    with _reading(name), soundfile.SoundFile(end, closefd=True) as sound:
        is_known = header.size is not None and not header.is_open
        yield from _mono(sound, sound.frames if is_known else 0, name, piece_s)


def _copy(content: bytes, stream: BinaryIO, descriptor: int) -> None:
    with suppress(OSError, ValueError), open(descriptor, "wb") as copy:  # until an end of it is closed
        while content:
            copy.write(content)
            copy.flush()
            content = stream.read(PIECE)


def _mono(sound: soundfile.SoundFile, frames: int, name: str, piece_s: float) -> Iterator[np.ndarray]:
    """Mean of the channels, resampled to 16 kHz where the rate is another. Raises UserError below `frames` samples."""
    size = max(1, round(piece_s * sound.samplerate))
    resampler = None
    if sound.samplerate != SAMPLE_RATE:
        resampler = soxr.ResampleStream(sound.samplerate, SAMPLE_RATE, 1, dtype="float32")
    read = 0
    last = False
    while not last:
        with _without_remarks(sound):
            samples = sound.read(size, dtype="float32", always_2d=True).mean(axis=1)
        check_finite(samples, _label(name))
        read += len(samples)
        last = not len(samples)
        yield samples if resampler is None else resampler.resample_chunk(samples, last=last)
    if read < frames:
        raise UserError(f"{_label(name)} is cut short: {read} of {frames} samples")


@contextmanager
def _without_remarks(sound: soundfile.SoundFile) -> Iterator[None]:
    """The decoder of mp3 writes to standard error what it repairs, amid the text."""
    if sound.format != "MP3":
        yield
        return
    stderr, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nothing)


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


def _read_raw(name: str, piece_s: float) -> Iterator[np.ndarray]:
    size = 2 * max(1, round(piece_s * SAMPLE_RATE))
    with _open(name) as stream:
        content = stream.read(size)
        if not content:
            raise _empty(name)
        while content:
            yield np.frombuffer(content[: len(content) // 2 * 2], "<i2").astype(np.float32) / 32768
            content = stream.read(size)


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
