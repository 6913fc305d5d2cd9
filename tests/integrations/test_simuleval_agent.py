"""The real SimulEval runs our agent to the log that our own command writes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from espnet_ext.bin import st_inference_simul

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv.peers"


@pytest.mark.slow
@pytest.mark.parametrize("segment_ms", [160, 40])
def test_simuleval_writes_our_texts_and_delays(tiny_paths, speech, tmp_path, segment_ms):
    names = []
    for index, seconds in enumerate((2.0, 1.31, 0.01, 2.5)):
        names.append(f"{tmp_path}/{index}.wav")
        soundfile.write(names[-1], speech(seconds, seed=index), 16000)
    (tmp_path / "wav.scp").write_text("".join(f"u{i} {name}\n" for i, name in enumerate(names)))
    (tmp_path / "source").write_text("\n".join(names))
    (tmp_path / "target").write_text("\n".join(["ein Satz"] * 4))
    model = [f"--{key}={value}" for key, value in tiny_paths.items()]
    options = [*model, "--policy=hold_n", "--hold_n=1", "--chunk_ms=160"]
    source = f"--data_path_and_name_and_type={tmp_path}/wav.scp,speech,sound"
    st_inference_simul.main([*options, source, f"--output_dir={tmp_path}/ours"])
    agent = "espnet_ext.integrations.simuleval.SimulEvalAgent"
    command = [sys.executable, "-m", "simuleval.cli", "--agent-class", agent]
    command += ["--source", str(tmp_path / "source"), "--target", str(tmp_path / "target")]
    command += [
        "--source-segment-size",
        str(segment_ms),
        "--output",
        str(tmp_path / "theirs"),
        "--target_language=de",
        *options,
    ]
    path = os.pathsep.join([str(PEERS), str(ROOT)])
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\n(tools/setup_peers.sh installs SimulEval)"
    ours, theirs = (
        [json.loads(line) for line in (tmp_path / name / "instances.log").read_text().splitlines()]
        for name in ("ours", "theirs")
    )
    assert [one["prediction"] for one in theirs] == [one["prediction"] for one in ours]
    assert [one["delays"] for one in theirs] == [pytest.approx(one["delays"]) for one in ours]
