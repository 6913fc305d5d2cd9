#!/usr/bin/env python3
"""Runs jobs on this machine: run.py [--max-jobs-run M] [JOB=1:N] LOG COMMAND...

JOB is replaced by 1 to N in LOG and in COMMAND, and all jobs run at once, or M at a time. Without JOB= there is one
job, whose output is shown as well. The options of slurm.py (--mem, --time, --gpu, --num-threads, --num-nodes) are
accepted and have no effect. Exits with the code of the first job that failed.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import IO

from job_call import MARK, PR_SET_PDEATHSIG, Call, Stop, claim, die, fail, of_code, parse, positive

OPTIONS = ("max_jobs_run", "mem", "time", "gpu", "num_threads", "num_nodes")
POLL_S = 0.05
KILL_AFTER_S = 10


def copy(source: IO[bytes], job: "Job", terminal: IO[bytes]) -> None:
    """Pass on what a job prints, as it comes; to its log alone when nobody reads the other end any more."""
    while block := source.read1():
        job.write(block)
        with suppress(BrokenPipeError):
            terminal.write(block)
            terminal.flush()


class Job:
    """One running job, in a session of its own, so that a signal reaches all of its processes."""

    def __init__(self, call: Call, number: int) -> None:
        self.log = open(call.log_of(number), "wb", buffering=0)  # noqa: SIM115 - closed by `end`
        self.lost = ""  # why the log is not whole
        command = call.fill(call.command, number)
        self.note(f"started: {command}")
        shown = call.variable is None
        self.process = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if shown else self.log,
            stderr=subprocess.PIPE if shown else self.log,
            start_new_session=True,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
        )
        streams = [(self.process.stdout, sys.stdout.buffer), (self.process.stderr, sys.stderr.buffer)] if shown else []
        self.copies = [threading.Thread(target=copy, args=(source, self, to), daemon=True) for source, to in streams]
        for thread in self.copies:
            thread.start()

    def write(self, text: bytes) -> None:
        """Add to the log. The disk may be full: the job goes on, and what it prints is shown all the same."""
        try:
            self.log.write(text)
        except OSError as error:
            self.lost = f" (its log cannot be written: {error.strerror}; make room, then run this again)"

    def note(self, text: str) -> None:
        """A line of this program in the log."""
        self.write(f"{MARK}{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n".encode())

    def kill(self, number: int) -> None:
        """Send a signal to all processes of the job."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def end(self) -> int:
        """The exit code, as a shell gives it, of a process that has ended."""
        for thread in self.copies:
            thread.join(KILL_AFTER_S)  # not for ever: a process left behind may hold the stream
        code = self.process.returncode
        code = 128 - code if code < 0 else code
        self.note(of_code(code))
        self.log.close()
        return code


def interrupt(jobs: dict[int, Job], number: int) -> None:
    """Pass a signal on to the jobs, give them time to end, and kill what is left of them."""
    for job in jobs.values():
        job.kill(number)
    deadline = time.monotonic() + KILL_AFTER_S
    for job in jobs.values():
        with suppress(subprocess.TimeoutExpired):
            job.process.wait(max(0, deadline - time.monotonic()))
        job.kill(signal.SIGKILL)
        job.process.wait()
        job.end()


def run_all(call: Call, parallel: int, stop: Stop) -> dict[int, tuple[int, str]]:
    """Exit codes of the jobs that failed, with words for them; exits when a signal comes."""
    waiting, running, failed = list(call.numbers), {}, {}
    while waiting or running:
        while waiting and len(running) < parallel:
            number = waiting.pop(0)
            running[number] = Job(call, number)
        if stop.wait(POLL_S):
            interrupt(running, stop.signal)
            sys.exit(128 + stop.signal)
        for number, job in list(running.items()):
            if job.process.poll() is not None:
                del running[number]
                if code := job.end():
                    failed[number] = code, of_code(code) + job.lost
    return failed


def main() -> None:
    """Run the jobs of the command line."""
    call = parse(sys.argv[1:], __doc__)
    for name in call.options:
        if name not in OPTIONS:
            die(f"unknown option --{name.replace('_', '-')}; known: {', '.join(OPTIONS)}")
    parallel = positive(call.options, "max_jobs_run") or len(call.numbers)
    stop = Stop()
    with claim(call):
        failed = run_all(call, parallel, stop)
    if failed and call.variable is None and failed[1][0] <= 128:
        sys.exit(failed[1][0])  # its message has been shown
    if failed:
        fail(call, {n: words for n, (_, words) in failed.items()}, {n: code for n, (code, _) in failed.items()})


if __name__ == "__main__":
    main()
