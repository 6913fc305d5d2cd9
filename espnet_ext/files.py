"""Reading Kaldi's text tables and writing files that are whole or absent."""

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from espnet_ext.errors import UserError


def check_output(path: str | Path, option: str, inputs: Iterable[str | Path | None]) -> None:
    """Raise UserError when a file to write, named by an option, is one of the command's inputs (None is none)."""
    if os.path.exists(path):
        for other in inputs:
            if other is not None and os.path.exists(other) and os.path.samefile(path, other):
                raise UserError(f"{option}: {path} is an input of this command, which it would replace; name another")


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO]:
    """Open a temporary file beside `path` and rename it into place when the block ends without an exception.

    Text is UTF-8 with `\\n` line ends whatever the locale. An error of writing (a full disk) names `path`.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(temporary, mode, **text) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def whole_save(save: Callable) -> Callable[[object, str | Path], None]:
    """`torch.save` (given as `save`) to a path, as `atomic_write` does.

    The content is serialised in memory first: torch turns a write that fails into an assertion about positions.
    """

    def whole(content: object, path: str | Path) -> None:
        buffer = io.BytesIO()
        save(content, buffer)
        with atomic_write(path, "wb") as stream:
            stream.write(buffer.getbuffer())

    return whole


def read_raw_lines(path: str | Path) -> list[str]:
    """Lines of a UTF-8 text file, split at `\\n` alone (as Kaldi and `wc -l` do), nothing else removed.

    Raises UserError when the file is missing or, naming the line, is not UTF-8.
    """
    try:
        content = Path(path).read_bytes()
        text = content.decode("utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a directory, a file is expected") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: not UTF-8 at byte {error.start} of the file") from None
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def read_lines(path: str | Path) -> list[str]:
    """`read_raw_lines` without a byte order mark and carriage returns before the line's end."""
    lines = [line.removesuffix("\r") for line in read_raw_lines(path)]
    return [lines[0].removeprefix("\ufeff"), *lines[1:]] if lines else lines


def read_table(path: str | Path, allow_empty: bool = False) -> dict[str, str]:
    """A Kaldi table (`KEY VALUE...` a line: wav.scp, text, segments, utt2spk) as a dict in file order.

    `allow_empty` admits a key without a value (an empty hypothesis or reference).
    Raises UserError, naming file and line, for a blank line, a key that repeats or a missing value.
    """
    table: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), start=1):
        key, _, value = line.replace("\t", " ", 1).partition(" ")
        value = value.strip(" ")
        if not key:
            raise UserError(f"{path}:{number}: line without a key")
        if key in table:
            raise UserError(f"{path}:{number}: key {key!r} occurs twice")
        if not value and not allow_empty:
            raise UserError(f"{path}:{number}: key {key!r} has no value")
        table[key] = value
    return table


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file, which names a model in logs."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
