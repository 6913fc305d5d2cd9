"""MuST-C's layout on disk, whole or absent, and the manifest by which a later call knows it again."""

import fcntl
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import tempfile
import wave
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write
from mini_corpus.synthesis import SAMPLE_RATE
from mini_corpus.talk import Segment, Talk, record, segments

MANIFEST = "manifest.json"


def write_corpus(
    output_dir: Path,
    talks: Sequence[Talk],
    languages: Sequence[str],
    nj: int,
    progress: Callable[[Iterable, int], Iterable],
) -> None:
    """Record all talks in `nj` processes and write `en-XX/data/SPLIT/{wav,txt}` for every target language.

    The recordings are the same for every language: hard links, or copies where the file system has no links.
    """
    first, *others = languages
    lines: dict[str, list[tuple[Talk, Segment]]] = {talk.split: [] for talk in talks}
    for split in lines:
        for language in languages:
            for kind in ("wav", "txt"):
                (_data(output_dir, language, split) / kind).mkdir(parents=True)
    jobs = [(talk, _data(output_dir, first, talk.split) / "wav" / f"ted_{talk.number}.wav") for talk in talks]
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(nj, len(talks)), _leave_interrupts_to_parent) as pool:
        for talk, cut in zip(talks, progress(pool.imap(_record_talk, jobs), len(talks)), strict=True):
            lines[talk.split].extend((talk, segment) for segment in cut)
    for language in others:
        for _, path in jobs:
            _link(path, output_dir / f"en-{language}" / path.relative_to(output_dir / f"en-{first}"))
    for language in languages:
        for split, rows in lines.items():
            _write_text(_data(output_dir, language, split) / "txt", split, language, rows)


def _data(output_dir: Path, language: str, split: str) -> Path:
    return output_dir / f"en-{language}" / "data" / split


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _record_talk(job: tuple[Talk, Path]) -> list[Segment]:
    talk, path = job
    samples, groups = record(talk)
    _write_wav(path, samples)
    return segments(talk, groups)


def _write_wav(path: Path, samples: np.ndarray) -> None:
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(SAMPLE_RATE)
        stream.writeframes(samples.astype("<i2").tobytes())


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _write_text(folder: Path, split: str, language: str, rows: Sequence[tuple[Talk, Segment]]) -> None:
    """The yaml as MuST-C v1 writes it, and the two texts, a line each for every segment."""
    for name in ("en", language):
        with atomic_write(folder / f"{split}.{name}") as stream:
            stream.writelines(f"{segment.text[name]}\n" for _, segment in rows)
    with atomic_write(folder / f"{split}.yaml") as stream:
        for talk, segment in rows:
            stream.write(
                f"- {{duration: {segment.duration:.6f}, offset: {segment.offset:.6f}, rW: {segment.words}, uW: 0, "
                f"speaker_id: spk.{talk.number}, wav: ted_{talk.number}.wav}}\n"
            )


def write_manifest(folder: Path, settings: dict) -> None:
    """`manifest.json`: the settings, and size and SHA-256 of every file of the folder."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            files[path.relative_to(folder).as_posix()] = {"size": path.stat().st_size, "sha256": sha256(path)}
    with atomic_write(folder / MANIFEST) as stream:
        json.dump({"settings": settings, "files": files}, stream, indent=1)


def read_manifest(folder: Path) -> dict:
    """The manifest's `settings` and `files`. Raises UserError when it cannot be read as one."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        if not isinstance(manifest["settings"]["languages"], list) or not isinstance(manifest["files"], dict):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} is damaged") from None
    return manifest


def check_files(folder: Path, manifest: dict) -> None:
    """Raises UserError naming the first file that differs from the manifest."""
    for name, expected in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise UserError(f"{path} is missing")
        if path.stat().st_size != expected["size"]:
            raise UserError(f"{path} has {path.stat().st_size} bytes instead of {expected['size']}")
        if sha256(path) != expected["sha256"]:
            raise UserError(f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}")


def sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def whole_or_absent(output_dir: Path) -> Iterator[Path]:
    """A temporary folder beside `output_dir` that takes its place when the block ends without an exception.

    What a killed run left is removed first, so only one process at a time may be here: see `locked`.
    """
    name = f".{output_dir.name}."
    for leftover in output_dir.parent.glob(f"{name}*.tmp"):
        shutil.rmtree(leftover)
    temporary = Path(tempfile.mkdtemp(prefix=name, suffix=".tmp", dir=output_dir.parent))
    temporary.chmod(0o755)
    try:
        yield temporary
        if output_dir.exists():
            shutil.rmtree(output_dir)
        os.replace(temporary, output_dir)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def locked(output_dir: Path) -> Iterator[None]:
    """One process at a time makes or checks `output_dir`; another waits here."""
    output_dir.parent.mkdir(parents=True, exist_ok=True)
    with open(output_dir.with_name(f".{output_dir.name}.lock"), "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
