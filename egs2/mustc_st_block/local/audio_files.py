"""The recipe's rule for audio: any rate, channels and format that libsndfile reads becomes mono 16 kHz, 16 bits."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr

from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write

BLOCK_S = 10


@dataclass(frozen=True)
class AudioFile:
    """A file as its header describes it; `frames` are samples of one channel."""

    path: Path
    rate: int
    channels: int
    frames: int

    @property
    def is_mono_16k(self) -> bool:
        return self.rate == SAMPLE_RATE and self.channels == 1

    @property
    def seconds(self) -> float:
        """Length, in whole samples of 16 kHz when it has to be converted."""
        if self.is_mono_16k:
            return self.frames / SAMPLE_RATE
        return self.frames * SAMPLE_RATE // self.rate / SAMPLE_RATE


def probe(path: Path) -> AudioFile | None:
    """Read a file's header; None when there is no file or libsndfile cannot read it."""
    try:
        info = soundfile.info(str(path))
    except soundfile.LibsndfileError:
        return None
    return AudioFile(path.resolve(), info.samplerate, info.channels, info.frames)


def to_mono_16k(samples: np.ndarray, rate: int, speed: float = 1.0) -> np.ndarray:
    """Mean of the channels of (samples, channels), resampled to 16 kHz and played `speed` times as fast."""
    mono = samples.mean(axis=1)
    return mono if rate * speed == SAMPLE_RATE else soxr.resample(mono, rate * speed, SAMPLE_RATE)


def convert(source: AudioFile, output: Path) -> None:
    """Write the whole file as mono 16 kHz wav, block by block.

    Raises UserError when its audio cannot be read to the end.
    """
    resampler = soxr.ResampleStream(source.rate, SAMPLE_RATE, 1, dtype="float32")
    left = round(source.seconds * SAMPLE_RATE)
    encoded = io.BytesIO()  # soundfile hides an error of writing
    try:
        with (
            soundfile.SoundFile(str(source.path)) as recording,
            soundfile.SoundFile(encoded, "w", SAMPLE_RATE, 1, subtype="PCM_16", format="WAV") as converted,
        ):
            for block in recording.blocks(BLOCK_S * source.rate, dtype="float32", always_2d=True):
                last = recording.tell() >= source.frames
                samples = resampler.resample_chunk(block.mean(axis=1), last=last)[:left]
                converted.write(samples)
                left -= len(samples)
            if left:
                raise UserError(f"{source.path}: cut short, {left / SAMPLE_RATE:.3f} s are missing; repair the file")
    except soundfile.LibsndfileError as error:
        raise UserError(f"{source.path}: cannot read audio: {error}") from None
    with atomic_write(output, "wb") as stream:
        stream.write(encoded.getbuffer())
