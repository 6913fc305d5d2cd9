"""Incremental blockwise beam search (IBWBS paper, Algorithm 2)."""

from torch import Tensor

from espnet_ext.search.base import Search
from espnet_ext.search.beam_step import Expansions
from espnet_ext.search.hypothesis import Candidate, Hypothesis
from espnet_ext.search.repetition import repeats_token


class IncrementalBlockwiseBeamSearch(Search):
    """Every hypothesis stops alone; when all have stopped, the best by length-normalised score is the candidate.

    Args:
        repetition: a hypothesis stops when its last token occurs earlier in it.
        reliability: a hypothesis stops when its raw score is not above the best stopped one. False is Algorithm 2 as
            printed.
        seen: sequences stopped in an earlier search of the utterance pass both tests: `exact` ones, every `prefix` of
            one, or none (`off`).
        length_norm: compare score / length; False compares scores, a length bonus among them if a scorer gives one.
    """

    def __init__(
        self,
        *args: object,
        repetition: bool = True,
        reliability: bool = True,
        seen: str = "exact",
        length_norm: bool = True,
        **kwargs: object,
    ) -> None:
        self.repetition = repetition
        self.reliability = reliability
        self.seen_mode = seen
        self.length_norm = length_norm
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        super().reset()
        self.seen: set[tuple[int, ...]] = set()

    def search(self, memory: Tensor, final: bool) -> Expansions[Candidate | None]:
        live = [self._start(memory)]
        stopped: list[Hypothesis] = []
        cap = self._cap(len(memory))
        while live:
            candidates = yield from self._expand(live, memory, self.beam_size - len(stopped))
            live = []
            for candidate in candidates:  # in descending score
                if self._stops(candidate, stopped, final):
                    stopped.append(candidate)
                elif len(candidate.tokens) >= cap:
                    ended = (*candidate.tokens[:-1], self.eos)
                    stopped.append(Hypothesis(ended, candidate.score, candidate.states, candidate.parent))
                else:
                    live.append(candidate)
        self._remember(stopped)
        if not stopped:
            return None
        return self._candidate(max(stopped, key=self._final_score).parent)

    def _stops(self, candidate: Hypothesis, stopped: list[Hypothesis], final: bool) -> bool:
        if candidate.tokens[-1] == self.eos:
            return True
        if final or candidate.tokens in self.seen:
            return False
        if self.repetition and repeats_token(candidate.tokens, self.markers):
            return True
        return self.reliability and any(candidate.score <= other.score for other in stopped)

    def _final_score(self, hypothesis: Hypothesis) -> float:
        return hypothesis.normalized_score if self.length_norm else hypothesis.score

    def _remember(self, stopped: list[Hypothesis]) -> None:
        if self.seen_mode == "off":
            return
        for hypothesis in stopped:
            self.seen.add(hypothesis.tokens)
            if self.seen_mode == "prefix":
                self.seen.update(hypothesis.tokens[:length] for length in range(1, len(hypothesis.tokens)))
