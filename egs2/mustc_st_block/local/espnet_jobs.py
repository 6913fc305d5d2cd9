"""Running ESPnet's commands in forked processes that share one import of it, their output in log files."""

import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kaldi_dir import source_text, target_text
from parallel import die_with

from espnet_ext.audio.reader import is_archive
from espnet_ext.cli import describe, is_full, print_error
from espnet_ext.errors import UserError
from espnet_ext.files import read_table

TAIL_LINES = 15
USER_ERROR, DISK_FULL = 2, 28  # exit codes of a job


@dataclass(frozen=True)
class Job:
    """A function to run in its own process; its output is added to `log`."""

    name: str
    run: Callable[[], object]
    log: Path


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").split("\n")[-lines - 1 :]).rstrip()


def _child(job: Job, parent: int) -> None:
    """Run a job with both output streams in its log. On a full disk the exit code speaks, the log may not take it."""
    die_with(parent)
    with open(job.log, "a", encoding="utf-8") as stream:
        os.dup2(stream.fileno(), sys.stdout.fileno())
        os.dup2(stream.fileno(), sys.stderr.fileno())
    code = 0
    try:
        job.run()
    except UserError as error:
        code = print_error(str(error))
    except OSError as error:
        code = DISK_FULL if is_full(error) else print_error(describe(error))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001 - the traceback belongs into the log, whatever it is
        traceback.print_exc()
        code = 1
    with suppress(OSError):
        sys.stdout.flush()
    os._exit(code)


def run_jobs(
    jobs: Sequence[Job],
    parallel: int,
    on_line: Callable[[Job, str], None] | None = None,
    on_end: Callable[[Job, int], None] | None = None,
) -> dict[Job, int]:
    """Run jobs, at most `parallel` at once, and return those that failed with their exit codes.

    Args:
        on_line: called with every whole line that a job adds to its log.
        on_end: called with a job and its exit code when it ends.
    """
    fork = multiprocessing.get_context("fork")
    waiting, running, failed = list(jobs), {}, {}
    while waiting or running:
        while waiting and len(running) < parallel:
            job = waiting.pop(0)
            job.log.parent.mkdir(parents=True, exist_ok=True)
            job.log.touch()
            log = open(job.log, encoding="utf-8", errors="replace")  # noqa: SIM115 - closed when the job ends
            log.seek(0, os.SEEK_END)
            process = fork.Process(target=_child, args=(job, os.getpid()))
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
                    failed[job] = process.exitcode
                if on_end:
                    on_end(job, process.exitcode)
    return failed


def reason(job: Job, code: int) -> str:
    """Why a job failed, in a few words."""
    if code == USER_ERROR:
        return f"{job.name}: {tail(job.log, 1).removeprefix('error: ')}"
    if code == DISK_FULL:
        return f"{job.name}: no space left for its files; make room, then run this again: it goes on where it was"
    if code < 0:
        return f"{job.name} was killed by {signal.Signals(-code).name}, see {job.log}"
    return f"{job.name} failed, see {job.log}"


def fail(failed: Mapping[Job, int]) -> None:
    """Raise UserError that names the failed jobs, if any, after the log's tail of one that ended unexpectedly."""
    for job in [job for job, code in failed.items() if code not in (USER_ERROR, DISK_FULL)][:1]:
        print(tail(job.log), file=sys.stderr)
    if failed:
        raise UserError("; ".join(reason(job, code) for job, code in failed.items()))


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
            return {"text": source_text(self.train)}
        return {"text": target_text(self.tgt_lang), "src_text": source_text(self.train)}

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
            entries = [f"{directory}/wav.scp,speech,{audio_type(directory / 'wav.scp')}"]
            entries += [f"{directory}/{name},{key},text" for key, name in self.texts().items()]
            for entry in entries:
                options += [f"--{split}_data_path_and_name_and_type", entry]
        return options


def audio_type(wav_scp: Path) -> str:
    """ESPnet's name for what a wav.scp holds."""
    return "kaldi_ark" if all(map(is_archive, read_table(wav_scp).values())) else "sound"


def espnet_command(task: str) -> Callable[[list[str]], None]:
    """`main` of `espnet2.bin.asr_train` or `espnet2.bin.st_train`."""
    import espnet_ext.quiet_import  # noqa: F401 - before ESPnet

    if task == "asr":
        from espnet2.bin.asr_train import main
    else:
        from espnet2.bin.st_train import main
    return main
