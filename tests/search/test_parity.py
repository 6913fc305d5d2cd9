"""bwbs on ESPnet's schedule of searches gives the tokens of ESPnet's own `BatchBeamSearchOnline`."""

from pathlib import Path

import pytest
import torch
from espnet2.legacy.nets.batch_beam_search_online import BatchBeamSearchOnline
from espnet2.legacy.nets.scorers.ctc import CTCPrefixScorer
from tiny_model import write_model

from espnet_ext import load_model
from espnet_ext.audio.reader import read_recordings
from espnet_ext.search import BeamStep, BlockwiseBeamSearch

RECIPE = Path(__file__).parents[2] / "egs2" / "mustc_st_block"
GEOMETRIES = {"8/4/2": (8, 4, 2), "20/8/8": (20, 8, 8), "40/16/16": (40, 16, 16)}


class OnEspnetsCap(BlockwiseBeamSearch):
    """ESPnet's cap: all frames received, those behind the current block included."""

    cap = 0

    def _cap(self, frames):
        return self.cap


@pytest.fixture(scope="module", params=GEOMETRIES)
def model(request, tmp_path_factory):
    block, hop, ahead = GEOMETRIES[request.param]
    conf = dict(block_size=block, hop_size=hop, look_ahead=ahead)
    return load_model(**write_model(tmp_path_factory.mktemp("parity"), seed=block, encoder_conf=conf))


def espnets_tokens(model, memory, ctc_weight, incremental):
    scorers = {"decoder": model.module.decoder}
    if ctc_weight:
        scorers["ctc"] = CTCPrefixScorer(model.module.st_ctc, model.eos)
    search = BatchBeamSearchOnline(
        scorers=scorers,
        weights={"decoder": 1 - ctc_weight, "ctc": ctc_weight},
        beam_size=6,
        vocab_size=len(model.vocabulary),
        sos=model.sos,
        eos=model.eos,
        pre_beam_score_key="full",
        block_size=model.block_size,
        hop_size=model.hop_size,
        look_ahead=model.look_ahead,
        incremental_decode=incremental,
    )
    with torch.no_grad():
        tokens = search(memory, is_final=True)[0].yseq[1:].tolist()
    # At its cap ESPnet appends eos even to what has just ended in it.
    return tuple(token for token in tokens if token != model.eos)


def our_tokens(model, memory, ctc_weight, incremental):
    step = BeamStep(
        model.scorers(["decoder", "ctc"] if ctc_weight else ["decoder"]),
        {"decoder": 1 - ctc_weight, "ctc": ctc_weight},
        6,
        len(model.vocabulary),
        [model.sos],
    )
    search = OnEspnetsCap(step, model.eos, 6, incremental=incremental, max_ngram_repeats=10**6)
    search.cap = len(memory)
    for end in range(model.block_size - model.look_ahead, len(memory), model.hop_size):
        search.advance(memory[:end], final=False)
    return search.advance(memory, final=True).tokens


@pytest.mark.slow
@pytest.mark.parametrize("ctc_weight", [0.0, 0.3])
@pytest.mark.parametrize("incremental", [False, True])
def test_tokens_are_espnets_on_the_trained_mini_model(ctc_weight, incremental):
    directory = RECIPE / "exp" / "st_block40.en-de"
    trained = load_model(directory / "config.yaml", directory / "model.pth")
    frontend, encoder = trained.frontend(), trained.encoder()
    recordings = read_recordings(RECIPE / "dump/dev.en-de/wav.scp")[:30]
    for recording in recordings:
        frontend.reset()
        encoder.reset()
        memory = encoder.push(frontend.push(torch.from_numpy(recording.read()), True), True)
        expected = espnets_tokens(trained, memory, ctc_weight, incremental)
        assert our_tokens(trained, memory, ctc_weight, incremental) == expected, recording.key


@pytest.mark.parametrize("ctc_weight", [0.0, 0.3])
@pytest.mark.parametrize("incremental", [False, True])
def test_tokens_are_espnets(model, ctc_weight, incremental):
    outcomes = set()
    for seed in range(5):
        torch.manual_seed(seed)
        memory = 20 * torch.randn(30 + 23 * seed, 16)
        expected = espnets_tokens(model, memory, ctc_weight, incremental)
        assert our_tokens(model, memory, ctc_weight, incremental) == expected
        outcomes.add(expected)
    assert len(outcomes) > 2
