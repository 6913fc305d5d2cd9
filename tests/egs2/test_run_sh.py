import os
import re
import subprocess

import pytest
from conftest import RECIPE

SCRIPTS = [RECIPE / name for name in ("run.sh", "path.sh", "cmd.sh", "db.sh")] + sorted(RECIPE.glob("conf/**/*.sh"))


def run_sh(*options, cwd="/"):
    return subprocess.run([RECIPE / "run.sh", *options], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stages", "3"], "unknown option --stages"),
        (["--stage"], "option --stage needs a value"),
        (["--stage", "0"], "--stage 0 is out of range: choose 1 to 15"),
        (["--stage", "99"], "--stage 99 is out of range"),
        (["--stop_stage", "two"], "--stop_stage 'two' must be a whole number"),
        (["--stage", "5", "--stop_stage", "4"], "--stage 5 is behind --stop_stage 4"),
        (["--corpus", "librispeech"], "--corpus 'librispeech' is unknown"),
        (["--corpus", "mustc", "--mustc_dir", "/nonexistent"], "no MuST-C release at /nonexistent/en-de/data: "),
        (["--block_sizes", "20 33"], "--block_sizes 33: no conf/mini/train_st_block33.yaml"),
        (["--block_sizes", ""], "--block_sizes is empty"),
        (["--tgt_lang", " "], "--tgt_lang is empty"),
        (["--systems", "block streaming"], "--systems streaming: choose block, offline, longform"),
        (["--average_last", "0"], "--average_last 0 is out of range"),
        (["--average_last", "3", "--average_around_best", "3"], "--average_last and --average_around_best exclude"),
        (["--stage", "14", "--stop_stage", "13"], "--stage 14 is behind --stop_stage 13"),
        (["--nj", "0"], "--nj 0 is out of range"),
        (["--hard_vocab_limit", "no"], "--hard_vocab_limit 'no': choose true or false"),
        (["--audio_format", "mp3"], "--audio_format 'mp3' is unknown: choose flac, wav or ark"),
        (["--decode_nj", "x"], "--decode_nj 'x' must be a whole number"),
        (["--backend", "pbs"], "backend 'pbs' is unknown: choose local or slurm"),
        (["--num_nodes", "2"], "--num_nodes 2 needs --backend slurm"),
        (["--num_nodes", "2", "--backend", "slurm"], "--num_nodes 2 needs --ngpu 1 or more"),
        (["de"], "unexpected argument 'de'"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_2(options, message):
    result = run_sh(*options)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1


def test_help_names_every_option():
    result = run_sh("--help")
    assert result.returncode == 0
    names = re.search(r'^option_names="([^"]*)"', (RECIPE / "run.sh").read_text(encoding="utf-8"), re.M)[1].split()
    assert len(names) > 8
    for name in names:
        assert f"--{name}" in result.stdout


def test_the_default_number_of_processes_is_that_of_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    free = run_sh("--help").stdout
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert run_sh("--help").stdout == free
    assert f"[{len(os.sched_getaffinity(0))}]" in free


def test_every_path_and_program_that_the_scripts_name_exists():
    root = RECIPE.parent.parent
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        for program in re.findall(r"\b(local/\w+\.py|utils/\w+\.sh|conf/\w+\.sh)\b", text):
            assert (RECIPE / program).is_file(), f"{script.name}: {program}"
        for sourced in re.findall(r"^\. ([\w/.]+)$", text, re.M):
            assert (RECIPE / sourced).is_file(), f"{script.name}: {sourced}"
        for module in re.findall(r"-m (espnet_ext[\w.]+)", text):
            assert (root / (module.replace(".", "/") + ".py")).is_file(), f"{script.name}: {module}"
        for tool in re.findall(r"\$\{root\}/([\w/.]+)", text):
            assert os.access(root / tool, os.X_OK), f"{script.name}: {tool}"
    assert os.access(RECIPE / "run.sh", os.X_OK)
