"""The real simulstream runs our sessions to the texts and delays of our command; its scores of them are ours."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile
import yaml

from espnet_ext.bin import convert_log, score_simul, st_inference_simul
from espnet_ext.log.instances import read_instances

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv.peers"
PROCESSOR = "espnet_ext.integrations.simulstream.EspnetProcessor"
OPTIONS = dict(policy="hold_n", hold_n=0, chunk_ms=125)  # simulstream adds up seconds: a power of two stays exact
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(PEERS), str(ROOT)])}

pytestmark = pytest.mark.slow


def simulstream(module, *arguments):
    command = [sys.executable, "-m", f"simulstream.{module}", *map(str, arguments)]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def write_config(path, tiny_paths, **changes):
    unit = dict(detokenizer_type="simuleval", latency_unit="word")
    config = dict(type=PROCESSOR, **{key: str(value) for key, value in tiny_paths.items()}, **OPTIONS, **unit)
    path.write_text(yaml.safe_dump(config | changes))
    return path


@pytest.fixture
def audio(tmp_path, speech):
    """Two short files and their lists."""
    seconds = {"u0": 4.0, "u1": 2.5625}
    for index, (key, duration) in enumerate(seconds.items()):
        soundfile.write(tmp_path / f"{key}.wav", speech(duration, seed=index), 16000)
    (tmp_path / "list").write_text("".join(f"{key}.wav\n" for key in seconds))
    (tmp_path / "wav.scp").write_text("".join(f"{key} {tmp_path}/{key}.wav\n" for key in seconds))
    (tmp_path / "ref").write_text("".join(f"{key} ein Satz von hier\n" for key in seconds))
    (tmp_path / "ref.txt").write_text("ein Satz von hier\n" * 2)
    segments = [dict(wav=f"{key}.wav", offset=0.0, duration=duration) for key, duration in seconds.items()]
    (tmp_path / "segments.yaml").write_text(yaml.safe_dump(segments))
    return tmp_path


def test_simulstream_inference_writes_our_texts_and_delays_and_scores_them_as_we_do(tiny_paths, audio):
    model = [f"--{key}={value}" for key, value in tiny_paths.items()]
    options = [f"--{key}={value}" for key, value in OPTIONS.items()]
    source = f"--data_path_and_name_and_type={audio}/wav.scp,speech,sound"
    st_inference_simul.main([*model, *options, source, f"--output_dir={audio}/ours"])

    config = write_config(audio / "processor.yaml", tiny_paths)
    log = audio / "metrics.jsonl"
    lists = ["--wav-list-file", audio / "list", "--tgt-lang", "de", "--src-lang", "en"]
    done = simulstream("inference", "--speech-processor-config", config, *lists, "--metrics-log-file", log)
    assert done.returncode == 0, f"{done.stderr}\n(tools/setup_peers.sh installs simulstream)"
    converted = audio / "theirs.log"
    convert_log.main([str(log), "--format=simulstream", "--to=ours", f"--output={converted}", "--tgt_lang=de"])
    ours, theirs = read_instances(audio / "ours" / "instances.log"), read_instances(converted)
    assert [one.prediction for one in theirs] == [one.prediction for one in ours]
    assert any(one.delays[0] < one.source_length for one in ours)
    assert [one.delays for one in theirs] == [pytest.approx(one.delays) for one in ours]

    arguments = ["--eval-config", config, "--log-file", log, "--reference", audio / "ref.txt"]
    arguments += ["--audio-definition", audio / "segments.yaml", "--scorer", "stream_laal"]
    scored = simulstream("metrics.score_latency", *arguments)
    assert scored.returncode == 0, scored.stderr
    plain, aware = (float(number) for number in re.findall(r"=([\d.]+)", scored.stdout))
    common = [f"--ref={audio}/ref", "--tgt_lang=de", "--ca_clock=per_chunk"]
    score_simul.main([f"--instances={converted}", *common, f"--output_dir={audio}/score"])
    scores = json.loads((audio / "score" / "scores.json").read_text())
    assert plain == pytest.approx(scores["LAAL"] / 1000, abs=1e-5)
    assert aware == pytest.approx(scores["LAAL_CA"] / 1000, abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(hold_m=3), "hold_m: unknown option, did you mean hold_n?"),
        (dict(speech_chunk_size=1.0), "speech_chunk_size: unknown option"),
        (dict(hold_n="three"), "hold_n: expected int, got 'three'"),
        (dict(st_model_file=3), "st_model_file: expected str, got 3"),
        (dict(precision="int4"), "precision: 'int4' is not one of"),
        (dict(latency_unit="char"), "latency_unit: 'char'; with tgt_lang de it must be word"),
        (dict(tgt_lang="fr"), "target_lang: this model translates into fr, not de"),
    ],
)
def test_a_key_that_cannot_be_is_named(tiny_paths, audio, changes, message):
    config = write_config(audio / "processor.yaml", tiny_paths, **changes)
    done = simulstream(
        "inference",
        *("--speech-processor-config", config, "--wav-list-file", audio / "list", "--tgt-lang", "de"),
        *("--metrics-log-file", audio / "metrics.jsonl"),
    )
    assert done.returncode != 0
    assert f"UserError: {message}" in done.stderr.strip().split("\n")[-1]
