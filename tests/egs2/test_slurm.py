"""The job program and the recipe on a real Slurm of one node, which tests/slurm.sh starts."""

import os
import re
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from conftest import RECIPE
from test_distill import write_nllb

pytestmark = pytest.mark.slow

ROOT = RECIPE.parents[1]
PROGRAM = [RECIPE / "utils" / "slurm.py", "--config", RECIPE / "conf" / "slurm.conf"]


def free_port():
    """A port that is free together with the next one."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            try:
                second.bind(("127.0.0.1", first.getsockname()[1] + 1))
            except (OSError, OverflowError):
                continue
            return first.getsockname()[1]


class Slurm:
    """The test cluster; `directory` holds its files."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self.directory = directory
        self.env = os.environ | {f"SLURM_{name.upper()}": str(value) for name, value in settings.items()}
        self.env |= {"SLURM_CONF": str(directory / "slurm.conf"), "SLURM_PORT": str(free_port())}

    def script(self, action):
        command = [ROOT / "tests" / "slurm.sh", action, self.directory]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=False, timeout=600)

    def start(self):
        result = self.script("start")
        if result.returncode:
            pytest.skip(f"Slurm cannot be started here: {result.stderr.strip()}")

    def command(self, *words):
        result = subprocess.run(words, env=self.env, capture_output=True, text=True, check=True)
        return result.stdout.split()

    def jobs(self):
        return self.command("squeue", "--noheader", "--array", "--format=%A")

    def popen(self, cwd, *words):
        pipe = subprocess.PIPE
        return subprocess.Popen([*PROGRAM, *words], cwd=cwd, env=self.env, stdout=pipe, stderr=pipe, text=True)

    def run(self, cwd, *words):
        """Exit code, stdout and stderr of the job program."""
        process = self.popen(cwd, *words)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def controller(self, action):
        """Stop or start slurmctld alone."""
        pid_file = self.directory / "run" / "slurmctld.pid"
        if action == "stop":
            os.kill(int(pid_file.read_text()), signal.SIGTERM)
            wait_for(lambda: not pid_file.exists())
        else:
            subprocess.run(["slurmctld"], env=self.env | {"PATH": os.environ["PATH"] + ":/usr/sbin"}, check=True)


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    cluster.start()
    yield cluster
    cluster.script("stop")


def documented(beginning):
    """The command of docs/slurm.md that begins so."""
    lines = (ROOT / "docs" / "slurm.md").read_text(encoding="utf-8").split("\n")
    (found,) = [line for line in lines if line.startswith(beginning)]
    return found


def of_job(log):
    """What the job itself has written."""
    lines = log.read_text(encoding="utf-8").split("\n")
    return [line for line in lines if line and not line.startswith("#job ")]


def last_line(err):
    return err.strip().split("\n")[-1]


def test_an_array_with_blanks_in_logs_and_commands(slurm, tmp_path):
    words = ["--mem", "100M", "--max-jobs-run", "2", "JOB=2:4", "log dir/a b.JOB.txt", "echo", "x  JOB", "it's $HOME *"]
    code, out, _ = slurm.run(tmp_path, *words)
    assert (code, out) == (0, "")
    for number in (2, 3, 4):
        assert of_job(tmp_path / "log dir" / f"a b.{number}.txt") == [f"x  {number} it's $HOME *"]
    assert len(list((tmp_path / "log dir").iterdir())) == 3


def test_the_documented_call_of_the_job_program(slurm, tmp_path):
    for name in ("utils", "conf"):
        (tmp_path / name).symlink_to(RECIPE / name)
    subprocess.run(["bash", "-c", documented("utils/slurm.py")], cwd=tmp_path, env=slurm.env, check=True)
    assert of_job(tmp_path / "logs" / "hello.4.log") == ["job 4 of 4"]


def test_the_documented_options_for_several_nodes_are_taken(slurm):
    command = ["bash", "-c", documented("./run.sh --corpus mustc")]
    result = subprocess.run(command, cwd=RECIPE, env=slurm.env, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: no MuST-C release at {RECIPE}/DIR/en-de/data")


def test_the_documented_test_cluster_starts_and_stops(slurm, tmp_path):
    begin = documented("../../tests/slurm.sh start")
    script = "\n".join([begin, "sinfo --noheader --format=%T", documented("../../tests/slurm.sh stop")])
    command = ["bash", "-ec", script.replace("/tmp/slurm", f"{tmp_path}/slurm")]
    environment = os.environ | {"SLURM_PORT": str(free_port())}
    result = subprocess.run(command, cwd=RECIPE, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "idle\n"), result.stderr


def test_threads_gpus_and_the_whole_node_are_those_asked_for(slurm, tmp_path):
    command = 'echo "$SLURM_CPUS_PER_TASK $CUDA_VISIBLE_DEVICES"'
    code, out, _ = slurm.run(tmp_path, "--num-threads", "3", "--gpu", "2", "log", "bash", "-c", command)
    assert (code, out) == (0, "3 0,1\n")
    command = 'squeue --noheader --jobs="$SLURM_JOB_ID" --format="%C %h"'
    code, out, _ = slurm.run(tmp_path, "--exclusive", "true", "log", "bash", "-c", command)
    assert (code, out.split()) == (0, ["4", "NO"])  # all cores, not shared


def test_the_output_of_a_single_job_is_shown_as_it_comes(slurm, tmp_path):
    process = slurm.popen(tmp_path, "log", "bash", "-c", "echo now; while [ ! -e go ]; do sleep 0.1; done; exit 2")
    assert process.stdout.readline() == "now\n"
    (tmp_path / "go").touch()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert last_line(err) == "error: the job exited with code 2, see log"


def test_a_failed_task_is_named_with_the_tail_of_its_log(slurm, tmp_path):
    command = "for i in $(seq 40); do echo line $i; done; exit $((JOB % 2 * 7))"
    code, _, err = slurm.run(tmp_path, "JOB=2:4", "l.JOB", "bash", "-c", command)
    assert code == 7
    assert "\nline 40\n" in err and "\nline 1\n" not in err
    assert last_line(err) == "error: 1 of 3 jobs failed: JOB=3 exited with code 7, see l.3"
    assert of_job(tmp_path / "l.4")[-1] == "line 40"


def test_a_cancelled_task_and_one_that_was_killed_are_told_apart(slurm, tmp_path):
    command = "[ JOB = 1 ] || kill -9 $$; echo up; sleep 600"
    process = slurm.popen(tmp_path, "JOB=1:2", "l.JOB", "bash", "-c", command)
    wait_for(lambda: (tmp_path / "l.1").exists() and "up" in (tmp_path / "l.1").read_text())
    job = slurm.command("squeue", "--noheader", "--me", "--format=%F")[0]
    slurm.command("scancel", f"{job}_1")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "JOB=1 was cancelled, see l.1; JOB=2 was killed by SIGKILL, see l.2" in last_line(err)


def test_a_task_over_its_time_limit_is_told(slurm, tmp_path):
    code, _, err = slurm.run(tmp_path, "--time", "1", "log", "sleep", "600")
    assert code == 1
    assert last_line(err) == "error: the job reached its time limit (--time), see log"


def lose_node(slurm):
    """What Slurm does when a node no longer answers; this one comes back by itself."""
    name = slurm.command("sinfo", "--noheader", "--Node", "--format=%N")[0]
    slurm.command("scontrol", "update", f"NodeName={name}", "State=down", "Reason=test")


def test_a_lost_node_is_told_and_a_requeued_job_runs_again(slurm, tmp_path):
    (tmp_path / "conf").write_text("command sbatch --no-requeue\n")
    lost = slurm.popen(tmp_path, "--config", "conf", "lost", "bash", "-c", "echo up; sleep 600")
    again = slurm.popen(tmp_path, "again", "bash", "-c", "echo up; [ -e second ] || { touch second; sleep 600; }")
    assert (lost.stdout.readline(), again.stdout.readline()) == ("up\n", "up\n")
    wait_for((tmp_path / "second").exists)
    lose_node(slurm)
    _, err = lost.communicate(timeout=120)
    assert last_line(err) == "error: the job lost its node, see lost"
    out, err = again.communicate(timeout=120)
    assert (again.returncode, out) == (0, "up\n"), err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_jobs(slurm, tmp_path, number):
    process = slurm.popen(tmp_path, "--max-jobs-run", "1", "JOB=1:3", "l.JOB", "bash", "-c", "echo up; sleep 600")
    wait_for(lambda: any("up" in path.read_text() for path in tmp_path.glob("l.?")))
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, err
    assert slurm.jobs() == []
    assert not list(tmp_path.glob(".slurm.*"))


def test_jobs_are_cancelled_when_the_calling_program_is_killed(slurm, tmp_path):
    words = " ".join(f"'{word}'" for word in [*PROGRAM, "log", "sleep", "600"])
    process = subprocess.Popen(["bash", "-c", f"{words}; true"], cwd=tmp_path, env=slurm.env)
    wait_for((tmp_path / "log").exists)
    process.kill()
    process.wait()
    wait_for(lambda: slurm.jobs() == [])


def test_a_refused_job_is_one_line_and_exit_2(slurm, tmp_path):
    code, out, err = slurm.run(tmp_path, "--num-threads", "1000", "log", "true")
    assert (code, out) == (2, "")
    assert err.startswith("error: sbatch: ") and err.count("\n") == 1


def test_a_controller_that_is_away_is_waited_for(slurm, tmp_path):
    """At submission and while jobs run, also when they end meanwhile."""
    command = "echo up; while [ ! -e go ]; do sleep 0.1; done; echo end"
    running = slurm.popen(tmp_path, "running", "bash", "-c", command)
    assert running.stdout.readline() == "up\n"
    slurm.controller("stop")
    late = slurm.popen(tmp_path, "late", "echo", "late")
    assert "the controller does not answer" in running.stderr.readline() + running.stderr.readline()
    assert "the controller does not answer" in late.stderr.readline()
    (tmp_path / "go").touch()
    assert running.communicate(timeout=60)[0] == "end\n" and running.returncode == 0
    slurm.controller("start")
    out, err = late.communicate(timeout=120)
    assert (late.returncode, out) == (0, "late\n"), err


def test_ends_that_the_controller_has_forgotten_are_known_from_what_tasks_leave(tmp_path_factory, tmp_path):
    cluster = Slurm(tmp_path_factory.mktemp("forgetful"), age=2)
    cluster.start()
    try:
        command = "[ JOB = 1 ] && exit 5; echo up; sleep 600"
        process = cluster.popen(tmp_path, "JOB=1:2", "l.JOB", "bash", "-c", command)
        wait_for(lambda: (tmp_path / "l.2").exists() and "up" in (tmp_path / "l.2").read_text())
        process.send_signal(signal.SIGSTOP)  # looks away until all is forgotten
        cluster.command("scancel", "--me")
        wait_for(lambda: cluster.jobs() == [] and forgotten(cluster))
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=120)
        assert "JOB=1 exited with code 5, see l.1; JOB=2 was cancelled, see l.2" in last_line(err)
    finally:
        cluster.script("stop")


def forgotten(cluster):
    return not cluster.command("squeue", "--noheader", "--states=all")


def test_every_stage_of_the_mini_recipe_runs_on_slurm(slurm, small_recipe):
    for path in (small_recipe / "conf" / "mini").glob("train_*.yaml"):
        path.write_text(path.read_text(encoding="utf-8").replace("max_epoch: 1", "max_epoch: 9"), encoding="utf-8")
    command = [*shlex.split(documented("./run.sh --corpus mini")), "--max_epoch", "1", "--hard_vocab_limit", "false"]
    command += ["--distill_model", str(write_nllb(small_recipe / "nllb"))]
    result = subprocess.run(command, cwd=small_recipe, env=slurm.env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"dump/train\S*_kd.en-de: \d+ utterances and \d+ distilled copies", result.stdout)
    assert "shard 2 of 3: " in (small_recipe / "logs" / "distill.en-de.2.log").read_text(encoding="utf-8")
    assert "epoch 1/1" in result.stdout
    assert "8/8  st_block40.en-de ibwbs" in result.stdout
    assert (small_recipe / "exp" / "report" / "results.tsv").is_file()
    assert len(set(re.findall(r"slurm: job (\d+)", result.stderr))) > 15
    assert slurm.jobs() == []
