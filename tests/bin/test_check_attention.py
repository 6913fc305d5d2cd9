"""check_attention on a tiny model, and what decoding makes of its answer."""

import json

import numpy as np
import pytest
import soundfile
import tiny_model

from espnet_ext import SimulSession, load_model
from espnet_ext.audio.reader import Recording
from espnet_ext.bin import check_attention
from espnet_ext.errors import UserError


@pytest.fixture
def data(tmp_path, speech):
    files = tiny_model.write_model(tmp_path / "model")
    with open(tmp_path / "wav.scp", "w") as scp, open(tmp_path / "text", "w") as text:
        for number, sentence in enumerate(tiny_model.TEXT):
            soundfile.write(tmp_path / f"{number}.wav", speech(1.5 + number, number), 16000)
            scp.write(f"u{number} {tmp_path}/{number}.wav\n")
            text.write(f"u{number} {sentence}\n")
    options = [f"--{key}={value}" for key, value in files.items()]
    return tmp_path, files, [*options, f"--wav_scp={tmp_path}/wav.scp", f"--text={tmp_path}/text"]


def test_every_layer_is_measured_and_the_answer_lies_beside_the_model(data, capsys):
    directory, files, options = data
    check_attention.main(options)
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert [layer["layer"] for layer in report["layers"]] == [1, 2]
    assert report["recommended_layer"] is None and report["utterances"] == 3
    assert "AlignAtt and StreamAtt will not work" in printed.err
    assert 0 <= report["p_eos"] <= 1
    assert json.loads((directory / "model" / "attention.json").read_text()) == report


def test_utterances_are_joined_as_they_stand_in_their_recording(tmp_path, speech):
    samples = speech(8.0)
    soundfile.write(tmp_path / "talk.wav", samples, 16000, subtype="FLOAT")
    times = [(0.5, 2.0), (2.75, 4.0), (7.0, 8.0)]
    first, second, third = (
        Recording(f"u{number}", str(tmp_path / "talk.wav"), *time) for number, time in enumerate(times)
    )
    np.testing.assert_array_equal(check_attention.read_both(first, second), samples[8000:64000])
    pause = np.zeros(8000, np.float32)
    for one, other in ((second, third), (third, first)):
        expected = np.concatenate([one.read(), pause, other.read()])
        np.testing.assert_array_equal(check_attention.read_both(one, other), expected)


def test_decoding_uses_the_recommended_layer(data):
    directory, files, _ = data
    with pytest.raises(UserError, match="align_att_layer: 4 is above the 2"):
        SimulSession(load_model(**files), policy="align_att")
    (directory / "model" / "attention.json").write_text('{"recommended_layer": 1}')
    session = SimulSession(load_model(**files), policy="align_att")
    assert session.config.align_att_layer == 1 and list(session.beam_step.decoder.attention_heads) == [0]
    (directory / "model" / "attention.json").write_text("{}")
    with pytest.raises(UserError, match=r"attention\.json: not written by check_attention"):
        load_model(**files)


def test_a_missing_translation_is_named(data):
    directory, _, options = data
    (directory / "text").write_text("u0 ein Haus\n")
    with pytest.raises(UserError, match="no translation of 'u1'"):
        check_attention.main(options)
