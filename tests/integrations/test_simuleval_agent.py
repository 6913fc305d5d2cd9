"""The real SimulEval runs our agent to the log that our own command writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile
import yaml

from espnet_ext.bin import st_inference_simul

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv.peers"
CLASS = ("--agent-class", "espnet_ext.integrations.simuleval.SimulEvalAgent")
FILE = ("--agent", str(ROOT / "espnet_ext" / "integrations" / "simuleval.py"))
SYSTEM = {"search": "ibwbs", "policy": "hold_n", "hold_n": 1, "chunk_ms": 160}
OPTIONS = [f"--{key}={value}" for key, value in SYSTEM.items()]


@pytest.fixture(scope="module")
def test_set(tmp_path_factory, speech):
    """Utterances of the mini corpus and some that are odd, as our list and as SimulEval's."""
    place = tmp_path_factory.mktemp("test_set")
    make = ROOT / "egs2" / "mustc_st_block" / "local" / "make_mini_corpus.py"
    corpus = ("--output_dir", place / "corpus", "--hours", "0.01", "--test_talks", "1", "--nj", "1")
    subprocess.run([sys.executable, make, *corpus], env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
    dev = place / "corpus" / "en-de" / "data" / "dev"
    audio = [speech(seconds, seed=index) for index, seconds in enumerate((1.31, 0.01, 2.5))]
    for segment in yaml.safe_load((dev / "txt" / "dev.yaml").read_text()):
        first, count = (round(16000 * segment[key]) for key in ("offset", "duration"))
        audio.append(soundfile.read(dev / "wav" / segment["wav"], count, first)[0])
    names = [f"{place}/{index}.wav" for index in range(len(audio))]
    for name, samples in zip(names, audio, strict=True):
        soundfile.write(name, samples, 16000)
    (place / "wav.scp").write_text("".join(f"u{i:02} {name}\n" for i, name in enumerate(names)))
    (place / "source").write_text("\n".join(names))
    (place / "target").write_text("\n".join(["ein Satz"] * len(names)))
    (place / "system.yaml").write_text(yaml.safe_dump(SYSTEM))
    return place


@pytest.fixture(scope="module")
def model(tiny_paths):
    return [f"--{key}={value}" for key, value in tiny_paths.items()]


def log(directory):
    return [json.loads(line) for line in (directory / "instances.log").read_text().splitlines()]


@pytest.fixture(scope="module")
def ours(test_set, model):
    source = f"--data_path_and_name_and_type={test_set}/wav.scp,speech,sound"
    st_inference_simul.main([*model, source, *OPTIONS, f"--output_dir={test_set}/ours"])
    return log(test_set / "ours")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "options", "segment_ms"),
    [(CLASS, OPTIONS, 160), (CLASS, OPTIONS, 40), (FILE, ["--config=system.yaml"], 160), (FILE, OPTIONS, 80)],
)
def test_simuleval_writes_our_texts_and_delays(test_set, model, ours, tmp_path, agent, options, segment_ms):
    files = ("--source", "source", "--target", "target", "--output", tmp_path)
    command = [sys.executable, "-m", "simuleval.cli", *agent, *files, "--source-segment-size", str(segment_ms)]
    done = subprocess.run(
        [*command, "--target_language=de", *model, *options],
        cwd=test_set, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(PEERS), str(ROOT)])},
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stderr}\n(tools/setup_peers.sh installs SimulEval)"
    theirs = log(tmp_path)
    assert len(theirs) == 12 and [one["prediction"] for one in theirs] == [one["prediction"] for one in ours]
    assert [one["delays"] for one in theirs] == [pytest.approx(one["delays"]) for one in ours]
