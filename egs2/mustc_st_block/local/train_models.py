"""Train ESPnet models, several side by side, with a line an epoch; an interrupted training goes on or starts clean."""

import os
import re
import subprocess
import sys
import time
import uuid
import zipfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import yaml
from collect_stats import add_data_options
from espnet_jobs import Job, TrainData, fail, limit_threads, run_jobs
from kaldi_dir import validate
from step import Step, say

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import read_lines, whole_save
from espnet_ext.lock import locked

INIT_PREFIX = "init_param: "


@dataclass
class Training:
    """One model: its configuration, its directory, the mark of its being done, the configuration's content.

    `changes` go before the configuration.
    """

    config: Path
    directory: Path
    step: Step
    changes: dict[str, int] = field(default_factory=dict)

    @cached_property
    def settings(self) -> dict:
        """The configuration's content, with the changes."""
        return yaml.safe_load("\n".join(read_lines(self.config))) | self.changes

    @property
    def options(self) -> list[str]:
        """ESPnet's options that make this training of this configuration."""
        changes = [word for key, value in self.changes.items() for word in (f"--{key}", str(value))]
        return ["--config", str(self.config), *changes, "--output_dir", str(self.directory)]

    @property
    def name(self) -> str:
        return self.directory.name

    def epochs(self) -> dict[int, Path]:
        """Epoch files by number."""
        return {int(p.name.removesuffix("epoch.pth")): p for p in self.directory.glob("*epoch.pth") if p.name[0] != "."}


def epoch_line(line: str) -> str | None:
    """What a person wants to know of ESPnet's `Nepoch results:` log line; None for any other line."""
    if not (found := re.search(r"(\d+)epoch results: (.*)", line)):
        return None
    parts = {}
    for phase, values in re.findall(r"\[(train|valid)\] (.*?)(?=, \[|$)", found[2]):
        parts[phase] = dict(re.findall(r"(\w+)=([^,]+)", values))
    shown = [("train", "loss"), ("train", "acc"), ("valid", "loss"), ("valid", "acc")]
    return f"epoch {found[1]}" + "".join(
        f"  {phase} {key} {parts[phase][key]}" for phase, key in shown if key in parts.get(phase, {})
    )


def is_whole(checkpoint: Path) -> bool:
    """Whether a file that `torch.save` has written is all there (it is a zip archive with checksums)."""
    try:
        with zipfile.ZipFile(checkpoint) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, OSError):
        return False


def restore_epoch(training: Training) -> int | None:
    """The epoch that the checkpoint stands at, with what ESPnet writes after it: the epoch's own file and the links.

    None when the checkpoint or the file of an earlier epoch is broken.
    """
    import torch
    from espnet2.torch_utils.safe_torch_load import safe_torch_load
    from espnet2.train.reporter import Reporter

    path = training.directory / "checkpoint.pth"
    if not is_whole(path):
        return None
    checkpoint = safe_torch_load(path, map_location="cpu")
    reporter = Reporter()
    reporter.load_state_dict(checkpoint["reporter"])
    epoch = reporter.get_epoch()
    own = training.directory / f"{epoch}epoch.pth"
    if not is_whole(own):
        whole_save(torch.save)(checkpoint["model"], own)
    links = {"latest.pth": epoch}
    for phase, key, mode in training.settings["best_model_criterion"]:
        links[f"{phase}.{key}.best.pth"] = reporter.get_best_epoch(phase, key, mode)
    for name, target in links.items():
        (training.directory / name).unlink(missing_ok=True)
        (training.directory / name).symlink_to(f"{target}epoch.pth")
    return epoch if all(is_whole(path) for path in training.epochs().values()) else None


def prepare_directory(training: Training) -> None:
    """Keep what an interrupted run of the same training has left if all of it is whole; else start clean.

    A model that was trained with other settings or data, or is broken, is moved aside, not deleted.
    """
    directory = training.directory
    if training.step.is_begun(directory):
        if not (directory / "checkpoint.pth").exists():
            return
        if epoch := restore_epoch(training):
            say(f"{training.name}: goes on after epoch {epoch}")
            return
        move_aside(training, "a checkpoint is broken, the training starts anew")
    elif training.epochs():
        move_aside(training, "settings or data have changed")
    training.step.begin(directory)


def move_aside(training: Training, why: str) -> None:
    """Make room for a training from the start; nothing that took long to make is deleted."""
    directory = training.directory
    aside = directory.with_name(f"{directory.name}.before-{time.strftime('%Y%m%dT%H%M%S')}")
    say(f"{training.name}: {why}; what was trained before is now {aside}")
    directory.rename(aside)


def nodes_command(task: str, arguments: list[str], directory: Path) -> list[str]:
    """One training on all nodes of the Slurm job that this process is in: one process a node, by ESPnet's launcher."""
    if "SLURM_JOB_ID" not in os.environ:
        raise UserError("--num_nodes: several nodes need a Slurm job (run.sh --backend slurm)")
    rendezvous = (directory / f".dist_init.{uuid.uuid4()}").resolve()
    cpus = os.environ.get("SLURM_CPUS_PER_TASK", "1")  # srun does not take it over from sbatch
    program = str(Path(__file__).with_name("whole_training.py"))
    launch = ["srun", "--export=ALL", f"--cpus-per-task={cpus}", sys.executable, program, task]
    return [*launch, *arguments, "--dist_launcher", "slurm", "--dist_init_method", f"file://{rendezvous}"]


def train(task: str, arguments: list[str], init_param: list[str], directory: Path, num_nodes: int) -> None:
    """Count the tensors that `init_param` will load, then train; runs in a process of its own."""
    from whole_training import TASKS

    command = TASKS[task].main
    if init_param:
        from espnet_ext.bin.check_init import count_loaded

        command(cmd=[*arguments, "--dry_run", "true", "--ngpu", "0"])  # writes config.yaml
        for item in init_param:
            report = count_loaded(item, directory / "config.yaml")
            print(f"{INIT_PREFIX}{item.split(':', 1)[1]}: {report}", flush=True)
        arguments = [*arguments, "--init_param", *init_param]
    arguments = [*arguments, "--resume", "true"]
    if num_nodes == 1:
        command(cmd=arguments)
    elif code := subprocess.run(nodes_command(task, arguments, directory), check=False).returncode:
        sys.exit(code)


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    add_data_options(parser)
    parser.add_argument("--stats_dir", type=Path, required=True, help="what collect_stats.py has written")
    parser.add_argument("--model", type=Path, nargs=2, action="append", required=True, metavar=("CONFIG", "DIR"))
    parser.add_argument("--init_param", nargs="+", default=[], help="FILE:SRC:DST[:EXCLUDE] ..., ESPnet's syntax")
    parser.add_argument("--max_epoch", type=int, help="end after this many epochs [the configuration's]")
    parser.add_argument("--nj", type=int, default=1, help="CPU cores for all models together")
    parser.add_argument("--ngpu", type=int, default=0, help="GPUs of one model, on each node; 0 trains on the CPU")
    parser.add_argument("--num_nodes", type=int, default=1, help="nodes of one model, those of this Slurm job")
    return parser


def plan(args: object, data: TrainData) -> list[Training]:
    """The trainings that are not done yet."""
    if not (args.stats_dir / ".done").is_file():
        raise UserError(f"{args.stats_dir}: no statistics, or not all of them; run the stage before")
    inputs = [*data.files(), args.stats_dir / "train" / "feats_stats.npz"]
    sources = sorted({Path(item.split(":")[0]) for item in args.init_param})
    for source in sources:
        if not source.is_file():
            raise UserError(f"{source}: no such model to initialise from; run stage 7")
    inputs += sources
    changes = {} if args.max_epoch is None else {"max_epoch": args.max_epoch}
    result = []
    for config, directory in args.model:
        settings = {"task": data.task, "init_param": args.init_param, **changes}
        training = Training(config, directory, Step(directory / ".done", settings, [config, *inputs]), changes)
        if not training.step.is_done(directory):
            result.append(training)
    return result


def shared_options(args: object, data: TrainData) -> list[str]:
    """ESPnet's options that all models of the call share."""
    stats = args.stats_dir.resolve()
    options = [
        *data.arguments(),
        "--normalize",
        "global_mvn",
        "--normalize_conf",
        f"stats_file={stats}/train/feats_stats.npz",
    ]
    for split in ("train", "valid"):
        for name in ("speech_shape", *(f"{key}_shape" for key in data.texts())):
            options += [f"--{split}_shape_file", f"{stats}/{split}/{name}"]
    return options


def gpu_options(settings: dict, ngpu: int, num_nodes: int = 1) -> list[str]:
    """ESPnet's options for `ngpu` GPUs on each node: a process each, which share the update of one GPU.

    A configuration says what one GPU holds at once (`batch_bins`) and how many of those make an update (`accum_grad`);
    ESPnet deals `batch_bins` out to all GPUs.
    """
    gpus = ngpu * num_nodes
    if gpus <= 1:
        return ["--ngpu", str(ngpu)]
    update = settings["batch_bins"] * settings["accum_grad"]
    accum_grad = -(-settings["accum_grad"] // gpus)
    options = ["--batch_bins", str(update // accum_grad), "--accum_grad", str(accum_grad)]
    return ["--ngpu", str(ngpu), "--multiprocessing_distributed", "true", *options]


class Progress:
    """Shows a line an epoch and marks a training as done when its process has ended well."""

    def __init__(self, trainings: dict[Job, Training]) -> None:
        self.trainings = trainings
        self.since = dict.fromkeys(trainings, time.monotonic())

    def on_line(self, job: Job, line: str) -> None:
        """A line of a training's log."""
        if line.startswith(INIT_PREFIX):
            say(f"{job.name}: {line}")
        elif text := epoch_line(line):
            now = time.monotonic()
            of_all = text.replace("  ", f"/{self.trainings[job].settings['max_epoch']}  ", 1)
            say(f"{job.name}: {of_all}  {now - self.since[job]:.0f} s")
            self.since[job] = now

    def on_end(self, job: Job, code: int) -> None:
        """The end of a training."""
        if code == 0:
            training = self.trainings[job]
            training.step.finish([training.directory / "config.yaml", *training.epochs().values()])


def main(argv: list[str] | None = None) -> None:
    """Train what is not done, as many models at a time as there are cores (one at a time on GPUs)."""
    args = get_parser().parse_args(argv)
    data = TrainData(args.task, args.tgt_lang, args.train_dir, args.dev_dir, args.token_dir)
    validate(data.train)
    validate(data.dev)
    trainings = plan(args, data)
    if not trainings:
        return
    parallel = 1 if args.ngpu else min(args.nj, len(trainings))
    if args.ngpu and args.nj > 1:
        say(f"{args.ngpu} GPU: one model at a time instead of {args.nj}")
    limit_threads(args.nj // parallel)
    import whole_training  # noqa: F401 - once, shared by the processes

    options = shared_options(args, data)
    with ExitStack() as locks:
        jobs = {}
        for training in trainings:
            locks.enter_context(locked(training.directory))
            prepare_directory(training)
            own = [*training.options, *options]
            own += gpu_options(training.settings, args.ngpu, args.num_nodes)
            work = partial(train, args.task, own, args.init_param, training.directory, args.num_nodes)
            jobs[Job(training.name, work, training.directory / "log" / "train.log")] = training
        logs = ", ".join(str(job.log) for job in jobs)
        say(f"training on {data.train}, {parallel} at a time; logs: {logs}")
        progress = Progress(jobs)
        fail(run_jobs(list(jobs), parallel, progress.on_line, progress.on_end))


if __name__ == "__main__":
    run(main)
