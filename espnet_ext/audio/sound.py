"""Opens audio files, and says how many samples their header announces.

libsndfile takes what is there for the whole of a wav file that is cut short, and nothing for the whole of one whose
size its writer left open.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

import soundfile

STREAMED = 0x7FFFF000  # a size in bytes from here on (sox, ffmpeg), or 0, comes from who writes to a pipe
LONGEST_CHUNK = 2**24  # bytes, before the samples; what is longer is no wav


@dataclass(frozen=True)
class Header:
    """The first bytes of a stream: of a wav file with a data chunk, those before the first sample.

    `size` is then what the data chunk announces, and `bytes_per_s` the format's.
    """

    content: bytes
    size: int | None = None
    bytes_per_s: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the writer did not know the size; 0 is true where the file is announced to go on behind it."""
        if self.size is None:
            return False
        announced = int.from_bytes(self.content[4:8], "little") + 8
        return self.size >= STREAMED or (self.size == 0 and announced <= len(self.content))


def read_header(stream: BinaryIO) -> Header:
    """Take the header off a stream."""
    content = _take(stream, 12)
    bytes_per_s = 0
    while content[:4] == b"RIFF":
        head = _take(stream, 8)
        content += head
        size = int.from_bytes(head[4:], "little")
        if head[:4] == b"data" and len(head) == 8:
            return Header(content, size, bytes_per_s)
        if len(head) < 8 or size > LONGEST_CHUNK:
            break
        chunk = _take(stream, size + size % 2)
        content += chunk
        if head[:4] == b"fmt ":
            bytes_per_s = int.from_bytes(chunk[8:12], "little")
    return Header(content)


def _take(stream: BinaryIO, count: int) -> bytes:
    """So many bytes, fewer at the end; an unbuffered pipe gives what it has."""
    content = b""
    while len(content) < count and (more := stream.read(count - len(content))):
        content += more
    return content


@contextmanager
def open_sound(path: str) -> Iterator[tuple[soundfile.SoundFile, int]]:
    """A file open for reading, and the number of samples (of a channel) that it should have.

    Raises OSError or SoundFileError.
    """
    with open(path, "rb") as stream:
        header = read_header(stream)
        there = os.fstat(stream.fileno()).st_size - len(header.content)
    with soundfile.SoundFile(path) as sound:
        if header.is_open and not sound.frames and there:
            form = {"samplerate": sound.samplerate, "channels": sound.channels, "subtype": sound.subtype}
            with (
                _Tail(path, len(header.content)) as tail,
                soundfile.SoundFile(tail, format="RAW", endian="LITTLE", **form) as samples,
            ):
                yield samples, samples.frames
        elif header.size is not None and not header.is_open and there < header.size:
            yield sound, header.size * sound.samplerate // max(1, header.bytes_per_s)
        else:
            yield sound, sound.frames


class _Tail(io.FileIO):
    """A file without its first `start` bytes."""

    def __init__(self, path: str, start: int) -> None:
        super().__init__(path)
        self.start = start
        self.seek(0)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return super().seek(offset + self.start * (whence == os.SEEK_SET), whence) - self.start

    def tell(self) -> int:
        return super().tell() - self.start
