"""Stage 11: decodes in shards over several jobs give what one job gives, resume, and are never merged half."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import decode_grid
import decode_shard
import pytest
import shards
import yaml
from conftest import RECIPE
from grid import plan

from espnet_ext.bin import score_simul, st_inference_simul
from espnet_ext.errors import UserError
from espnet_ext.log.instances import read_instances

SEGMENTS = 7


@pytest.fixture
def grid(release, prepare, tiny_paths, tmp_path, monkeypatch):
    """Options of stage 11 for a tiny model, two systems and a set of seven utterances, one of them empty."""
    monkeypatch.chdir(tmp_path)
    release.write_wav("dev", "ted_1.wav", seconds=8.0)
    durations = [1.0, 0.5, 0.01, 0.8, 1.2, 0.3, 1.0]
    release.write_split("dev", [release.segment(number, length) for number, length in enumerate(durations)])
    prepare()
    model = tmp_path / "exp" / "st_block8.en-de"
    shutil.copytree(tiny_paths["st_model_file"].parent, model)
    (tmp_path / "grid.yaml").write_text("- {search: [ibwbs, bwbs], models: all}\n", encoding="utf-8")
    return ["--grid", "grid.yaml", "--sets", "dev", "--models", "block8", "--tgt_lang", "de"]


def decodes():
    from pathlib import Path

    return plan(Path("grid.yaml"), Path("exp"), Path("data"), ["dev"], ["block8"], "de")


def merge_all(jobs):
    merged = []
    for decode in decodes():
        step = shards.make_step(decode)
        merged.append(step.is_done(None) or shards.merge(decode, step, shards.split(decode, step, jobs)))
    return merged


def one_job(decode, output):
    """What the decoding command itself writes."""
    options = decode.options | {
        "st_train_config": decode.model_dir / "config.yaml",
        "st_model_file": decode.model_dir / "model.pth",
        "data_path_and_name_and_type": f"{decode.data}/wav.scp,speech,sound",
        "segments": decode.data / "segments",
        "ref": decode.references,
        "output_dir": output,
    }
    st_inference_simul.main([text for name, value in options.items() for text in (f"--{name}", str(value))])
    return output


def without_times(directory):
    lines = []
    for line in (directory / "instances.log").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        record["steps"] = [{k: v for k, v in step.items() if k != "compute_ms"} for step in record["steps"]]
        lines.append({key: value for key, value in record.items() if key != "elapsed"})
    return lines


def scores(decode, directory):
    options = ["--instances", str(directory / "instances.log"), "--ref", str(decode.references)]
    score_simul.main([*options, "--tgt_lang", "de", "--output_dir", str(directory / "score")])
    values = json.loads((directory / "score" / "scores.json").read_text(encoding="utf-8"))
    timed = ("jobs", "wall_s", "rtf", "peak_rss_mb")
    values["CI95"] = {key: interval for key, interval in values["CI95"].items() if not key.endswith("_CA")}
    return {key: value for key, value in values.items() if not key.endswith("_CA") and key not in timed}


def test_three_jobs_write_what_one_writes(grid, tmp_path):
    for job in ("1", "2", "3"):
        assert not any(merge_all(3))
        decode_shard.main([*grid, "--nj", "3", "--job", job])
    assert merge_all(3) == [True, True]
    for decode in decodes():
        alone = one_job(decode, tmp_path / "alone" / decode.system)
        assert without_times(decode.directory) == without_times(alone)
        for name in ("text", "config.yaml"):
            assert (decode.directory / name).read_bytes() == (alone / name).read_bytes()
        stats, expected = (json.loads((d / "stats.json").read_text()) for d in (decode.directory, alone))
        timed = {"wall_s", "rtf", "peak_rss_mb", "jobs"}
        assert {k: v for k, v in stats.items() if k not in timed} == {
            k: v for k, v in expected.items() if k not in timed
        }
        assert stats["jobs"] == 3 and stats["wall_s"] > 0
        assert scores(decode, decode.directory) == scores(decode, alone)
        assert not (decode.directory / "shards").exists()


def test_an_incomplete_shard_is_not_merged_and_goes_on(grid):
    decode_shard.main([*grid, "--nj", "2", "--job", "1"])
    decode_shard.main([*grid, "--nj", "2", "--job", "2"])
    decode = decodes()[0]
    (shard,) = [s for s in shards.split(decode, shards.make_step(decode), 2) if s.number == 2]
    log = shard.directory / "instances.log"
    whole = log.read_bytes()
    log.write_bytes(whole[: whole.index(b"\n") + 20])  # what a kill leaves
    for name in (".done", "text", "stats.json"):
        (shard.directory / name).unlink()
    assert merge_all(2) == [False, True]
    assert not (decode.directory / "instances.log").exists()
    first = read_first_line(log)
    decode_shard.main([*grid, "--nj", "2", "--job", "2"])
    assert read_first_line(log) == first, "a decoded utterance was decoded again"
    assert merge_all(2) == [True, True]
    assert len(read_instances(decode.directory / "instances.log")) == SEGMENTS


def test_another_number_of_jobs_begins_unfinished_decodes_anew(grid):
    decode_shard.main([*grid, "--nj", "3", "--job", "2"])
    decode = decodes()[0]
    step = shards.make_step(decode)
    mine = decode.directory / "shards" / "2-of-3"
    shards.keep_only(decode, shards.split(decode, step, 3))
    assert (mine / ".done").exists()
    shards.keep_only(decode, shards.split(decode, step, 2))
    assert not mine.exists()


def read_first_line(path):
    return path.read_bytes().split(b"\n")[0]


def test_a_shard_of_another_model_is_begun_anew(grid):
    decode_shard.main([*grid, "--nj", "1", "--job", "1"])
    decode = decodes()[0]
    config = decode.model_dir / "config.yaml"
    values = yaml.safe_load(config.read_text(encoding="utf-8"))
    config.write_text(yaml.safe_dump(values | {"max_epoch": 1}, allow_unicode=True), encoding="utf-8")
    assert merge_all(1) == [False, False]


def test_a_shard_whose_log_lacks_an_utterance_is_refused(grid):
    decode_shard.main([*grid, "--nj", "1", "--job", "1"])
    decode = decodes()[0]
    step = shards.make_step(decode)
    (shard,) = shards.split(decode, step, 1)
    lines = (shard.directory / "instances.log").read_text(encoding="utf-8").splitlines(keepends=True)
    (shard.directory / "instances.log").write_text("".join(lines[:-1]), encoding="utf-8")
    shard.finish()
    with pytest.raises(UserError, match="1-of-1: does not hold the utterances of its list"):
        shards.merge(decode, step, [shard])


def test_more_jobs_than_utterances_or_local_gpus_are_capped_with_a_line(capsys):
    assert decode_grid.count_jobs(4, 100, None) == 4
    assert capsys.readouterr().out == ""
    assert decode_grid.count_jobs(32, 7, None) == 7
    assert capsys.readouterr().out == "7 utterances, so 7 jobs instead of 32\n"
    assert decode_grid.count_jobs(32, 100, 1) == 1
    assert capsys.readouterr().out == "1 GPU here, so 1 job instead of 32\n"


@pytest.mark.slow
def test_a_killed_run_goes_on_and_failures_are_named(grid, tmp_path):
    """The command itself with its local jobs: killed, run again, and with a model that is broken."""
    program = RECIPE / "local" / "decode_grid.py"
    command = [sys.executable, program, *grid, "--cmd", str(RECIPE / "utils" / "run.py"), "--nj", "32"]
    environment = os.environ | {"PYTHONPATH": str(RECIPE.parents[1])}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    while not list((tmp_path / "exp").glob("decode/*/*/*/shards/*/instances.log")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("7 utterances, so 7 jobs instead of 32\n")
    for decode in decodes():
        assert len(read_instances(decode.directory / "instances.log")) == SEGMENTS
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.stdout == "done already: 2 of 2 decodes\n"

    (tmp_path / "exp" / "st_block8.en-de" / "model.pth").write_bytes(b"broken")
    result = subprocess.run([*command, "--nj", "1"], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.strip().split("\n")[-1].startswith("error: 1 of 1 jobs failed: JOB=1 exited with code 2, see ")
