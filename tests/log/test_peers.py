"""SimulEval and OmniSTEval themselves read our log and find our scores (case 15)."""

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


@pytest.fixture(params=["de", "zh"])
def decoded(request, tiny_paths, speech, tmp_path):
    """The directory of a decode of four utterances, its language and our scores of it."""
    tgt_lang, references = request.param, {}
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
    return out, tgt_lang, json.loads((out / "score" / "scores.json").read_text())


@pytest.mark.slow
def test_simuleval_rescores_a_decode_to_the_same_numbers(decoded, tmp_path):
    out, tgt_lang, ours = decoded
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


def test_omnisteval_rescores_a_decode_to_the_same_numbers(decoded, tmp_path):
    out, tgt_lang, ours = decoded
    log = map(json.loads, (out / "instances.log").read_text(encoding="utf-8").strip().split("\n"))
    (tmp_path / "ref.txt").write_text("".join(one["reference"] + "\n" for one in log), encoding="utf-8")
    unit = "--char_level" if tgt_lang == "zh" else "--word_level"
    command = [sys.executable, "-m", "omnisteval.cli", "shortform", unit, "--output_folder", str(tmp_path / "omni")]
    command += ["--hypothesis_file", str(out / "instances.log"), "--ref_sentences_file", str(tmp_path / "ref.txt")]
    command += ["--emission_cu_key", "delays", "--emission_ca_key", "elapsed"]
    command += ["--bleu_tokenizer", "zh"] if tgt_lang == "zh" else []
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    lines = (tmp_path / "omni" / "scores.tsv").read_text().splitlines()
    theirs = dict(line.split("\t")[:2] for line in lines if "\t" in line)
    for metric in ("LAAL", "AL", "AP", "DAL", "YAAL"):
        if ours[metric] is not None:
            assert float(theirs[f"{metric} (CU)"]) == pytest.approx(ours[metric], abs=2e-3)
            assert float(theirs[f"{metric} (CA)"]) == pytest.approx(ours[f"{metric}_CA"], abs=2e-3)
    assert float(theirs["BLEU"]) == pytest.approx(ours["BLEU"], abs=2e-3)
