"""The beam search of machine translation: it ends when the beam's worth of hypotheses has finished."""

from torch import Tensor

from espnet_ext.search.base import Search, end_detected
from espnet_ext.search.beam_step import Expansions
from espnet_ext.search.hypothesis import Candidate, Hypothesis


class StandardBeamSearch(Search):
    """A full beam of live hypotheses at every step, filled from the best `2 * beam_size` continuations.

    A continuation by `eos` that ranks above the last one kept is finished. The search ends when `beam_size` have
    finished, or with `end_detect` by ESPnet's rule instead, or at the cap; best by score / length.
    """

    def __init__(self, *args: object, end_detect: bool = False, **kwargs: object) -> None:
        self.end_detect = end_detect
        super().__init__(*args, **kwargs)

    def search(self, memory: Tensor, final: bool) -> Expansions[Candidate | None]:
        live = [self._start(memory)]
        finished: list[Hypothesis] = []
        cap = self._cap(len(memory))
        while live and not self._has_ended(finished, len(live[0].tokens)):
            candidates = yield from self._expand(live, memory, 2 * self.beam_size)
            live = []
            for candidate in candidates:
                if candidate.tokens[-1] == self.eos or len(candidate.tokens) >= cap:
                    finished.append(candidate)
                elif len(live) < self.beam_size:
                    live.append(candidate)
                if len(live) == self.beam_size:
                    break
        if not finished:
            return None
        return self._candidate(max(finished, key=lambda hypothesis: hypothesis.normalized_score).parent)

    def _has_ended(self, finished: list[Hypothesis], length: int) -> bool:
        if self.end_detect:
            return length > 0 and end_detected(finished, length - 1)
        return len(finished) >= self.beam_size
