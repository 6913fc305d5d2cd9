"""A cut leaves no trace: the committed prefix has the score and the states of a forced decoding over that memory."""

import pytest
import torch
from tiny_model import write_language_model, write_model

from espnet_ext import SimulSession, load_model
from espnet_ext.errors import UserError
from espnet_ext.search import BeamStep
from espnet_ext.search.beam_step import Expansion, expand

SCORERS = {
    "cached decoder": dict(decoder=1.0),
    "ESPnet's decoder": dict(decoder=1.0),
    "CTC": dict(decoder=0.7, ctc=0.3),
    "transformer LM": dict(decoder=1.0, lm=0.5),
    "recurrent LM": dict(decoder=1.0, lm=0.5),
    "length bonus": dict(decoder=1.0, length_bonus=0.4),
    "all": dict(decoder=0.6, ctc=0.4, lm=0.3, length_bonus=0.2),
}


@pytest.fixture(scope="module", params=SCORERS)
def model_and_weights(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("truncation")
    espnets = request.param == "ESPnet's decoder"
    paths = write_model(directory, decoder_conf=dict(qk_norm=True) if espnets else None)
    model = load_model(**paths)
    if "LM" in request.param or request.param == "all":
        kind = "seq_rnn" if request.param.startswith("recurrent") else "transformer"
        paths |= write_language_model(directory / "lm", model.vocabulary.token_list, kind)
        model = load_model(**paths)
    assert (model.decoder_weights is None) == espnets
    return model, SCORERS[request.param]


def forced(model, weights, history):
    """Decode the tokens of `history`, (memory, tokens) after each commit, one by one and nothing else."""
    size = len(model.vocabulary)
    step = BeamStep(model.scorers(weights), weights, size, size, [model.sos])
    hypothesis = step.root(history[0][0])
    for memory, tokens in history:
        step.extend([hypothesis], memory)
        for token in tokens:
            children = expand([Expansion(step, [hypothesis], memory, size)])[0]
            hypothesis = next(child for child in children if child.tokens[-1] == token)
    return step, hypothesis


@pytest.mark.parametrize("held", [1, 3])
def test_the_committed_prefix_equals_a_forced_decoding_over_the_same_memory(model_and_weights, held):
    model, weights = model_and_weights
    torch.manual_seed(held)
    frames = 20 * torch.randn(60, 16)
    size = len(model.vocabulary)
    options = dict(ctc_weight=weights.get("ctc", 0.0), lm_weight=weights.get("lm", 0.0), repetition=False)
    if "length_bonus" in weights:
        options |= dict(length_bonus=weights["length_bonus"], length_norm=False)
    search = SimulSession(model, search="ibwbs", reliability=False, maxlenratio=0.0, **options).search
    history = []
    for end in range(6, 61, 6):
        found = search.advance(frames[:end], final=False)
        if found is None:
            continue
        before = search.committed.tokens
        search.commit(found, max(len(before), len(found.tokens) - held))
        history.append((frames[:end], search.committed.tokens[len(before) :]))
    assert len(search.committed.tokens) > 5
    step, expected = forced(model, weights, history)
    assert search.committed.tokens == expected.tokens
    assert search.committed.score == pytest.approx(expected.score, abs=1e-3)
    step.extend([expected], frames)
    search.step.extend([search.committed], frames)
    search.step.pre_beam_size = size
    (theirs,) = expand([Expansion(step, [expected], frames, size)])
    (ours,) = expand([Expansion(search.step, [search.committed], frames, size)])
    assert {h.tokens: h.score for h in ours} == pytest.approx({h.tokens: h.score for h in theirs}, abs=1e-3)


def test_a_language_model_over_other_tokens_is_refused(tmp_path):
    paths = write_model(tmp_path)
    lm = write_language_model(tmp_path / "lm", ["<blank>", "<unk>", "x", "<sos/eos>"])
    with pytest.raises(UserError, match="lm/config.yaml: its token_list is not that of the translation model"):
        load_model(**paths, **lm)
    with pytest.raises(UserError, match="one is of no use without the other"):
        load_model(**paths, lm_file=lm["lm_file"])
