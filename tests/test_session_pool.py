"""Sessions that share decoder calls translate as they would alone."""

import numpy as np
import pytest

from espnet_ext import SimulSession
from espnet_ext.errors import UserError
from espnet_ext.session import Update
from espnet_ext.session_pool import SessionPool

OPTIONS = [
    dict(search="ibwbs", policy="hold_n", hold_n=2),
    dict(search="ibwbs", policy="local_agreement", decoder_states="recompute"),
    dict(search="bwbs_incremental", ctc_weight=0.3),
    dict(search="ibwbs", policy="align_att", align_att_layer=2, beam_size=3),
    dict(search="offline"),
]


def alone(model, options, audio, cut):
    session = SimulSession(model, **options)
    for begin in range(0, len(audio), cut):
        session.push(audio[begin : begin + cut])
    session.finish()
    return session.text, session.delays, [step.forwards for step in session.steps]


def test_the_text_is_that_of_each_session_alone(tiny, speech):
    cut = 5000
    streams = [speech(1.5 + 0.7 * seed, seed) for seed in range(len(OPTIONS))]
    pool = SessionPool(tiny)
    sessions = [pool.open(**options) for options in OPTIONS]
    for begin in range(0, max(map(len, streams)), cut):
        cuts = {s: audio[begin : begin + cut] for s, audio in zip(sessions, streams, strict=True)}
        updates = pool.push(cuts)
        assert list(updates) == sessions
        assert all(isinstance(update, Update) for update in updates.values())
    ended = pool.finish(sessions)
    assert all(update.final for update in ended.values())
    for session, options, audio in zip(sessions, OPTIONS, streams, strict=True):
        assert session.finished
        outcome = (session.text, session.delays, [step.forwards for step in session.steps])
        assert outcome == alone(tiny, options, audio, len(audio))
    assert len({session.text for session in sessions}) > 2


def test_one_that_fails_does_not_disturb_the_others(tiny, speech, monkeypatch):
    pool = SessionPool(tiny)
    good, crashing, refused = (pool.open(policy="hold_n", hold_n=1) for _ in range(3))
    audio = speech(3.0)

    def crash(*_):
        raise RuntimeError("out of order")

    monkeypatch.setattr(crashing.policy, "stable_length", crash)
    results = pool.push({crashing: audio, refused: np.full(10, np.nan, np.float32), good: audio})
    assert isinstance(results[refused], UserError)
    assert str(results[crashing]) == "out of order"
    assert isinstance(results[good], Update)
    pool.finish([good])
    assert good.text == alone(tiny, dict(policy="hold_n", hold_n=1), audio, len(audio))[0]


def test_a_failure_of_a_shared_call_ends_only_the_session_at_fault(tiny, speech, monkeypatch):
    pool = SessionPool(tiny)
    good, broken = pool.open(policy="hold_n", hold_n=1), pool.open(policy="hold_n", hold_n=1)
    audio = speech(3.0)

    def crash(*_):
        raise MemoryError("no more frames")

    monkeypatch.setattr(broken.beam_step.decoder, "_extend_memory", crash)
    results = pool.push({good: audio, broken: audio})
    assert str(results[broken]) == "no more frames"
    pool.finish([good])
    assert good.text == alone(tiny, dict(policy="hold_n", hold_n=1), audio, len(audio))[0]


def test_a_flush_of_one_leaves_the_others_as_they_are(tiny, speech):
    pool = SessionPool(tiny)
    flushed, other = pool.open(policy="hold_n", hold_n=1), pool.open(policy="hold_n", hold_n=1)
    audio = speech(2.0)
    pool.push({flushed: audio, other: audio})
    assert list(pool.flush([flushed])) == [flushed]
    single = SimulSession(tiny, policy="hold_n", hold_n=1)
    single.push(audio)
    assert other.units == single.units and not flushed.finished
    single.flush()
    assert flushed.units == single.units


def test_a_full_pool_refuses_until_a_place_is_free(tiny):
    pool = SessionPool(tiny, limit=1)
    session = pool.open()
    with pytest.raises(UserError, match="all 1 sessions are in use"):
        pool.open()
    pool.close(session)
    pool.open()
    with pytest.raises(ValueError, match="closed"):
        pool.finish([session])
