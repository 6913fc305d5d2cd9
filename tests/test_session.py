"""Sessions: what a user of the library may rely on, on a tiny real model."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from espnet_ext import SimulSession
from espnet_ext.errors import UserError

SYSTEMS = [
    dict(search="offline"),
    dict(search="standard", policy="hold_n", hold_n=2),
    dict(search="bwbs"),
    dict(search="bwbs_incremental"),
    dict(search="bwbs_incremental", policy="hold_n", hold_n=2),
    dict(search="ibwbs", policy="hold_n", hold_n=2),
    dict(search="ibwbs", policy="hold_n", hold_n=1, reliability=False),
    dict(search="ibwbs", policy="local_agreement"),
    dict(search="ibwbs", ctc_weight=0.3),
    dict(search="ibwbs", policy="align_att", align_att_f=2, align_att_layer=2),
    dict(search="ibwbs", policy="wait_k", wait_k=1),
    dict(search="ibwbs", policy="ctc_wait", ctc_wait=1),
    dict(search="ibwbs", policy="hold_n", hold_n=2, decoder_states="recompute"),
    dict(search="bwbs", decoder_states="recompute"),
]


def name(system):
    return "-".join(str(value) for value in system.values())


def translate(session, samples, cuts=None):
    """The updates of a whole stream pushed in pieces that end at `cuts`, the last one from `finish`."""
    session.reset()
    updates = [session.push(piece) for piece in np.split(samples, sorted(cuts or []))]
    return [*updates, session.finish()]


def outcome(session):
    work = [(step.audio_ms, step.forwards, step.hypotheses) for step in session.steps]
    return session.text, session.delays, work, [revision.text for revision in session.revisions]


@pytest.mark.parametrize("system", SYSTEMS, ids=name)
def test_released_text_is_never_taken_back_and_comes_in_whole_words(tiny, speech, system):
    session = SimulSession(tiny, **system)
    words = []
    for update in translate(session, speech(6), range(1600, 96000, 1600)):
        words += update.text.split()
        assert session.units[: len(words)] == words
    assert words == session.text.split() == session.units
    assert len(words) == len(session.delays) == len(session.elapsed) > 0


@pytest.mark.parametrize("system", SYSTEMS, ids=name)
def test_nothing_depends_on_how_the_samples_are_cut(tiny, speech, system):
    session = SimulSession(tiny, **system)
    samples = speech(3)
    translate(session, samples)
    whole = outcome(session)
    for size in (256, 1024, 5120, 16000):
        translate(session, samples, range(size, len(samples), size))
        assert outcome(session) == whole


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 40000), max_size=8), chunk_ms=st.sampled_from([None, 90, 320, 1000]))
def test_any_cuts_at_any_chunk_give_the_text_of_one_push(tiny, speech, cuts, chunk_ms):
    session = SimulSession(tiny, policy="hold_n", hold_n=1, chunk_ms=chunk_ms)
    samples = speech(2.5)
    translate(session, samples)
    whole = outcome(session)
    translate(session, samples, cuts)
    assert outcome(session) == whole


def test_a_length_that_is_a_multiple_of_the_chunk_loses_nothing(tiny, speech):
    session = SimulSession(tiny, chunk_ms=320)
    samples = speech(1.6)
    translate(session, samples)
    once = outcome(session)
    session.reset()
    session.push(samples)
    session.push(samples[:0])
    session.finish()
    assert outcome(session) == once
    assert session.steps[-1].audio_ms == session.source_ms == 1600


@pytest.mark.parametrize("count", [0, 1, 100, 256, 399, 400, 959])
def test_audio_too_short_to_encode_is_an_empty_translation_and_the_next_one_is_whole(tiny, speech, count, caplog):
    session = SimulSession(tiny)
    translate(session, speech(2))
    expected = outcome(session)
    session.reset("short-one")
    session.push(speech(1)[:count])
    session.finish()
    assert session.text == ""
    assert "short-one: empty translation" in caplog.text
    translate(session, speech(2))
    assert outcome(session) == expected


def test_two_interleaved_sessions_equal_two_runs(tiny, speech):
    one, two = (SimulSession(tiny, policy="hold_n", hold_n=2) for _ in range(2))
    first, second = speech(3, seed=1), speech(3, seed=2)
    translate(one, first)
    alone = outcome(one)
    translate(two, second)
    alone_too = outcome(two)
    assert alone != alone_too
    one.reset()
    two.reset()
    for begin in range(0, len(first), 4000):
        one.push(first[begin : begin + 4000])
        two.push(second[begin : begin + 4000])
    one.finish()
    two.finish()
    assert (outcome(one), outcome(two)) == (alone, alone_too)


def test_an_abandoned_stream_leaves_no_trace(tiny, speech):
    session = SimulSession(tiny, policy="local_agreement")
    translate(session, speech(3))
    expected = outcome(session)
    session.reset()
    session.push(speech(4, seed=3))
    translate(session, speech(3))
    assert outcome(session) == expected


def test_a_stream_that_fails_leaves_no_trace(tiny, speech, monkeypatch):
    session = SimulSession(tiny, policy="hold_n", hold_n=1)
    translate(session, speech(3))
    expected = outcome(session)
    session.reset()
    with monkeypatch.context() as broken, pytest.raises(ZeroDivisionError):
        broken.setattr(session.policy, "stable_length", lambda context: 1 // 0)
        session.push(speech(3))
    translate(session, speech(3))
    assert outcome(session) == expected


def test_the_first_search_runs_when_the_encoder_releases_its_first_frames(tiny, speech):
    """Case 5: block 8, hop 4, look-ahead 2 of the trained model, no hop later."""
    session = SimulSession(tiny, chunk_ms=10)
    encoder, frontend = tiny.encoder(), tiny.frontend()
    samples = speech(1)
    due = next(
        end
        for end in range(160, 16001, 160)
        if len(encoder.push(frontend.push(torch.from_numpy(samples[end - 160 : end]))))
    )
    session.push(samples)
    first = next(step for step in session.steps if step.forwards)
    assert first.audio_ms == due / 16
    assert len(session.encoder.memory) >= 6


def test_a_step_without_new_frames_runs_no_search(tiny, speech):
    session = SimulSession(tiny, chunk_ms=20)
    session.push(speech(2))
    searched = [step for step in session.steps if step.forwards]
    assert len(searched) == 1 + (len(session.encoder.memory) - 6) // 4


def test_delays_are_the_end_of_the_step_or_of_the_audio(tiny, speech):
    session = SimulSession(tiny, chunk_ms=320)
    translate(session, speech(2.5))
    assert set(session.delays) <= {320.0 * m for m in range(1, 8)} | {2500.0}
    assert all(later >= earlier for earlier, later in pairwise(session.delays))
    assert all(elapsed >= delay for elapsed, delay in zip(session.elapsed, session.delays, strict=True))


def test_re_translation_commits_nothing_before_the_end(tiny, speech):
    session = SimulSession(tiny, search="bwbs")
    updates = translate(session, speech(3), range(5120, 48000, 5120))
    assert all(update.text == "" for update in updates[:-1])
    assert set(session.delays) == {3000.0}
    assert len(session.revisions) == sum(step.forwards > 0 for step in session.steps)


def test_a_larger_n_never_releases_earlier(tiny, speech):
    samples = speech(6)
    means = []
    for n in (0, 2, 4, 50):
        session = SimulSession(tiny, policy="hold_n", hold_n=n)
        translate(session, samples)
        means.append(np.mean(session.delays))
    assert means[-1] == 6000
    assert means == sorted(means)


def test_a_policy_is_tuned_on_the_way_and_released_text_stays(tiny, speech):
    samples, half = speech(6), 48000
    free = SimulSession(tiny, policy="hold_n", hold_n=0)
    translate(free, samples)
    session = SimulSession(tiny, policy="hold_n", hold_n=0)
    session.push(samples[:half])
    before = session.text
    session.tune(hold_n=50)
    assert session.push(samples[half:]).text == ""
    update = session.finish()
    assert before and session.text.startswith(before) and set(update.delays) == {6000}
    session.tune(hold_n=0)
    translate(session, samples)
    assert outcome(session) == outcome(free)
    for options, message in ((dict(hold_n=-1), "at least 0"), (dict(la_n=3), "la_n: the policy hold_n is not tuned")):
        with pytest.raises(UserError, match=message):
            session.tune(**options)


def test_characters_are_the_unit_for_chinese(tiny, speech):
    session = SimulSession(tiny, tgt_lang="zh")
    translate(session, speech(2))
    assert len(session.delays) == len(session.text) > 0
    assert " " not in session.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(serch="ibwbs"), "serch: unknown option, did you mean search?"),
        (dict(search="greedy"), "search: 'greedy' is not one of"),
        (dict(hold_n=-1), "hold_n: must be at least 0"),
        (dict(hold_n=2.5), "hold_n: expected int, got 2.5"),
        (dict(beam_size=0), "beam_size: must be at least 1"),
        (dict(chunk_ms=0), "chunk_ms: must be at least 1 ms"),
        (dict(chunk_ms=float("nan")), "chunk_ms: must be at least 1 ms"),
        (dict(repetition="yes"), "repetition: expected bool"),
        (dict(search="bwbs", policy="hold_n"), "policy: bwbs commits nothing before the end"),
        (dict(length_bonus=1.0), "length_bonus: has no effect with length_norm true"),
        (dict(search="standard", length_bonus=1.0), "length_bonus: standard chooses by score / length"),
        (dict(lm_weight=float("inf")), "lm_weight: must be finite"),
        (dict(lm_weight=0.5), "lm_weight: there is no language model; name one with --lm_train_config"),
        (dict(end_detect=True), "end_detect: ibwbs ends by its own rules"),
        (dict(search="standard", end_detect=1), "end_detect: expected bool"),
        (dict(policy="align_att"), "align_att_layer: 4 is above the 2 decoder layers"),
        (dict(ctc_weight=1.0), r"ctc_weight: must lie in \[0, 1\)"),
    ],
)
def test_an_option_that_cannot_be_is_named(tiny, options, message):
    with pytest.raises(UserError, match=message):
        SimulSession(tiny, **options)


@pytest.mark.parametrize(
    "samples", [np.zeros(10), np.zeros((10, 2), np.float32), np.zeros(10, np.int16), np.array([np.nan], np.float32)]
)
def test_samples_of_another_kind_are_refused(tiny, samples):
    session = SimulSession(tiny)
    with pytest.raises(UserError, match="samples: "):
        session.push(samples)


def test_a_finished_stream_takes_no_more(tiny, speech):
    session = SimulSession(tiny)
    translate(session, speech(1))
    with pytest.raises(RuntimeError, match="reset"):
        session.push(speech(1))
    with pytest.raises(RuntimeError, match="reset"):
        session.finish()


def test_the_package_imports_without_torch():
    import subprocess
    import sys

    code = "import sys, espnet_ext, json; print(json.dumps(sorted(sys.modules)))"
    modules = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert "torch" not in modules
