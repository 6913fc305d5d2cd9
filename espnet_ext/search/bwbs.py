"""Blockwise streaming beam search (IBWBS paper, Algorithm 1), by re-translation or incremental."""

from torch import Tensor

from espnet_ext.search.base import Search, end_detected
from espnet_ext.search.beam_step import Expansions
from espnet_ext.search.hypothesis import Candidate, Hypothesis
from espnet_ext.search.repetition import repeats_token


class BlockwiseBeamSearch(Search):
    """Expand the whole beam until any of its hypotheses ends or repeats a token, then wait for more source.

    On stopping, the last accepted step of the block is rolled back too, so the last two tokens go; as in ESPnet, never
    back to the empty hypothesis. `incremental` keeps the best hypothesis alone after each search (section 3.1 of the
    paper) and makes it the candidate; otherwise the beam stays as it is and the best hypothesis may change.
    """

    def __init__(
        self, *args: object, incremental: bool, repetition: bool = True, end_detect: bool = True, **kwargs: object
    ) -> None:
        self.incremental = incremental
        self.repetition = repetition
        self.end_detect = end_detect
        super().__init__(*args, **kwargs)

    def reset(self) -> None:
        super().reset()
        self.beam: list[Hypothesis] = []

    def commit(self, candidate: Candidate, length: int) -> None:
        super().commit(candidate, length)
        self.beam = [self.committed]

    def search(self, memory: Tensor, final: bool) -> Expansions[Candidate | None]:
        if not self.beam:
            self.beam = [self._start(memory)]
        else:
            self._extend(self.beam, memory)
        cap = self._cap(len(memory))
        if final:
            return (yield from self._finish(memory, cap))
        previous: list[Hypothesis] = []  # the beam before the last accepted step of this block
        while len(self.beam[0].tokens) < cap:
            candidates = yield from self._expand(self.beam, memory, self.beam_size)
            if not candidates:
                break
            if any(self._offends(candidate) for candidate in candidates):
                if previous and len(self.beam[0].tokens) > 1:
                    self.beam = previous
                break
            previous, self.beam = self.beam, candidates
        if self.incremental:
            self.beam = self.beam[:1]
        self.step.retain(self.beam)
        return self._candidate(self.beam[0])

    def _offends(self, hypothesis: Hypothesis) -> bool:
        tokens = hypothesis.tokens
        return tokens[-1] == self.eos or (self.repetition and repeats_token(tokens))

    def _finish(self, memory: Tensor, cap: int) -> Expansions[Candidate | None]:
        """The last search: hypotheses end one by one, until ESPnet's end detection or all have; best by raw score."""
        ended: list[Hypothesis] = []
        beam = self.beam
        for position in range(len(beam[0].tokens), cap):
            if self.end_detect and end_detected(ended, position):
                break
            candidates = yield from self._expand(beam, memory, self.beam_size)
            ended += [h for h in candidates if h.tokens[-1] == self.eos]
            beam = [h for h in candidates if h.tokens[-1] != self.eos]
            if not beam or (self.end_detect and end_detected(ended, position)):
                break
        else:
            ended += beam
        if not ended:
            return None
        best = max(ended, key=lambda hypothesis: hypothesis.score)
        return self._candidate(best.parent if best.tokens and best.tokens[-1] == self.eos else best)
