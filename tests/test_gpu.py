"""The same code on a GPU gives the same text, scores to 1e-3."""

import pytest
import torch

from espnet_ext import SimulSession, load_model

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")


@pytest.mark.parametrize("ctc_weight", [0.0, 0.3])
@pytest.mark.parametrize("search", ["ibwbs", "bwbs_incremental", "standard"])
def test_the_text_is_that_of_the_cpu(tiny_paths, speech, search, ctc_weight):
    outcomes = []
    for device in ("cpu", "cuda"):
        model = load_model(**tiny_paths, device=device)
        session = SimulSession(model, search=search, policy="hold_n", hold_n=2, ctc_weight=ctc_weight)
        session.push(speech(4.0))
        session.finish()
        outcomes.append((session.text, session.delays, session.search.committed.score))
    assert outcomes[0][:2] == outcomes[1][:2]
    assert outcomes[0][2] == pytest.approx(outcomes[1][2], abs=1e-3)
