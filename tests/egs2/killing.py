"""Running a program's `main` in a forked process that is killed, or meets a full disk, at a chosen moment."""

import hashlib
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

WRITES = os.O_WRONLY | os.O_RDWR
TIMED = ("stats.json", "scores.json", "per_utt.tsv", "instances.log", "results.tsv", "report.md")  # hold wall clocks


def fork(work: Callable[[], object]) -> tuple[int, str]:
    """Exit status of `work` in a child (its signal as a negative number, else its code) and all output.

    Returns when the child and every process that it has started are gone.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            os.close(writing)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            work()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        except Exception:  # noqa: BLE001 - the test shows it
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stream:
        output = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), output


def kill_at(event: int) -> None:
    """Kill this process at its `event`-th change of a file: opening to write, renaming, removing, linking.

    Forked children count on from where they were forked, and are killed alike.
    """
    count = 0

    def hook(name: str, args: tuple) -> None:
        nonlocal count
        writes = name == "open" and isinstance(args[2], int) and args[2] & WRITES and "/log/" not in str(args[0])
        if writes or name in ("os.rename", "os.remove", "os.symlink", "os.mkdir", "os.rmdir"):
            count += 1
            if count == event:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def file_size_limit(size: int) -> None:
    """Let every write of this process fail that makes a file larger than `size` bytes, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def contents(directory: Path) -> dict[str, str]:
    """A hash of each file by name: of tensors and texts, without logs, locks, marks and measured times."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        hidden = path.name.startswith(".") and not path.name.endswith(".tmp")
        if not path.is_file() or hidden or "log/" in f"{name}/" or path.name == "checkpoint.pth":
            continue
        found[name] = hashlib.sha256(_content(path)).hexdigest()
    return found


def _content(path: Path) -> bytes:
    if path.suffix == ".pth":
        state = torch.load(path, map_location="cpu", weights_only=True)
        return b"".join(name.encode() + state[name].numpy().tobytes() for name in sorted(state))
    if path.name == "instances.log":
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return repr([(record["utt_id"], record["prediction"], record["delays"]) for record in records]).encode()
    if path.name == "translations.jsonl":
        return b"".join(sorted(path.read_bytes().splitlines()))
    if path.name in ("scores.json", "stats.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        return repr([(key, record.get(key)) for key in ("BLEU", "LAAL", "decoder_forwards", "system")]).encode()
    return b"" if path.name in TIMED else path.read_bytes()
