"""Shapes and feature statistics of the training data, by ESPnet's own `--collect_stats`, over several jobs."""

import shutil
from functools import partial
from pathlib import Path

import yaml
from espnet_jobs import Job, TrainData, espnet_command, fail, limit_threads, run_jobs
from kaldi_dir import validate
from step import Step, say

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.files import atomic_write, check_output, read_lines, read_table
from espnet_ext.lock import locked

SPLITS = ("train", "valid")


def add_data_options(parser: ArgumentParser) -> None:
    """Options that `TrainData` is made from."""
    parser.add_argument("--task", choices=("asr", "st"), required=True)
    parser.add_argument("--tgt_lang", required=True)
    parser.add_argument("--train_dir", type=Path, required=True, help="dumped and filtered training data")
    parser.add_argument("--dev_dir", type=Path, required=True, help="dumped and filtered validation data")
    parser.add_argument("--token_dir", type=Path, required=True, help="holds src/ and tgt/ with bpe.model, tokens.txt")


def split_keys(data: Path, jobs: int, directory: Path, name: str) -> list[Path]:
    """Write the keys of a data directory, dealt out to `jobs` files."""
    keys = list(read_table(data / "wav.scp"))
    paths = [directory / f"{name}.{job}.keys" for job in range(1, jobs + 1)]
    for job, path in enumerate(paths):
        with atomic_write(path) as stream:
            stream.writelines(f"{key} 0\n" for key in keys[job::jobs])
    return paths


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    add_data_options(parser)
    parser.add_argument("--config", type=Path, required=True, help="ESPnet training configuration")
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--nj", type=int, default=1, help="parallel jobs")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Collect unless that is done."""
    args = get_parser().parse_args(argv)
    data = TrainData(args.task, args.tgt_lang, args.train_dir, args.dev_dir, args.token_dir)
    output = args.output_dir
    check_output(output, "output_dir", [data.train, data.dev, args.token_dir, args.config.parent])
    jobs = min(args.nj, validate(data.train), validate(data.dev))
    config = yaml.safe_load("\n".join(read_lines(args.config)))
    frontend = {key: value for key, value in config.items() if key.startswith("frontend")}
    step = Step(output / ".done", {"task": args.task, **frontend}, data.files())
    with locked(output):
        if not step.is_done(output):
            collect(args, data, jobs)
            step.finish(output / split / name for split in SPLITS for name in ("speech_shape", "feats_stats.npz"))


def collect(args: object, data: TrainData, jobs: int) -> None:
    """Run the jobs of parsed options, then aggregate what they have written."""
    output = args.output_dir
    if jobs < args.nj:
        say(f"{output}: {jobs} utterances are the fewest, so {jobs} jobs instead of {args.nj}")
    shutil.rmtree(output, ignore_errors=True)
    limit_threads(1)
    command = espnet_command(args.task)
    keys = zip(split_keys(data.train, jobs, output, "train"), split_keys(data.dev, jobs, output, "valid"), strict=True)
    parts, runs = [], []
    for number, (train_keys, valid_keys) in enumerate(keys, start=1):
        parts.append(output / f"part.{number}")
        options = ["--config", str(args.config), "--collect_stats", "true", "--normalize", "none", "--ngpu", "0"]
        options += ["--num_workers", "0", "--train_shape_file", str(train_keys), "--valid_shape_file", str(valid_keys)]
        options += ["--output_dir", str(parts[-1]), *data.arguments()]
        runs.append(Job(f"{output} job {number}", partial(command, options), output / "log" / f"stats.{number}.log"))
    say(f"{output}: shapes and statistics of {data.train} and {data.dev}, {jobs} jobs")
    fail(run_jobs(runs, jobs))

    from espnet2.bin.aggregate_stats_dirs import main as aggregate

    aggregate([option for part in parts for option in ("--input_dir", str(part))] + ["--output_dir", str(output)])
    for part in parts:
        shutil.rmtree(part)


if __name__ == "__main__":
    run(main)
