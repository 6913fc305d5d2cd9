"""Reading the audio of wav.scp and segments: one rule for rate and channels, every fault named by key."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import kaldiio
import numpy as np
import soundfile

from espnet_ext.audio.sound import open_sound
from espnet_ext.errors import UserError
from espnet_ext.files import read_table

SAMPLE_RATE = 16000
BLOCK_S = 10


@dataclass(frozen=True)
class Recording:
    """One key of the input: a file, or the part of it from `start` to `end` seconds."""

    key: str
    source: str
    start: float | None = None
    end: float | None = None

    def read(self) -> np.ndarray:
        """Samples `(N,)`, float32, mono, 16 kHz. Raises UserError naming the key and the file."""
        return np.concatenate([np.zeros(0, np.float32), *self.blocks()])

    def blocks(self) -> Iterator[np.ndarray]:
        """The same piece by piece, `BLOCK_S` seconds of a file in memory at a time."""
        if is_archive(self.source):
            samples = self._read_archive()
            first = 0 if self.start is None else round(self.start * SAMPLE_RATE)
            last = len(samples) if self.end is None else round(self.end * SAMPLE_RATE)
            self._check_range(first, last, len(samples))
            yield samples[first:last]
            return
        try:
            with open_sound(self.source) as (sound, total):
                self._check_format(sound.samplerate, sound.channels)
                first = 0 if self.start is None else round(self.start * SAMPLE_RATE)
                last = total if self.end is None else round(self.end * SAMPLE_RATE)
                self._check_range(first, last, total)
                sound.seek(min(first, sound.frames))
                left = last - first
                while left:
                    samples = sound.read(min(left, BLOCK_S * SAMPLE_RATE), dtype="float32")
                    if not len(samples):
                        break
                    left -= len(samples)
                    check_finite(samples, f"{self.key}: {self.source}")
                    yield samples
        except (soundfile.SoundFileError, OSError) as error:
            raise UserError(f"{self.key}: cannot read audio {self.source}: {error}") from error
        if left:
            read = last - first - left
            raise UserError(f"{self.key}: {self.source} is cut short: {read} of {last - first} samples")

    def _read_archive(self) -> np.ndarray:
        try:
            value = kaldiio.load_mat(self.source)
        except (OSError, ValueError, RuntimeError, AssertionError) as error:
            raise UserError(f"{self.key}: cannot read audio {self.source}: {str(error) or 'no entry there'}") from error
        if not isinstance(value, tuple):
            raise UserError(f"{self.key}: {self.source} holds features, not audio")
        rate, samples = value if np.isscalar(value[0]) else value[::-1]
        self._check_format(int(rate), 1 if samples.ndim == 1 else samples.shape[1])
        scale = 1 if samples.dtype.kind == "f" else np.iinfo(samples.dtype).max + 1
        return samples.reshape(-1).astype(np.float32) / scale

    def _check_format(self, rate: int, channels: int) -> None:
        if rate != SAMPLE_RATE or channels != 1:
            raise UserError(
                f"{self.key}: {self.source} has {channels} channel(s) at {rate} Hz; mono at {SAMPLE_RATE} Hz is needed"
            )

    def _check_range(self, first: int, last: int, total: int) -> None:
        if not 0 <= first <= last or last > total:
            raise UserError(
                f"{self.key}: segment {self.start}-{self.end} s does not lie in {self.source} "
                f"({total / SAMPLE_RATE:.2f} s)"
            )


def check_finite(samples: np.ndarray, where: str) -> None:
    """Raise UserError, beginning with `where`, for samples that are no numbers, as a float file may have."""
    if not np.isfinite(samples).all():
        raise UserError(f"{where}: samples that are not finite numbers; write the audio again")


def is_archive(source: str) -> bool:
    """Whether a value of wav.scp is a place in a Kaldi archive, `FILE:OFFSET`."""
    path, _, offset = source.rpartition(":")
    return bool(path) and offset.isdigit()


def read_recordings(wav_scp: str | Path, segments: str | Path | None = None) -> list[Recording]:
    """Recordings in the order of `segments`, or of `wav_scp` without it.

    Raises UserError for a missing file, a list without a key, a malformed segment or one of an unknown recording.
    """
    sources = read_table(wav_scp)
    for key, source in sources.items():
        if source.rstrip().endswith("|"):
            raise UserError(f"{wav_scp}: key {key!r} is a pipe; write the audio to a file first (run.sh --stage 3)")
    if segments is None:
        recordings = [Recording(key, source) for key, source in sources.items()]
    else:
        recordings = list(_read_segments(segments, sources, wav_scp))
    if not recordings:
        raise UserError(f"{segments or wav_scp}: no utterance in it")
    return recordings


def digest(recordings: list[Recording]) -> str:
    """SHA-256 of an input list: keys, files and times."""
    return hashlib.sha256(repr(recordings).encode()).hexdigest()


def _read_segments(segments: str | Path, sources: dict[str, str], wav_scp: str | Path) -> Iterator[Recording]:
    for key, value in read_table(segments).items():
        try:
            name, start, end = value.split()
            start, end = float(start), float(end)
        except ValueError:
            raise UserError(f"{segments}: key {key!r} needs 'RECORDING START END', found {value!r}") from None
        if name not in sources:
            raise UserError(f"{segments}: key {key!r} names recording {name!r}, which {wav_scp} does not hold")
        yield Recording(key, sources[name], start, end)
