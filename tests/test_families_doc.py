"""Every command and example of docs/families.md runs, on tiny models in the place of those it names."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import soundfile
import tiny_s2t
import tiny_whisper
from test_readme import blocks

import espnet_ext
from espnet_ext.bin import st_inference_simul
from espnet_ext.log.instances import read_instances

TEXT = (Path(__file__).parents[1] / "docs" / "families.md").read_text(encoding="utf-8")
COMMANDS = blocks("bash", TEXT)


@pytest.fixture
def place(tmp_path, speech, monkeypatch):
    """The models and the audio that the page names."""
    (tmp_path / "exp" / "whisper").mkdir(parents=True)
    (tmp_path / "exp" / "owsm").mkdir()
    (tmp_path / "data").mkdir()
    tiny_whisper.write_whisper(tmp_path / "exp" / "whisper", seconds=30)
    tiny_s2t.write_s2t(tmp_path / "exp" / "owsm")
    soundfile.write(tmp_path / "data" / "a.wav", speech(2.5), 16000)
    (tmp_path / "data" / "wav.scp").write_text("a data/a.wav\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_translates(place):
    assert len(COMMANDS) == 3
    for command in COMMANDS:
        python, flag, module, *options = shlex.split(command.replace("\\\n", " "))
        assert (python, flag, module) == ("python", "-m", "espnet_ext.bin.st_inference_simul")
        st_inference_simul.main(options)
        output = place / options[options.index("--output_dir") + 1]
        (instance,) = read_instances(output / "instances.log")
        assert instance.utt_id == "a" and instance.prediction


def test_the_python_example_translates(place, speech, monkeypatch, capsys):
    (example,) = blocks("python", TEXT)
    name = re.search(r'load_model\("(.+)"\)', example)[1]
    load = espnet_ext.load_model
    monkeypatch.setattr(espnet_ext, "load_model", lambda asked: load({name: "exp/whisper"}[asked]), raising=False)
    exec(example, {"microphone": np.split(speech(3), 6)})
    assert capsys.readouterr().out.strip()
