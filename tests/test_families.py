"""What a user may rely on whatever the family of the model: the laws of sessions, the commands, the names of models."""

import json

import numpy as np
import pytest
import soundfile
import tiny_s2t
import tiny_whisper

from espnet_ext import SessionPool, SimulSession, load_model
from espnet_ext.bin import check_attention, check_chunk_invariance, st_inference_simul
from espnet_ext.log.instances import read_instances

POLICIES = [
    dict(policy="hold_n", hold_n=2),
    dict(policy="local_agreement"),
    dict(policy="align_att", align_att_f=4),
    dict(policy="wait_k", wait_k=1),
    dict(policy="all"),
]
SYSTEMS = [dict(search=search) | policy for search in ("ibwbs", "standard") for policy in POLICIES]
SYSTEMS += [
    dict(search="offline"),
    dict(search="ibwbs", policy="hold_n", hold_n=1, length_norm=False, length_bonus=0.3),
    dict(search="ibwbs", policy="align_att", long_form=True, max_audio_s=2, chunk_ms=500, n_words=3),
    dict(
        search="standard", policy="align_att", long_form=True, max_audio_s=2, chunk_ms=500, text_history="punctuation"
    ),
    dict(search="ibwbs", policy="align_att", long_form=True, max_audio_s=2, audio_history="fixed_duration", n_words=2),
]
LANGUAGES = {"s2t": dict(src_lang="en", tgt_lang="de"), "whisper": dict(src_lang="de", tgt_lang="en")}


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    whisper, s2t = (tmp_path_factory.mktemp(name) for name in ("whisper", "s2t"))
    tiny_whisper.write_whisper(whisper, seed=2)
    tiny_s2t.write_s2t(s2t)
    (s2t / tiny_s2t.WEIGHTS).with_name("attention.json").write_text('{"recommended_layer": 2}')
    return {"s2t": s2t, "whisper": whisper}


@pytest.fixture(scope="module")
def models(directories):
    return {family: load_model(directory) for family, directory in directories.items()}


@pytest.fixture(params=LANGUAGES)
def family(request):
    return request.param


@pytest.fixture
def make(models, family):
    def session(**options):
        return SimulSession(models[family], beam_size=4, **LANGUAGES[family] | options)

    return session


def translate(session, samples, size):
    """The words of each update."""
    session.reset()
    texts = [session.push(samples[begin : begin + size]).text for begin in range(0, len(samples), size)]
    return [*texts, session.finish().text]


def outcome(session):
    work = [(step.audio_ms, step.forwards, step.hypotheses) for step in session.steps]
    return session.text, session.delays, work


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: "-".join(map(str, system.values())))
def test_words_come_once_whatever_the_cuts_and_the_stream_ends(make, speech, system):
    session = make(**system)
    samples = speech(3.3, seed=1)
    words = " ".join(translate(session, samples, 1600)).split()
    assert words == session.units == session.text.split() != []
    assert session.finished and len(session.delays) == len(words)
    whole = outcome(session)
    for size in (1111, len(samples)):
        translate(session, samples, size)
        assert outcome(session) == whole


def test_interleaved_sessions_equal_runs_alone_and_so_do_those_of_a_pool(make, models, family, speech):
    one, two = make(policy="hold_n", hold_n=1), make(policy="align_att")
    streams = [speech(2.0, seed=1), speech(2.6, seed=2)]
    alone = []
    for session, samples in zip((one, two), streams, strict=True):
        translate(session, samples, 5000)
        alone.append(outcome(session))
        session.reset()
    assert alone[0] != alone[1]
    for begin in range(0, 48000, 4000):
        one.push(streams[0][begin : begin + 4000])
        two.push(streams[1][begin : begin + 4000])
    one.finish()
    two.finish()
    assert [outcome(one), outcome(two)] == alone
    pool = SessionPool(models[family])
    options = [dict(policy="hold_n", hold_n=1), dict(policy="align_att")]
    sessions = [pool.open(beam_size=4, **LANGUAGES[family], **option) for option in options]
    for begin in range(0, 48000, 4000):
        pool.push({s: x[begin : begin + 4000] for s, x in zip(sessions, streams, strict=True)})
    pool.finish(sessions)
    assert [outcome(session)[:2] for session in sessions] == [before[:2] for before in alone]


def test_sessions_of_one_pool_may_have_different_languages(models, speech):
    pool = SessionPool(models["s2t"])
    samples = speech(2.0)
    sessions = [pool.open(tgt_lang=lang, policy="hold_n", hold_n=1) for lang in ("de", "fr")]
    pool.push(dict.fromkeys(sessions, samples))
    pool.finish(sessions)
    for session in sessions:
        alone = SimulSession(models["s2t"], session.config)
        translate(alone, samples, 16000)
        assert (alone.text, alone.delays) == (session.text, session.delays)
    assert sessions[0].beam_step.start != sessions[1].beam_step.start


@pytest.mark.parametrize("search", ["ibwbs", "offline"])
@pytest.mark.parametrize("count", [0, 1, 200])
def test_audio_too_short_to_encode_is_an_empty_translation(make, count, search):
    session = make(search=search)
    translate(session, np.zeros(count, np.float32), 100)
    assert session.finished
    assert session.text == "" or search == "offline"


@pytest.mark.parametrize("max_audio_s", [2, 4])  # 4 is the window, in which 2 s stay for the silence
def test_the_past_of_an_endless_stream_is_bounded(make, speech, max_audio_s):
    session = make(policy="align_att", long_form=True, max_audio_s=max_audio_s, chunk_ms=500, n_words=3)
    for second in range(12):
        session.push(speech(1.0, seed=second))
        assert len(session.encoder.features) <= 200 and len(session.search.committed_tokens) <= 128
    session.flush()
    session.push(speech(1.0))
    session.finish()
    assert session.units and session.delays == sorted(session.delays)


@pytest.fixture
def data(tmp_path, speech, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(2):
        soundfile.write(f"{number}.wav", speech(1.5 + number, number), 16000)
    (tmp_path / "wav.scp").write_text("a 0.wav\nb 1.wav\n")
    (tmp_path / "text").write_text("a she will buy books\nb a small house\n")
    return tmp_path


def options_of(family):
    return [f"--{key}={value}" for key, value in LANGUAGES[family].items()]


def test_the_commands_take_it_by_its_directory(data, directories, family, capsys):
    model = [f"--model={directories[family]}", *options_of(family)]
    source = ["--data_path_and_name_and_type=wav.scp,speech,sound", "--output_dir=out"]
    st_inference_simul.main([*model, *source, "--policy=align_att", "--search=standard"])
    stats = json.loads((data / "out" / "stats.json").read_text())
    assert (
        stats["block_size"] is None and stats["policy_args"]["align_att_layer"] == {"s2t": 2, "whisper": None}[family]
    )
    assert [instance.utt_id for instance in read_instances(data / "out" / "instances.log")] == ["a", "b"]
    capsys.readouterr()
    assert not check_chunk_invariance.main([*model, "--wav_scp=wav.scp", "--cuts_ms=100,all", "--policy=hold_n"])
    assert json.loads(capsys.readouterr().out)["violations"] == 0
    check_attention.main([*model, "--wav_scp=wav.scp", "--text=text"])
    report = json.loads(capsys.readouterr().out)
    assert [record["layer"] for record in report["layers"]] == list(range(1, len(report["layers"]) + 1))
    (layer,) = directories[family].rglob("attention.json")
    assert json.loads(layer.read_text()) == report
    layer.write_text('{"recommended_layer": 2}') if family == "s2t" else layer.unlink()


def test_a_packed_s2t_model_loads_as_an_archive_and_from_the_training_directory(directories, models, tmp_path, speech):
    archive = tiny_s2t.pack(directories["s2t"], tmp_path / "model.zip")
    training = tmp_path / "training" / "exp"
    training.mkdir(parents=True)
    for name, target in ((tiny_s2t.CONFIG, "config.yaml"), (tiny_s2t.WEIGHTS, "model.pth")):
        (training / target).write_bytes((directories["s2t"] / name).read_bytes())
    (tmp_path / "training" / "data").symlink_to(directories["s2t"] / "data")
    texts = []
    for model in (models["s2t"], load_model(archive), load_model(training)):
        session = SimulSession(model, search="offline")
        translate(session, speech(2), 16000)
        texts.append(session.text)
    assert texts[0] == texts[1] == texts[2] != ""
