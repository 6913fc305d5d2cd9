"""Endless streams: what a session forgets, and what it must not."""

import numpy as np
import pytest
import tiny_model
import torch

from espnet_ext import SimulSession, load_model
from espnet_ext.errors import UserError
from espnet_ext.model.encoder import subsampling

LONG = dict(long_form=True, policy="align_att", align_att_f=2, align_att_layer=2, chunk_ms=500, max_audio_s=4)
SYSTEMS = [
    dict(search="standard", n_words=3),
    dict(search="ibwbs", n_words=3),
    dict(search="ibwbs", text_history="punctuation"),
    dict(search="ibwbs", n_words=2, audio_history="fixed_duration"),
    dict(search="ibwbs", n_words=3, ctc_weight=0.3),
]


@pytest.fixture(scope="module")
def conformer(tmp_path_factory):
    conf = dict(output_size=16, attention_heads=2, num_blocks=2, linear_units=24, cnn_module_kernel=7)
    return load_model(
        **tiny_model.write_model(tmp_path_factory.mktemp("c"), encoder="conformer", full_encoder_conf=conf)
    )


@pytest.fixture(params=["block", "full context"])
def model(request, tiny, conformer):
    return tiny if request.param == "block" else conformer


def translate(session, samples, size):
    session.reset()
    texts = [session.push(samples[begin : begin + size]).text for begin in range(0, len(samples), size)]
    texts.append(session.finish().text)
    return [word for text in texts for word in text.split()]


@pytest.mark.parametrize("options", SYSTEMS, ids=lambda options: "-".join(map(str, options.values())))
def test_words_come_once_in_order_and_never_change_however_the_stream_is_cut(model, speech, options):
    session = SimulSession(model, **LONG | options)
    samples = speech(12)
    words = translate(session, samples, 8000)
    assert words == session.units and len(words) > 3
    delays, text = session.delays, session.text
    assert delays == sorted(delays) and delays[-1] <= 12000
    assert translate(session, samples, 5111) == words
    assert (session.delays, session.text) == (delays, text)


@pytest.mark.parametrize("options", SYSTEMS, ids=lambda options: "-".join(map(str, options.values())))
def test_the_past_is_bounded(model, speech, options):
    session = SimulSession(model, **LONG | options)
    features, tokens, work = [], [], []
    for begin in range(0, 16000 * 20, 8000):
        session.push(speech(0.5, seed=begin // 8000))
        features.append(len(session.encoder.features))
        tokens.append(len(session.search.committed_tokens))
        work.append(session.steps[-1].encoded_frames)
    assert max(features) <= 400 + 10
    assert max(tokens) <= 128
    assert max(work[20:]) <= max(work[:20]) * 1.2
    assert len(session.peaks) == len(session.search.committed_tokens)


def test_silence_forgets_what_is_too_old(model):
    session = SimulSession(model, **LONG)
    for _ in range(30):
        session.push(np.zeros(8000, np.float32))
    assert len(session.encoder.features) <= 410


def test_what_remains_of_the_audio_begins_at_the_exact_sample(model, speech):
    """Dropping k frames leaves the features of the audio from sample k * subsampling * hop on."""
    samples = torch.from_numpy(speech(3))
    frontend, encoder = model.frontend(), SimulSession(model, **LONG).encoder
    encoder.push(frontend.push(samples))
    encoder.drop(11)
    _, stride = subsampling(model.module.encoder.embed)
    cut = model.frontend().push(samples[11 * stride * 160 :])
    edge = 4  # the front end reflects the first samples of a stream
    torch.testing.assert_close(encoder.features[edge : len(cut)], cut[edge:], atol=1e-4, rtol=0)


def test_a_flush_ends_the_sentence_and_the_clock_goes_on(model, speech):
    session = SimulSession(model, **LONG)
    samples = speech(2.3)
    session.push(samples)
    session.flush()
    first = list(session.units)
    assert session.search.committed_tokens == () and session.unstable == ""
    session.push(samples)
    session.finish()
    alone = SimulSession(model, **LONG)
    alone.push(samples)
    alone.finish()
    assert first == alone.units
    assert session.units[: len(first)] == first and len(session.units) > len(first)
    assert session.delays[: len(first)] == alone.delays
    assert session.delays[len(first)] > 2300 and session.delays[-1] == pytest.approx(4600)


def test_a_flush_of_an_ordinary_session_keeps_the_grid_of_steps(tiny, speech):
    session = SimulSession(tiny, policy="hold_n", hold_n=1, chunk_ms=400)
    session.push(speech(1.0))
    session.flush()
    session.push(speech(2.0))
    assert [step.audio_ms for step in session.steps] == [400, 800, 1000, 1200, 1600, 2000, 2400, 2800]
    session.finish()
    with pytest.raises(RuntimeError, match="finished"):
        session.flush()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(n_words=0), "n_words: must be at least 1"),
        (dict(max_audio_s=0.5), "max_audio_s: 0.5 s must be longer than a step"),
        (dict(align_att_f=-1), "align_att_f: must be at least 0"),
        (dict(policy="hold_n"), "long_form: needs --policy align_att"),
        (dict(search="bwbs_incremental"), "long_form: needs --policy align_att and --search"),
        (dict(align_att_layer=3), "align_att_layer: 3 is above the 2"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tiny, options, message):
    with pytest.raises(UserError, match=message):
        SimulSession(tiny, **LONG | options)
