"""SimulEval itself reads our log and finds our scores."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from espnet_ext.bin import score_simul, st_inference_simul

PEERS = Path(__file__).parents[2] / ".venv.peers"
METRICS = ("LAAL", "AL", "AP", "DAL", "ATD")


@pytest.mark.slow
@pytest.mark.parametrize("tgt_lang", ["de", "zh"])
def test_simuleval_rescores_a_decode_to_the_same_numbers(tiny_paths, speech, tmp_path, tgt_lang):
    references = {}
    with open(tmp_path / "wav.scp", "w") as scp:
        for index in range(4):
            soundfile.write(tmp_path / f"{index}.wav", speech(1.3 + index, seed=index), 16000)
            scp.write(f"u{index} {tmp_path}/{index}.wav\n")
            references[f"u{index}"] = "das   ist\u00a0ein Satz " if tgt_lang == "de" else "这是 一句话"
    (tmp_path / "ref").write_text("".join(f"{key} {text}\n" for key, text in references.items()), encoding="utf-8")
    out = tmp_path / "out"
    st_inference_simul.main(
        [
            *(f"--{key}={value}" for key, value in tiny_paths.items()),
            *(f"--data_path_and_name_and_type={tmp_path}/wav.scp,speech,sound", f"--ref={tmp_path}/ref"),
            *("--policy=hold_n", "--hold_n=1", f"--tgt_lang={tgt_lang}", f"--output_dir={out}"),
        ]
    )
    score_simul.main(
        [
            *(f"--instances={out}/instances.log", f"--ref={tmp_path}/ref"),
            *(f"--tgt_lang={tgt_lang}", f"--output_dir={out}/score"),
        ]
    )
    ours = json.loads((out / "score" / "scores.json").read_text())

    copy = tmp_path / "simuleval"  # it writes a config.yaml of its own
    copy.mkdir()
    (copy / "instances.log").write_bytes((out / "instances.log").read_bytes())
    (copy / "config.yaml").write_text("source_type: speech\ntarget_type: text\n")
    unit = "char" if tgt_lang == "zh" else "word"
    command = [sys.executable, "-m", "simuleval.cli", "--score-only", "--output", str(copy)]
    command += ["--quality-metrics", "BLEU", "--latency-metrics", *METRICS, "--eval-latency-unit", unit]
    command += ["--sacrebleu-tokenizer", "zh"] if tgt_lang == "zh" else []
    run = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(PEERS)}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, f"{run.stderr}\n(tools/setup_peers.sh installs SimulEval)"
    names, values = (line.split() for line in run.stdout.strip().split("\n")[-2:])
    theirs = dict(zip(names, map(float, values[1:]), strict=True))
    for metric in METRICS:
        assert theirs[metric] == pytest.approx(ours[metric], abs=2e-3)
    assert theirs["BLEU"] == pytest.approx(ours["BLEU"], abs=2e-3)
