"""Every command of the README and of docs/ on trained models runs, on those that the main job has trained."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import soundfile

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "egs2" / "mustc_st_block"
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAIN_JOB = "egs2/mustc_st_block/run.sh --corpus mini"
TESTS = "tests/run.sh"


def blocks(language, text=README):
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def run(script):
    done = subprocess.run(
        ["bash", "-euc", script], cwd=ROOT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_two_commands_stand_first_and_are_what_ci_runs():
    assert [block.strip() for block in blocks("bash")[:2]] == [MAIN_JOB, TESTS]
    assert MAIN_JOB in (ROOT / TESTS).read_text()
    assert f"{TESTS} --all" in (ROOT / ".ci" / "run").read_text()


def test_every_link_and_picture_exists():
    targets = re.findall(r"\]\(([^)#:]+)\)", README)
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target


@pytest.mark.slow
def test_the_commands_on_a_trained_model_run(tmp_path):
    script = "\n".join(blocks("bash")[2:]).replace("exp/my_decode", str(tmp_path / "decode"))
    assert '"violations": 0' in run(script)


@pytest.mark.slow
def test_the_long_form_commands_translate_talks_and_score_them(tmp_path):
    text = (ROOT / "docs" / "long_form.md").read_text(encoding="utf-8")
    printed = run("\n".join(blocks("bash", text)).replace("exp/my_talks", str(tmp_path / "talks")))
    assert "recommended_layer" in printed and "StreamLAAL" in printed
    scores = json.loads((tmp_path / "talks" / "score" / "scores.json").read_text())
    assert scores["BLEU"] > 20 and scores["n_scored"]["StreamLAAL"] > 0.8 * scores["n_total"]


@pytest.mark.slow
def test_the_log_is_converted(tmp_path):
    text = (ROOT / "docs" / "log-format.md").read_text(encoding="utf-8")
    printed = run("\n".join(blocks("bash", text)).replace("exp/simulstream.log", str(tmp_path / "log")))
    assert "valid" in printed


@pytest.mark.slow
def test_the_python_example_prints_a_growing_translation(monkeypatch, capsys):
    monkeypatch.chdir(RECIPE)
    recording = sorted((RECIPE / "dump" / "dev.en-de").glob("wav.scp"))[0].read_text().split("\n")[0].split()[1]
    samples, _ = soundfile.read(RECIPE / recording, dtype="float32")
    microphone = [samples[begin : begin + 4000] for begin in range(0, len(samples), 4000)]
    (example,) = blocks("python")
    exec(example, {"microphone": microphone})
    assert len(capsys.readouterr().out.split()) > 5
