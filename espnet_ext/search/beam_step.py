"""One step of beam search over ESPnet's scorers: what every search repeats."""

import math
from collections.abc import Mapping, Sequence

import torch
from espnet2.legacy.nets.scorer_interface import BatchScorerInterface, PartialScorerInterface
from torch import Tensor

from espnet_ext.search.hypothesis import Hypothesis

# As in ESPnet's beam search: a partial scorer sees this many times the beam's tokens of each hypothesis.
PRE_BEAM_RATIO = 1.5


class BeamStep:
    """Expands hypotheses by one token with ESPnet's scorers (decoder, LM, length bonus; CTC on a pre-beam).

    Counts `decoder_forwards`, calls for a step of the whole beam, and `hypothesis_steps`, the hypotheses in them.
    """

    def __init__(
        self,
        scorers: Mapping[str, BatchScorerInterface],
        weights: Mapping[str, float],
        beam_size: int,
        vocab_size: int,
        sos: int,
    ) -> None:
        self.weights = weights
        self.full = {k: s for k, s in scorers.items() if not isinstance(s, PartialScorerInterface)}
        self.partial = {k: s for k, s in scorers.items() if isinstance(s, PartialScorerInterface)}
        self.beam_size = beam_size
        self.pre_beam_size = min(int(PRE_BEAM_RATIO * beam_size), vocab_size)
        self.vocab_size = vocab_size
        self.sos = sos
        self.decoder_forwards = 0
        self.hypothesis_steps = 0

    @torch.inference_mode()
    def root(self, memory: Tensor) -> Hypothesis:
        """The empty hypothesis of a new utterance, with all scorers at their start on `memory` `(T, D)`."""
        scorers = self.full | self.partial
        return Hypothesis((), 0.0, {key: scorer.batch_init_state(memory) for key, scorer in scorers.items()})

    @torch.inference_mode()
    def extend(self, hypotheses: Sequence[Hypothesis], memory: Tensor) -> None:
        """Let scorers that keep the input (CTC) see the frames that were added to `memory`."""
        for key, scorer in self.partial.items():
            if hasattr(scorer, "extend_prob"):
                scorer.extend_prob(memory)
                for hypothesis in hypotheses:
                    if hypothesis.states[key] is not None:
                        hypothesis.states = {
                            **hypothesis.states,
                            key: scorer.extend_state([hypothesis.states[key]])[0],
                        }

    @torch.inference_mode()
    def expand(self, hypotheses: Sequence[Hypothesis], memory: Tensor, size: int) -> list[Hypothesis]:
        """The `size` best one-token continuations of hypotheses of equal length, in descending score."""
        prefixes = torch.tensor([(self.sos, *h.tokens) for h in hypotheses], device=memory.device)
        memories = memory.expand(len(hypotheses), *memory.shape)
        weighted, states = 0, {}
        for key, scorer in self.full.items():
            scores, states[key] = scorer.batch_score(prefixes, [h.states[key] for h in hypotheses], memories)
            weighted = weighted + self.weights[key] * scores
        self.decoder_forwards += 1
        self.hypothesis_steps += len(hypotheses)
        if self.partial:
            ids = torch.topk(weighted, self.pre_beam_size, dim=-1)[1]
        for key, scorer in self.partial.items():
            scores, states[key] = scorer.batch_score_partial(
                prefixes, ids, [h.states[key] for h in hypotheses], memories
            )
            weighted = weighted + self.weights[key] * scores
        weighted = weighted + torch.tensor([h.score for h in hypotheses], device=memory.device)[:, None]
        attention = getattr(self.full.get("decoder"), "attention", None)
        best = weighted.view(-1).topk(min(size, weighted.numel()))
        return [
            self._child(hypotheses, states, attention, score, index)
            for score, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
            if score > -math.inf
        ]

    def _child(
        self, hypotheses: Sequence[Hypothesis], states: dict, attention: Tensor | None, score: float, index: int
    ) -> Hypothesis:
        row, token = divmod(index, self.vocab_size)
        chosen = {key: states[key][row] for key in self.full}
        for key, scorer in self.partial.items():
            chosen[key] = scorer.select_state(states[key], row, token)
        parent = hypotheses[row]
        row_attention = None if attention is None else attention[row]
        return Hypothesis((*parent.tokens, token), score, chosen, parent, row_attention)

    def forget_decoder(self, hypotheses: Sequence[Hypothesis]) -> None:
        """Drop the decoder's states of these hypotheses and of all others: the next step feeds their prefixes anew."""
        for hypothesis in hypotheses:
            hypothesis.states = {**hypothesis.states, "decoder": None}
        self.retain(hypotheses)

    def retain(self, hypotheses: Sequence[Hypothesis]) -> None:
        """Free what scorers hold for any hypothesis that is neither here nor an ancestor of one that is."""
        for key, scorer in self.full.items():
            if hasattr(scorer, "retain"):
                scorer.retain([hypothesis.states[key] for hypothesis in hypotheses])
