#!/usr/bin/env python3
"""Runs jobs on a Slurm cluster and waits for them: slurm.py [options] [JOB=1:N] LOG COMMAND...

JOB is replaced by 1 to N in LOG and in COMMAND; the jobs are one array job, M of them at a time with
--max-jobs-run M. Without JOB= there is one job, whose log is shown as it grows. Options: --mem 4G, --time 4:00:00,
--gpu 1, --num-threads 4 and whatever else the configuration defines (--config FILE; default: conf/slurm.conf).
A signal cancels the jobs. Exits with the code of the first job that failed.
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from job_call import MARK, Call, Stop, claim, die, fail, of_code, parse, positive
from slurm_conf import read_config

LOOK_S = 0.5  # between looks at the files that tasks leave
ASK_S = (1, 30)  # between questions to the controller: first, and at most
GRACE_S = 90  # for a file to appear after its task has ended: network file systems keep listings for a minute
SETTLE_S = 10  # for the controller to know why a job was killed
CANCEL_S = 60  # for a cancellation to get through
SUBMIT_S = 600  # for a submission to get through
WORDS = {
    "BOOT_FAIL": "lost its node, which did not boot",
    "CANCELLED": "was cancelled",
    "DEADLINE": "missed its deadline",
    "FAILED": "could not be started",
    "NODE_FAIL": "lost its node",
    "OUT_OF_MEMORY": "ran out of memory (--mem)",
    "PREEMPTED": "was preempted",
    "TIMEOUT": "reached its time limit (--time)",
}
UNREACHABLE = re.compile(r"unable to contact|timed out|connection refused|connect failure|temporarily", re.IGNORECASE)
QUIET = ("None", "Priority", "JobArrayTaskLimit")  # usual reasons for waiting
# What each task runs. It leaves `N.code` in the state directory when the command has ended; when Slurm ends it
# before, `N.left`: the time that was left of its limit.
SCRIPT = """#!/usr/bin/env bash
number={number} log={log} command={command} state={state}
{fill}
rm -f "$state/$number.left"
mkdir -p "$(dirname "$log")" || exit
trap 'timeout 5 squeue --noheader --jobs="$SLURM_JOB_ID" --format=%L >"$state/$number.left"; wait; exit 143' TERM
note() {{ echo "{mark}$(date "+%Y-%m-%d %H:%M:%S") $*"; }}
exec >>"$log" 2>&1 </dev/null
note "started on $(uname -n), job $SLURM_JOB_ID: $command"
bash -o pipefail -c "$command" &
wait $!
code=$?
note "ended with code $code"
echo $code >"$state/$number.new" && mv "$state/$number.new" "$state/$number.code"
exit $code
"""


FILL = "log=${{log//{variable}/$number}} command=${{command//{variable}/$number}}"


def say(message: str) -> None:
    """A line about the jobs, beside their output."""
    print(f"slurm: {message}", file=sys.stderr, flush=True)


def slurm(*command: str, text: str | None = None) -> subprocess.CompletedProcess:
    """Run a Slurm command in a session of its own, so that ctrl-C does not end it half-way."""
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, start_new_session=True, check=False)
    except FileNotFoundError:
        die(f"{command[0]}: no such program here; this machine does not submit to Slurm (choose local in cmd.sh)")


@dataclass
class Jobs:
    """Submitted jobs: the Slurm job's id, and the directory in which tasks leave their ends."""

    call: Call
    id: str
    state: Path

    def codes(self) -> dict[int, int]:
        """Exit codes of the jobs whose command has ended."""
        found = {}
        for path in self.state.glob("*.code"):
            found[int(path.stem)] = int(path.read_text(encoding="utf-8"))
        return found

    def ask(self) -> dict[int, tuple[str, str]] | None:
        """State and reason of each job that the controller remembers; None when it does not answer."""
        form = "--format=%K|%T|%r"
        answer = slurm("squeue", "--noheader", "--array", "--states=all", f"--jobs={self.id}", form)
        if answer.returncode:
            return {} if "Invalid job id" in answer.stderr else None
        rows = [line.strip().split("|", 2) for line in answer.stdout.splitlines() if line.count("|") >= 2]
        return {int(row[0]) if row[0].isdigit() else self.call.first: (row[1], row[2]) for row in rows}

    def was_ended(self, number: int) -> bool:
        """Whether Slurm has ended the job before its command had."""
        return (self.state / f"{number}.left").exists()

    def of_absent(self, number: int) -> str:
        """Words for a job that left no code and of which the controller says nothing."""
        if not self.was_ended(number):
            return "ended without a trace: its node or the whole job was killed"
        left = (self.state / f"{number}.left").read_text(encoding="utf-8")
        return WORDS["TIMEOUT" if re.fullmatch(r"\s*(0:00|INVALID)\s*", left) else "CANCELLED"]

    def why(self, number: int, code: int) -> str:
        """Words for a command that has failed: what the controller says of a kill, else the exit code."""
        deadline = time.monotonic() + SETTLE_S
        while code > 128 and time.monotonic() < deadline:
            state, _ = (self.ask() or {}).get(number, ("", ""))
            if state in WORDS and state != "FAILED":
                return WORDS[state]
            if state != "COMPLETING":
                break
            time.sleep(1)
        return of_code(code)

    def cancel(self, stop: Stop) -> None:
        """Cancel the jobs, wait until the controller says that none is left running, and exit."""
        say(f"cancelling job {self.id}")
        deadline, wait_s = time.monotonic() + CANCEL_S, 0.5
        while time.monotonic() < deadline:
            slurm("scancel", self.id)
            time.sleep(wait_s)
            wait_s *= 1.5
            states = self.ask()
            if states is not None and all(state in WORDS or state == "COMPLETED" for state, _ in states.values()):
                sys.exit(128 + stop.signal)
        die(f"job {self.id} could not be seen to end; cancel it with: scancel {self.id}", 128 + stop.signal)


def submit(call: Call, sbatch: list[str], state: Path, stop: Stop) -> Jobs:
    """Submit the jobs, again when the controller does not answer; exits with one line when it refuses them."""
    name = re.sub(r"\W+", "_", call.fill(Path(call.log).stem, call.first)) + state.suffix
    output = str(state).replace("%", "%%") + ("/slurm-%a.out" if call.variable else "/slurm-1.out")
    command = [*sbatch, "--parsable", f"--job-name={name}", f"--output={output}"]
    if call.variable:
        parallel = positive(call.options, "max_jobs_run")
        command.append(f"--array={call.first}-{call.last}" + (f"%{parallel}" if parallel else ""))
    script = SCRIPT.format(
        number="$SLURM_ARRAY_TASK_ID" if call.variable else call.first,
        fill=FILL.format(variable=call.variable) if call.variable else "",
        mark=MARK,
        log=shlex.quote(call.log),
        command=shlex.quote(call.command),
        state=shlex.quote(str(state)),
    )
    deadline, wait_s = time.monotonic() + SUBMIT_S, 1
    while True:
        answer = slurm(*command, text=script)
        if found := re.search(r"^(\d+)(;.*)?$", answer.stdout, re.MULTILINE):
            return Jobs(call, found[1], state)
        if not UNREACHABLE.search(answer.stderr) or time.monotonic() > deadline:
            die(f"{command[0]}: {answer.stderr or answer.stdout}")
        say("the controller does not answer, submitting again")
        wait_s = min(2 * wait_s, ASK_S[1])
        if stop.wait(wait_s):
            sys.exit(128 + stop.signal)
        # A submission that timed out may have got through.
        if known := slurm("squeue", "--noheader", "--me", f"--name={name}", "--format=%F").stdout.split():
            return Jobs(call, known[0], state)


class Follower:
    """Shows a log as it grows, without the lines that the job program has added."""

    def __init__(self, log: Path) -> None:
        self.log, self.position, self.rest = log, 0, b""

    def show(self, last: bool = False) -> None:
        """Show the lines that are new; the `last` time also one without a line end."""
        try:
            with open(self.log, "rb") as stream:
                stream.seek(self.position)
                new = stream.read()
        except FileNotFoundError:
            return
        self.position += len(new)
        *lines, self.rest = (self.rest + new).split(b"\n")
        if last and self.rest:
            lines.append(self.rest)
        for line in lines:
            if not line.startswith(MARK.encode()):
                sys.stdout.buffer.write(line + b"\n")
        sys.stdout.flush()


def wait(jobs: Jobs, follower: Follower | None, stop: Stop) -> tuple[dict[int, str], dict[int, int]]:
    """Wait for the end of all jobs: what went wrong, in words, and the exit codes.

    The files that tasks leave tell of most ends; the controller is asked, ever more seldom, for those that leave none.
    """
    problems: dict[int, str] = {}
    absent: dict[int, float] = {}  # jobs whose code should be there, and since when
    ask_s, next_ask, said = ASK_S[0], time.monotonic() + ASK_S[0], ""
    while True:
        if stop.wait(LOOK_S):
            jobs.cancel(stop)
        if follower:
            follower.show()
        codes = jobs.codes()
        waiting = [n for n in jobs.call.numbers if n not in codes and n not in problems]
        if not waiting:
            problems |= {n: jobs.why(n, code) for n, code in codes.items() if code}
            return problems, codes
        if time.monotonic() < next_ask:
            continue
        states = jobs.ask()
        ask_s = min(1.5 * ask_s, ASK_S[1])
        next_ask = time.monotonic() + ask_s
        codes = jobs.codes()  # a job may have ended since
        if states is None:
            said = tell(said, "the controller does not answer; the jobs go on, waiting")
            continue
        reasons = {}
        for number in (n for n in waiting if n not in codes):
            state, reason = states.get(number, ("", ""))
            if state in ("", "COMPLETED", "FAILED"):
                if time.monotonic() - absent.setdefault(number, time.monotonic()) > GRACE_S or jobs.was_ended(number):
                    problems[number] = WORDS.get(state) or jobs.of_absent(number)
            elif state in WORDS:
                problems[number] = WORDS[state]
            else:
                absent.pop(number, None)
                if state == "PENDING":
                    reasons[reason] = reasons.get(reason, 0) + 1
        pending = ", ".join(f"{count} ({reason})" for reason, count in reasons.items() if reason not in QUIET)
        said = tell(said, f"job {jobs.id} waits: {pending}" if pending else "")


def tell(said: str, message: str) -> str:
    """Say a message unless it was the last one said."""
    if message and message != said:
        say(message)
    return message


def main() -> None:
    """Submit the jobs of the command line and wait for them."""
    call = parse(sys.argv[1:], __doc__)
    config = read_config(Path(call.options.pop("config", "conf/slurm.conf")))
    positive(call.options, "max_jobs_run")
    sbatch = config.sbatch({name: value for name, value in call.options.items() if name != "max_jobs_run"})
    stop = Stop()
    with claim(call):
        problems, codes = run_all(call, sbatch, stop)
    if problems:
        fail(call, problems, codes)


def run_all(call: Call, sbatch: list[str], stop: Stop) -> tuple[dict[int, str], dict[int, int]]:
    """Submit the jobs and wait for them: words for those that did not end well, and their exit codes."""
    state = Path(tempfile.mkdtemp(prefix=".slurm.", dir=call.log_of(call.first).parent.absolute()))
    try:
        jobs = submit(call, sbatch, state, stop)
        log = call.log_of(call.first)
        say(f"job {jobs.id}: {len(call.numbers)} jobs, logs: {call.log}" if call.variable else f"job {jobs.id}: {log}")
        follower = None if call.variable else Follower(log)
        problems, codes = wait(jobs, follower, stop)
        if follower:
            follower.show(last=True)
        for number in problems:
            if not call.log_of(number).stat().st_size and (early := state / f"slurm-{number}.out").exists():
                shutil.copy(early, call.log_of(number))  # why it could not start
    finally:
        shutil.rmtree(state, ignore_errors=True)
    return problems, codes


if __name__ == "__main__":
    main()
