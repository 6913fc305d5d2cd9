"""Run every decode of a grid that is not there yet: jobs that each decode a shard of the utterances, then a merge."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from grid import Decode, add_grid_options, plan_from_args
from kaldi_dir import validate
from parallel import die_with
from shards import Shard, keep_only, make_step, merge, split
from step import Step, say

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.lock import locked

LOOK_S = 0.5
GRACE_S = 90  # for files to appear after the jobs have ended: network file systems keep listings for a minute
LOCAL_PROGRAMS = ("run.py", "run.pl")


def count_jobs(wanted: int, utterances: int, gpus: int | None) -> int:
    """So many jobs as are wanted, but not more than there is work or there are GPUs here; says so when it is fewer."""
    jobs = min(wanted, utterances, wanted if gpus is None else max(gpus, 1))
    if jobs < wanted:
        reason = f"{utterances} utterances" if jobs == utterances else f"{gpus} GPU here"
        say(f"{reason}, so {jobs} {'job' if jobs == 1 else 'jobs'} instead of {wanted}")
    return jobs


def local_gpus(cmd: list[str], ngpu: int) -> int | None:
    """The GPUs of this machine when the jobs run here and need one."""
    if not ngpu or Path(cmd[0]).name not in LOCAL_PROGRAMS:
        return None
    from torch.cuda import device_count

    return device_count()


def job_command(args: object, jobs: int, log: Path) -> list[str]:
    """The command line that runs all jobs and waits for them; JOB in the name of the log is a job's number."""
    worker = [sys.executable, str(Path(__file__).with_name("decode_shard.py")), "--job", "JOB", "--nj", str(jobs)]
    for name in ("grid", "exp_dir", "data_dir", "src_lang", "tgt_lang", "ngpu"):
        worker += [f"--{name}", str(getattr(args, name))]
    worker += ["--sets", *args.sets, "--models", *args.models]
    return [*shlex.split(args.cmd), f"JOB=1:{jobs}", str(log), *worker]


def run_and_merge(command: list[str], steps: Mapping[Decode, Step], shards: Mapping[Decode, list[Shard]]) -> None:
    """Run the jobs; merge each decode when its shards are whole, with a line."""
    begin, waiting = time.monotonic(), list(shards)
    deadline = begin + GRACE_S
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        while waiting:
            ended = process.poll() is not None  # before the look at the shards
            for decode in list(waiting):
                if merge(decode, steps[decode], shards[decode]):
                    waiting.remove(decode)
                    count, passed = len(shards) - len(waiting), time.monotonic() - begin
                    left = passed / count * len(waiting)
                    say(f"{count}/{len(shards)}  {decode.name}  done  {passed:.0f} s, {left:.0f} s to go")
            if ended and (process.returncode or time.monotonic() > deadline):
                break
            deadline = deadline if ended else time.monotonic() + GRACE_S
            time.sleep(LOOK_S)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if code := process.wait():
        sys.exit(code)  # the job program has said what failed
    if waiting:
        raise UserError(f"{waiting[0].directory}: not decoded although all jobs have ended well; see its log")


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    add_grid_options(parser)
    parser.add_argument("--ngpu", type=int, default=0, choices=(0, 1), help="1: decode on GPUs, one a job")
    parser.add_argument("--cmd", default="utils/run.py", help="job program, in Kaldi's calling form")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Skip what is whole, go on with what was interrupted, and name what failed after all others have ended."""
    args = get_parser().parse_args(argv)
    die_with(os.getppid(), signal.SIGTERM)
    decodes = plan_from_args(args)
    sizes = {data: validate(data) for data in dict.fromkeys(decode.data for decode in decodes)}
    steps = {decode: make_step(decode) for decode in decodes}
    waiting = [decode for decode, step in steps.items() if not step.is_done(None)]
    if len(waiting) < len(decodes):
        say(f"done already: {len(decodes) - len(waiting)} of {len(decodes)} decodes")
    if not waiting:
        return
    cmd = shlex.split(args.cmd)
    jobs = count_jobs(args.nj, max(sizes[decode.data] for decode in waiting), local_gpus(cmd, args.ngpu))
    models = sorted({decode.directory.parents[1] for decode in waiting})
    with ExitStack() as locks:
        for directory in models:
            locks.enter_context(locked(directory))
        shards = {decode: split(decode, steps[decode], jobs) for decode in waiting}
        for decode in waiting:
            steps[decode].resume(decode.directory)
            keep_only(decode, shards[decode])
        say(f"{len(waiting)} decodes, {jobs} at a time")
        log = args.exp_dir / "decode" / "log" / f"{models[0].name}.JOB.log"
        run_and_merge(job_command(args, jobs, log), steps, shards)


if __name__ == "__main__":
    run(main)
