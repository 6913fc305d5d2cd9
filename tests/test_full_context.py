"""Models that see the whole utterance, made simultaneous by encoding it anew at every step."""

import numpy as np
import pytest
import tiny_model
import torch

from espnet_ext import SimulSession, load_model
from espnet_ext.errors import UserError
from espnet_ext.search.beam_step import Expansion, expand
from espnet_ext.session_pool import SessionPool

ENCODERS = {
    "transformer": dict(linear_units=24),
    "conformer": dict(linear_units=24, cnn_module_kernel=7),
    "branchformer": dict(cgmlp_linear_units=24, cgmlp_conv_kernel=7),
    "e_branchformer": dict(linear_units=24, cgmlp_linear_units=24, cgmlp_conv_kernel=7),
}
POLICIES = [
    dict(policy="hold_n", hold_n=2),
    dict(policy="local_agreement"),
    dict(policy="align_att", align_att_f=2, align_att_layer=2),
    dict(policy="wait_k", wait_k=1),
    dict(policy="all"),
]


def load(directory, kind="conformer", **changes):
    conf = dict(output_size=16, attention_heads=2, num_blocks=2, dropout_rate=0.0) | ENCODERS[kind]
    return load_model(**tiny_model.write_model(directory, encoder=kind, full_encoder_conf=conf, **changes))


@pytest.fixture(scope="module")
def conformer(tmp_path_factory):
    return load(tmp_path_factory.mktemp("conformer"))


def translate(session, samples, size):
    session.reset()
    for begin in range(0, len(samples), size):
        session.push(samples[begin : begin + size])
    session.finish()
    return session.text, session.delays


@pytest.mark.parametrize("kind", ENCODERS)
def test_every_kind_of_encoder_translates_on_a_stream(tmp_path, speech, kind):
    session = SimulSession(load(tmp_path, kind), repetition=False)
    assert session.chunk_ms == 280
    assert translate(session, speech(3), 1000)[0]
    assert all(step.forwards for step in session.steps)


@pytest.mark.parametrize("search", ["ibwbs", "standard"])
@pytest.mark.parametrize("policy", POLICIES, ids=lambda options: options["policy"])
def test_every_policy_and_any_cuts(conformer, speech, search, policy):
    session = SimulSession(conformer, search=search, chunk_ms=400, **policy)
    samples = speech(2)
    whole = translate(session, samples, len(samples))
    assert whole[0]
    assert translate(session, samples, 3333) == whole


def test_the_last_search_sees_the_whole_utterance(conformer, speech):
    """With nothing committed before the end, the final search is that of the whole utterance."""
    samples = speech(2)
    held = SimulSession(conformer, search="standard", policy="hold_n", hold_n=1000)
    assert translate(held, samples, 4000)[0] == translate(SimulSession(conformer, search="offline"), samples, 4000)[0]


@pytest.mark.parametrize("options", [{}, dict(ctc_weight=0.3), dict(length_bonus=0.5, length_norm=False)])
@pytest.mark.parametrize("cached", [True, False])
def test_a_forced_prefix_is_what_a_search_step_by_step_would_have_made(conformer, options, cached, monkeypatch):
    if not cached:
        monkeypatch.setattr(conformer, "decoder_weights", None)
    session = SimulSession(conformer, **options)
    step, count = session.beam_step, len(conformer.vocabulary)
    step.pre_beam_size = count
    torch.manual_seed(0)
    memory, other = torch.randn(41, 16), torch.randn(30, 16)

    def children(hypothesis):
        return {h.tokens[-1]: h for h in expand([Expansion(step, [hypothesis], memory, count)])[0]}

    hypothesis, scores = step.root(memory), [0.0]
    for token in range(3, 8):
        hypothesis = children(hypothesis)[token]
        scores.append(hypothesis.score)
    expected = {token: h.score for token, h in children(hypothesis).items()}
    step.force(range(3, 20), other)
    forced = step.force(range(3, 8), memory)
    assert [forced.ancestor(length).score for length in range(6)] == pytest.approx(scores, abs=1e-4)
    for length in (5, 3):
        children(forced.ancestor(length))
    assert {t: h.score for t, h in children(forced).items()} == pytest.approx(expected, abs=1e-4, rel=1e-6)


def test_encoder_work_of_each_step_is_logged(conformer, speech):
    session = SimulSession(conformer, chunk_ms=1000)
    translate(session, speech(4), 16000)
    frames = [step.encoded_frames for step in session.steps]
    assert frames == sorted(frames) and frames[0] > 20 and frames[-1] > 3 * frames[0]


@pytest.mark.parametrize("count", [0, 1, 300, 700])
def test_short_and_empty_utterances_have_an_empty_translation(conformer, count):
    session = SimulSession(conformer)
    assert translate(session, np.zeros(count, np.float32), 100) == ("", [])


@pytest.mark.parametrize("search", ["bwbs", "bwbs_incremental"])
def test_a_blockwise_search_is_refused(conformer, search):
    with pytest.raises(UserError, match=f"search: {search} needs a block encoder"):
        SimulSession(conformer, search=search)


def test_sessions_of_a_pool_translate_as_alone(conformer, speech):
    pool = SessionPool(conformer)
    streams = {pool.open(policy="hold_n", hold_n=2): speech(1.5 + seed, seed) for seed in range(2)}
    pool.push(streams)
    pool.finish(streams)
    for session, samples in streams.items():
        alone = SimulSession(conformer, policy="hold_n", hold_n=2)
        assert (session.text, session.delays) == translate(alone, samples, 16000)


def test_a_model_without_ctc(tmp_path, speech):
    model = load(tmp_path, model_conf=dict(asr_weight=0.0, mt_weight=0.0, st_mtlalpha=0.0))
    assert translate(SimulSession(model), speech(2), 16000)[0]
    with pytest.raises(UserError, match="ctc_weight: the model was trained without ST-CTC"):
        SimulSession(model, ctc_weight=0.3)
