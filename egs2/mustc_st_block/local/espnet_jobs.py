"""Running ESPnet's commands in forked processes that share one import of it, their output in log files."""

import ctypes
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kaldi_dir import SOURCE_TEXT, target_text

from espnet_ext.errors import UserError

TAIL_LINES = 15
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Job:
    """A function to run in its own process; its output is added to `log`."""

    name: str
    run: Callable[[], object]
    log: Path


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").split("\n")[-lines - 1 :]).rstrip()


def die_with_parent(number: int) -> None:
    """Let this process get a signal when its parent dies, so that no orphan goes on writing."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)


def _child(job: Job) -> None:
    """Run a job with both output streams in its log."""
    die_with_parent(signal.SIGKILL)
    with open(job.log, "a", encoding="utf-8") as stream:
        os.dup2(stream.fileno(), sys.stdout.fileno())
        os.dup2(stream.fileno(), sys.stderr.fileno())
    code = 0
    try:
        job.run()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 2
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001 - the traceback belongs into the log, whatever it is
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_jobs(
    jobs: Sequence[Job],
    parallel: int,
    on_line: Callable[[Job, str], None] | None = None,
    on_end: Callable[[Job, int], None] | None = None,
) -> list[Job]:
    """Run jobs, at most `parallel` at once, and return those that failed.

    Args:
        on_line: called with every whole line that a job adds to its log.
        on_end: called with a job and its exit code when it ends.
    """
    fork = multiprocessing.get_context("fork")
    waiting, running, failed = list(jobs), {}, []
    while waiting or running:
        while waiting and len(running) < parallel:
            job = waiting.pop(0)
            job.log.parent.mkdir(parents=True, exist_ok=True)
            job.log.touch()
            log = open(job.log, encoding="utf-8", errors="replace")  # noqa: SIM115 - closed when the job ends
            log.seek(0, os.SEEK_END)
            process = fork.Process(target=_child, args=(job,))
            process.start()
            running[process] = (job, log)
        time.sleep(0.1)
        for process, (job, log) in list(running.items()):
            ended = not process.is_alive()
            while on_line and (line := log.readline()):
                while not line.endswith("\n") and not ended:
                    time.sleep(0.01)
                    line += log.readline()
                on_line(job, line.rstrip("\n"))
            if ended:
                log.close()
                del running[process]
                if process.exitcode != 0:
                    failed.append(job)
                if on_end:
                    on_end(job, process.exitcode)
    return failed


def fail(jobs: Sequence[Job]) -> None:
    """Raise UserError that names the failed jobs, after the tail of the first log; nothing when there are none."""
    if jobs:
        print(tail(jobs[0].log), file=sys.stderr)
        raise UserError("; ".join(f"{job.name} failed, see {job.log}" for job in jobs))


def limit_threads(count: int) -> None:
    """Threads of each job; to be called before torch is imported."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(max(1, count))


@dataclass(frozen=True)
class TrainData:
    """What a model is trained on: dumped directories, the token directory, the task (asr or st), the language."""

    task: str
    tgt_lang: str
    train: Path
    dev: Path
    tokens: Path

    def texts(self) -> dict[str, str]:
        """ESPnet's data name to the table's file name; for `asr` the source text is the target."""
        if self.task == "asr":
            return {"text": SOURCE_TEXT}
        return {"text": target_text(self.tgt_lang), "src_text": SOURCE_TEXT}

    def files(self) -> list[Path]:
        """Every file that the training depends on, but for the audio itself."""
        names = ["wav.scp", "utt2num_samples", *self.texts().values()]
        tokens = [self.tokens / side / name for side in ("src", "tgt") for name in ("bpe.model", "tokens.txt")]
        return [directory / name for directory in (self.train, self.dev) for name in names] + tokens

    def arguments(self) -> list[str]:
        """ESPnet's options for data and tokens. Paths are absolute: the model's config works from any directory."""
        sides = {"asr": {"": "src"}, "st": {"": "tgt", "src_": "src"}}[self.task]
        options = []
        for prefix, side in sides.items():
            directory = (self.tokens / side).resolve()
            options += [f"--{prefix}token_type", "bpe", f"--{prefix}token_list", str(directory / "tokens.txt")]
            options += [f"--{prefix}bpemodel", str(directory / "bpe.model")]
        for split, directory in (("train", self.train.resolve()), ("valid", self.dev.resolve())):
            entries = [f"{directory}/wav.scp,speech,sound"]
            entries += [f"{directory}/{name},{key},text" for key, name in self.texts().items()]
            for entry in entries:
                options += [f"--{split}_data_path_and_name_and_type", entry]
        return options


def espnet_command(task: str) -> Callable[[list[str]], None]:
    """`main` of `espnet2.bin.asr_train` or `espnet2.bin.st_train`."""
    import espnet_ext.quiet_import  # noqa: F401 - before ESPnet

    if task == "asr":
        from espnet2.bin.asr_train import main
    else:
        from espnet2.bin.st_train import main
    return main
