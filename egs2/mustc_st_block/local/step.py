"""Marks of finished work: a step is done when its settings and inputs are unchanged and its outputs are whole."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from espnet_ext.files import atomic_write


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, or `absent`."""
    if not path.is_file():
        return "absent"
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class Step:
    """One unit of a stage, remembered in a marker file that is written last.

    Args:
        marker: where the mark is kept.
        settings: everything but files that the outputs depend on (JSON values).
        inputs: files that the outputs depend on; their contents are hashed.
    """

    def __init__(self, marker: Path, settings: Mapping[str, object], inputs: Iterable[Path] = ()) -> None:
        self.marker = marker
        content = {"settings": dict(settings), "inputs": {str(path): file_digest(path) for path in inputs}}
        self.key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def is_done(self, what: str | Path | None) -> bool:
        """Whether the mark is this step's and all outputs have their recorded sizes; says so unless `what` is None."""
        try:
            record = json.loads(self.marker.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return False
        outputs = {self.marker.parent / name: size for name, size in record["outputs"].items()}
        whole = all(path.is_file() and path.stat().st_size == size for path, size in outputs.items())
        if record["key"] != self.key or not whole:
            return False
        if what is not None:
            say(f"done already: {what}")
        return True

    def is_begun(self, directory: Path) -> bool:
        """Whether what lies in `directory` was begun by this very step."""
        origin = directory / ".origin"
        return origin.is_file() and origin.read_text(encoding="utf-8") == self.key

    def begin(self, directory: Path) -> None:
        """Empty `directory` and note there that it belongs to this step."""
        shutil.rmtree(directory, ignore_errors=True)
        with atomic_write(directory / ".origin") as stream:
            stream.write(self.key)

    def resume(self, directory: Path) -> None:
        """Keep `directory` if this very step has begun it, else begin it."""
        if not self.is_begun(directory):
            self.begin(directory)

    def finish(self, outputs: Iterable[Path]) -> None:
        """Write the mark; `outputs` lie in or below the marker's directory."""
        sizes = {str(path.relative_to(self.marker.parent)): path.stat().st_size for path in outputs}
        with atomic_write(self.marker) as stream:
            json.dump({"key": self.key, "outputs": sizes}, stream, indent=1)


def say(message: str) -> None:
    """A progress line, with the number of the stage that run.sh is in."""
    stage = os.environ.get("STAGE")
    print(f"stage {stage}: {message}" if stage else message, flush=True)


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """A temporary directory beside `path` that takes its place when the block ends without an exception."""
    temporary, old = (path.with_name(f".{path.name}.{kind}") for kind in ("new", "old"))
    for leftover in (temporary, old):
        shutil.rmtree(leftover, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        if path.exists():
            path.rename(old)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
