"""A decode in shards, each with some of the utterances, a directory and a mark; when all are whole, they are merged."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import yaml
from grid import Decode
from step import Step

from espnet_ext.audio.reader import digest, read_recordings
from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write, read_table
from espnet_ext.log.instances import read_instances, totals, write_text

OUTPUTS = ("instances.log", "text", "stats.json")


def make_step(decode: Decode) -> Step:
    """What a whole decode depends on: options, model and input. Raises UserError when the model is not there."""
    model = [decode.model_dir / name for name in ("config.yaml", "model.pth")]
    for path in model:
        if not path.is_file():
            raise UserError(f"{path}: no such model; run stages 9 and 10 for {decode.model_dir.name}")
    return Step(decode.directory / ".done", asdict(decode.config), [*model, *decode.inputs])


@dataclass(frozen=True)
class Shard:
    """Part `number`, from 1, of a decode in `count` parts; `step` is its mark."""

    decode: Decode
    number: int
    directory: Path
    step: Step
    keys: list[str]

    def write_keys(self) -> Path:
        """The list of its utterances, as a file."""
        path = self.directory / "keys"
        with atomic_write(path) as stream:
            stream.writelines(f"{key}\n" for key in self.keys)
        return path

    def finish(self) -> None:
        """Mark the shard as whole."""
        self.step.finish(self.directory / name for name in ("config.yaml", *OUTPUTS))


def split(decode: Decode, step: Step, jobs: int) -> list[Shard]:
    """The shards of a decode for so many jobs, not more than it has utterances; these are dealt out one by one."""
    keys = list(read_table(decode.segments or decode.data / "wav.scp"))
    count = min(jobs, len(keys))
    shards = []
    for number in range(1, count + 1):
        directory = decode.directory / "shards" / f"{number}-of-{count}"
        mark = Step(directory / ".done", {"decode": step.key, "shard": number, "shards": count})
        shards.append(Shard(decode, number, directory, mark, keys[number - 1 :: count]))
    return shards


def keep_only(decode: Decode, shards: Sequence[Shard]) -> None:
    """Remove the shards of a run with another number of jobs, and what a killed merge has left half-written."""
    for leftover in decode.directory.glob(".*.tmp"):
        leftover.unlink()
    for path in (decode.directory / "shards").glob("*-of-*"):
        if path.is_dir() and path not in [shard.directory for shard in shards]:
            shutil.rmtree(path)


def merge(decode: Decode, step: Step, shards: Sequence[Shard]) -> bool:
    """Write what one job would have written, if all shards are whole, mark it and remove them; says whether they were.

    Raises UserError when the shards do not hold every utterance once.
    """
    if not all(shard.step.is_done(None) for shard in shards):
        return False
    recordings = read_recordings(decode.data / "wav.scp", decode.segments)
    instances = {}
    for shard in shards:
        part = {instance.utt_id: instance for instance in read_instances(shard.directory / "instances.log")}
        if list(part) != shard.keys:
            raise UserError(f"{shard.directory}: does not hold the utterances of its list; remove it and run stage 11")
        instances |= part
    merged = [replace(instances[recording.key], index=n) for n, recording in enumerate(recordings)]
    stats = [json.loads((shard.directory / "stats.json").read_text(encoding="utf-8")) for shard in shards]
    settings = yaml.safe_load((shards[0].directory / "config.yaml").read_text(encoding="utf-8"))
    with atomic_write(decode.directory / "config.yaml") as stream:
        yaml.safe_dump(settings | {"input": digest(recordings)}, stream, sort_keys=False)
    with atomic_write(decode.directory / "instances.log") as stream:
        stream.writelines(instance.to_json() + "\n" for instance in merged)
    write_text(decode.directory / "text", merged)
    peak = max(part["peak_rss_mb"] for part in stats)
    with atomic_write(decode.directory / "stats.json") as stream:
        json.dump(stats[-1] | totals(merged) | {"peak_rss_mb": peak, "jobs": len(shards)}, stream, indent=1)
    step.finish(decode.directory / name for name in OUTPUTS)
    shutil.rmtree(decode.directory / "shards")
    return True
