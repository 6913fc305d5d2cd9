"""One step of beam search over ESPnet's scorers: what every search repeats, alone or many searches together."""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from espnet2.legacy.nets.scorer_interface import BatchScorerInterface, PartialScorerInterface
from torch import Tensor

from espnet_ext.search.hypothesis import Hypothesis

# As in ESPnet's beam search: a partial scorer sees this many times the beam's tokens of each hypothesis.
PRE_BEAM_RATIO = 1.5


class BeamStep:
    """Expands hypotheses by one token with ESPnet's scorers (decoder, LM, length bonus; CTC on a pre-beam).

    `start` are the tokens that every hypothesis begins with and none shows. `suppressed` tokens are never chosen,
    `suppressed_first` not as the first token after the start; both keep their share of the probability.

    Counts `decoder_forwards`, calls for a step of the whole beam, and `hypothesis_steps`, the hypotheses in them.
    """

    def __init__(
        self,
        scorers: Mapping[str, BatchScorerInterface],
        weights: Mapping[str, float],
        beam_size: int,
        vocab_size: int,
        start: Sequence[int],
        suppressed: Sequence[int] = (),
        suppressed_first: Sequence[int] = (),
    ) -> None:
        self.scorers = scorers
        self.weights = weights
        self.decoder = scorers["decoder"]
        others = {key: scorer for key, scorer in scorers.items() if key != "decoder"}
        self.full = {k: s for k, s in others.items() if not isinstance(s, PartialScorerInterface)}
        self.partial = {k: s for k, s in others.items() if isinstance(s, PartialScorerInterface)}
        self.beam_size = beam_size
        self.pre_beam_size = min(int(PRE_BEAM_RATIO * beam_size), vocab_size)
        self.vocab_size = vocab_size
        self.start = tuple(start)
        self.suppressed = torch.tensor([*suppressed], dtype=torch.long)
        self.suppressed_first = torch.tensor([*suppressed, *suppressed_first], dtype=torch.long)
        self.decoder_forwards = 0
        self.hypothesis_steps = 0

    @torch.inference_mode()
    def root(self, memory: Tensor) -> Hypothesis:
        """The empty hypothesis of a new utterance, with all scorers at their start on `memory` `(T, D)`."""
        return Hypothesis((), 0.0, {key: scorer.batch_init_state(memory) for key, scorer in self.scorers.items()})

    @torch.inference_mode()
    def force(self, tokens: Sequence[int], memory: Tensor) -> Hypothesis:
        """The hypothesis of these tokens as a search over `memory` `(T, D)` alone would have made it.

        Its ancestors hang at it, all with scores, states and attention. One decoder call, if the decoder can.
        """
        hypothesis = self.root(memory)
        if not tokens:
            return hypothesis
        prefix = torch.tensor([[*self.start, *tokens]], device=memory.device)
        before = len(self.start) - 1  # tokens of the start that predict nothing
        full, attention = dict(self.full), None
        if hasattr(self.decoder, "score_prefix"):
            scores, decoder_states = self.decoder.score_prefix(prefix[0, :-1], memory)
            decoder_scores = scores.gather(1, prefix[0, 1:, None])[before:, 0].tolist()
            decoder_states = decoder_states[before:]
            attention = None if self.decoder.attention is None else self.decoder.attention[before:]
            self.decoder_forwards += 1
        else:
            full["decoder"] = self.decoder
            self.decoder_forwards += len(tokens)
        self.hypothesis_steps += len(tokens)
        xs = memory.unsqueeze(0)
        for index, token in enumerate(tokens):
            states, score = {}, hypothesis.score
            if "decoder" not in full:
                states["decoder"] = decoder_states[index]
                score += self.weights["decoder"] * decoder_scores[index]
            ys, ids = prefix[:, : before + index + 1], prefix[:, before + index + 1 : before + index + 2]
            for key, scorer in (full | self.partial).items():
                if key in full:
                    scored, after = scorer.batch_score(ys, [hypothesis.states[key]], xs)
                else:
                    scored, after = scorer.batch_score_partial(ys[:, before:], ids, [hypothesis.states[key]], xs)
                score += self.weights[key] * scored[0, token].item()
                states[key] = scorer.select_state(after, 0, token)
            row = None if attention is None else attention[index]
            hypothesis = Hypothesis((*hypothesis.tokens, token), score, states, hypothesis, row)
        return hypothesis

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

    def _select(self, expansion: "Expansion", call: "_Call", decoded: tuple[Tensor, list]) -> list[Hypothesis]:
        """The continuations, once the decoder has scored them."""
        hypotheses = expansion.hypotheses
        states = {"decoder": decoded[1]}
        total = self.weights["decoder"] * decoded[0]
        for key, scorer in self.full.items():
            scores, states[key] = scorer.batch_score(call.prefixes, [h.states[key] for h in hypotheses], call.memory)
            total += self.weights[key] * scores
        banned = self.suppressed_first if call.prefixes.size(1) == len(self.start) else self.suppressed
        if len(banned):
            total.index_fill_(1, banned.to(total.device), -math.inf)
        if self.partial:
            ids = total.topk(self.pre_beam_size, dim=-1).indices
        for key, scorer in self.partial.items():
            # CTC knows labels only: of the start it sees one token, as sos.
            labels = call.prefixes[:, len(self.start) - 1 :]
            scores, states[key] = scorer.batch_score_partial(
                labels, ids, [h.states[key] for h in hypotheses], call.memory
            )
            total += self.weights[key] * scores
        total += torch.from_numpy(np.array([[h.score] for h in hypotheses], dtype=np.float32)).to(total.device)
        best = total.view(-1).topk(min(expansion.size, total.numel()))
        self.decoder_forwards += 1
        self.hypothesis_steps += len(hypotheses)
        attention = getattr(self.decoder, "attention", None)
        return [
            self._child(hypotheses, states, attention, score, index)
            for score, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
            if score > -math.inf
        ]

    def _child(
        self, hypotheses: Sequence[Hypothesis], states: dict, attention: Tensor | None, score: float, index: int
    ) -> Hypothesis:
        row, token = divmod(index, self.vocab_size)
        chosen = {key: scorer.select_state(states[key], row, token) for key, scorer in self.scorers.items()}
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
        if hasattr(self.decoder, "retain"):
            self.decoder.retain([hypothesis.states["decoder"] for hypothesis in hypotheses])


@dataclass(slots=True)
class Expansion:
    """A beam step that a search asks for: the `size` best one-token continuations of hypotheses of equal length."""

    step: BeamStep
    hypotheses: Sequence[Hypothesis]
    memory: Tensor
    size: int


# What yields a search's beam steps, is sent the continuations of each, and returns a `T`.
type Expansions[T] = Generator[Expansion, list[Hypothesis], T]


@dataclass(slots=True)
class _Call:
    """A scorer's view of an expansion: prefixes `(N, L)` with `sos`, memory `(N, T, D)`."""

    prefixes: Tensor
    memory: Tensor


def drive[T](search: Expansions[T]) -> T:
    """Run a search alone to its end."""
    answer = None
    while True:
        try:
            asked = search.send(answer)
        except StopIteration as end:
            return end.value
        answer = expand([asked])[0]


def drive_together[T](searches: Sequence[Expansions[T]]) -> list[T | Exception]:
    """Run searches of one model side by side, each step of all of them in one call of the decoder.

    The result of one that fails is its exception; the others go on.
    """
    results: list[T | Exception | None] = [None] * len(searches)
    answers: dict[int, list[Hypothesis] | Exception | None] = dict.fromkeys(range(len(searches)))
    while answers:
        asked: dict[int, Expansion] = {}
        for index, answer in answers.items():
            try:
                resume = searches[index].throw if isinstance(answer, Exception) else searches[index].send
                asked[index] = resume(answer)
            except StopIteration as end:
                results[index] = end.value
            except Exception as error:  # noqa: BLE001 - handed to the caller
                results[index] = error
        answers = dict(zip(asked, _expand_or_fail(list(asked.values())), strict=True))
    return results


def _expand_or_fail(expansions: Sequence[Expansion]) -> list[list[Hypothesis] | Exception]:
    """`expand`; when that fails each expansion alone, and in the place of one that fails its exception."""
    try:
        return expand(expansions)
    except Exception as error:  # noqa: BLE001 - raised in the search that asked
        if len(expansions) == 1:
            return [error]
        return [answer for expansion in expansions for answer in _expand_or_fail([expansion])]


@torch.inference_mode()
def expand(expansions: Sequence[Expansion]) -> list[list[Hypothesis]]:
    """The continuations of each expansion in descending score. Expansions of several sessions share one model."""
    calls = []
    for expansion in expansions:
        rows = [(*expansion.step.start, *h.tokens) for h in expansion.hypotheses]
        memory = expansion.memory.expand(len(rows), *expansion.memory.shape)
        calls.append(_Call(torch.from_numpy(np.array(rows)).to(memory.device), memory))
    return [
        expansion.step._select(expansion, call, scores)
        for expansion, call, scores in zip(expansions, calls, _decode(expansions, calls), strict=True)
    ]


def _decode(expansions: Sequence[Expansion], calls: Sequence[_Call]) -> list[tuple[Tensor, list]]:
    """Decoder scores and states of each expansion, by one call where the decoder can take several sessions."""
    asked = [
        (
            expansion.step.decoder,
            call.prefixes,
            [h.states["decoder"] for h in expansion.hypotheses],
            call.memory,
        )
        for expansion, call in zip(expansions, calls, strict=True)
    ]
    if hasattr(asked[0][0], "score_together"):
        return asked[0][0].score_together(asked)
    return [decoder.batch_score(prefixes, states, memory) for decoder, prefixes, states, memory in asked]
