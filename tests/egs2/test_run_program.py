"""utils/run.py, the job program for this machine, and what it shares with utils/slurm.py: Kaldi's calling form."""

import os
import resource
import signal
import subprocess
import time

import pytest
from conftest import RECIPE

PROGRAM = RECIPE / "utils" / "run.py"


def run(cwd, *words, program=PROGRAM):
    return subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True, check=False)


def of_job(log):
    """What the job itself has written."""
    lines = log.read_text(encoding="utf-8").split("\n")
    return [line for line in lines if line and not line.startswith("#job ")]


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_the_number_of_a_job_takes_the_place_of_the_variable(tmp_path):
    result = run(tmp_path, "JOB=2:4", "log dir/a b.JOB.txt", "echo", "x  JOB", "it's $HOME *")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    for number in (2, 3, 4):
        assert of_job(tmp_path / "log dir" / f"a b.{number}.txt") == [f"x  {number} it's $HOME *"]


def test_shell_operators_act_as_in_kaldi(tmp_path):
    result = run(tmp_path, "N=1:2", "N.log", "echo", "abc", "|", "tr", "a", "N", ">", "out N")
    assert result.returncode == 0
    assert (tmp_path / "out 2").read_text() == "2bc\n"
    assert run(tmp_path, "log", "false", "|", "cat").returncode == 1


def test_a_single_job_shows_its_output_and_passes_its_code_on(tmp_path):
    command = "echo out; echo 'error: the one line' >&2; exit 2"
    result = run(tmp_path, "--mem", "4G", "--num-threads", "2", "--gpu", "0", "log", "bash", "-c", command)
    assert (result.returncode, result.stdout, result.stderr) == (2, "out\n", "error: the one line\n")
    assert sorted(of_job(tmp_path / "log")) == ["error: the one line", "out"]


def test_its_output_is_shown_as_it_comes(tmp_path):
    command = [PROGRAM, "log", "bash", "-c", "echo now; read line < go"]
    os.mkfifo(tmp_path / "go")
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "now\n"
        (tmp_path / "go").write_text("on\n")
    assert process.returncode == 0


def test_failed_jobs_are_named_after_the_tail_of_the_first_log_and_the_others_go_on(tmp_path):
    command = "for i in $(seq 40); do echo line $i; done; exit $((JOB % 2 * 7))"
    result = run(tmp_path, "JOB=1:4", "l.JOB", "bash", "-c", command)
    assert result.returncode == 7
    lines = result.stderr.strip().split("\n")
    assert len(lines) < 20 and "line 40" in lines and "line 1" not in lines
    assert lines[-1] == (
        "error: 2 of 4 jobs failed: JOB=1 exited with code 7, see l.1; JOB=3 exited with code 7, see l.3"
    )
    assert of_job(tmp_path / "l.4")[-1] == "line 40"


def test_not_more_jobs_run_at_once_than_asked_for(tmp_path):
    command = "ls run >>seen.JOB 2>&1; mkdir run && sleep 0.1 && rmdir run"
    assert run(tmp_path, "--max-jobs-run", "1", "JOB=1:3", "l.JOB", "bash", "-c", command).returncode == 0


@pytest.mark.parametrize(
    ("words", "shown"), [(["log"], "error: full\n"), (["JOB=1:2", "l.JOB"], "make room, then run")]
)
def test_a_full_disk_hides_no_message(tmp_path, words, shown):
    command = [PROGRAM, *words, "bash", "-c", f": {'x' * 100}; echo 'error: full' >&2; exit 2"]
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    result = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit)),
    )
    assert result.returncode > 1 and shown in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpus", "1", "log", "true"], "unknown option --gpus; known: max_jobs_run, mem"),
        (["--gpu"], "option --gpu needs a value"),
        (["JOB=3:1", "l.JOB", "true"], "JOB=3:1: numbers go from 1"),
        (["JOB=1:2", "log", "true"], "log: the jobs would share one log; put JOB into its name"),
        (["--max-jobs-run", "many", "JOB=1:2", "l.JOB", "true"], "--max-jobs-run 'many': a whole number"),
        (["log"], "a log and a command are needed"),
        (["/dev/null/log", "true"], "/dev/null/log: the log cannot be written: "),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(tmp_path, words, message):
    result = run(tmp_path, *words)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith(f"error: {message}") and result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_processes_of_all_jobs(tmp_path, number):
    command = "sleep 600 & echo $! >pid.JOB.new; mv pid.JOB.new pid.JOB; wait"
    process = subprocess.Popen([PROGRAM, "JOB=1:2", "l.JOB", "bash", "-c", command], cwd=tmp_path)
    wait_for(lambda: all((tmp_path / f"pid.{job}").exists() for job in (1, 2)))
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    for job in (1, 2):
        pid = int((tmp_path / f"pid.{job}").read_text())
        wait_for(lambda pid=pid: not is_running(pid))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_jobs_end_when_the_calling_program_is_killed(tmp_path):
    command = f"{PROGRAM} log bash -c 'echo $$ >pid.new; mv pid.new pid; sleep 600; true'; true"
    process = subprocess.Popen(["bash", "-c", command], cwd=tmp_path, stdout=subprocess.DEVNULL)
    wait_for((tmp_path / "pid").exists)
    process.kill()
    process.wait()
    wait_for(lambda: not is_running(int((tmp_path / "pid").read_text())))


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("command\n", [], "conf:1: expected `command ...`"),
        ("command sbatch\ndefault mem=4G 5\n", [], "conf:2: expected"),
        ("option mem=* --mem=$0\n", ["--time", "1"], "unknown option --time; known: mem, max_jobs_run"),
        ("option big=true --mem=9G\n", ["--big", "yes"], "--big yes: not one of true"),
        ("command no-such-sbatch\n", [], "no-such-sbatch: no such program here"),
    ],
)
def test_a_faulty_slurm_configuration_is_named(tmp_path, text, words, message):
    (tmp_path / "conf").write_text(text, encoding="utf-8")
    program = RECIPE / "utils" / "slurm.py"
    result = run(tmp_path, "--config", "conf", *words, "log", "true", program=program)
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: {message}") and result.stderr.count("\n") == 1


def test_the_configuration_makes_sbatch_options(tmp_path):
    """`command` may be any program that takes them; here it prints them and refuses."""
    (tmp_path / "conf").write_text(
        "command ./show --account=a  # ours\ndefault mem=4G\noption mem=* --mem=$0\n"
        "option gpu=0\noption gpu=* --gres=gpu:$0\n"
    )
    (tmp_path / "show").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "show").chmod(0o755)
    program = RECIPE / "utils" / "slurm.py"
    words = ["--config", "conf", "--gpu", "2", "--max-jobs-run", "3", "JOB=1:9", "dir/x.JOB.log", "true"]
    result = run(tmp_path, *words, program=program)
    assert result.stderr.startswith("error: ./show: --account=a --mem=4G --gres=gpu:2 --parsable --job-name=x_")
    assert "--array=1-9%3" in result.stderr
    result = run(tmp_path, "--config", "conf", "--mem", "8G", "--gpu", "0", "x.log", "true", program=program)
    assert "--account=a --mem=8G --parsable" in result.stderr and "--array" not in result.stderr


def test_a_second_call_does_not_touch_the_log_of_one_that_runs(tmp_path):
    os.mkfifo(tmp_path / "go")
    command = [PROGRAM, "log", "bash", "-c", "echo first; read line < go; echo end"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "first\n"
        second = run(tmp_path, "log", "echo", "second")
        (tmp_path / "go").write_text("on\n")
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr == "error: log: another run is writing this log; wait for its end or stop it\n"
    assert first.returncode == 0 and of_job(tmp_path / "log") == ["first", "end"]
    assert run(tmp_path, "log", "echo", "third").returncode == 0
    assert of_job(tmp_path / "log") == ["third"]
