"""What the searches share: the committed prefix, the length cap, the cut of endless repetition."""

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set

from espnet2.legacy.nets.e2e_asr_common import end_detect
from torch import Tensor

from espnet_ext.search.beam_step import BeamStep, Expansion, Expansions, drive
from espnet_ext.search.hypothesis import Candidate, Hypothesis
from espnet_ext.search.repetition import length_without_repeats

# However short the input, a search may add this many tokens.
MIN_NEW_TOKENS = 8


class Search(ABC):
    """A beam search that is run again whenever the encoder memory of the utterance has grown.

    `search` proposes a candidate, `commit` fixes its first tokens: later candidates begin with them. `search` asks for
    each beam step by yielding it, so that whoever runs it may compute the steps of many searches together; `advance`
    runs it alone.

    Args:
        step: expands hypotheses with the model's scorers.
        eos: id of the end symbol.
        beam_size: hypotheses kept.
        maxlenratio: new tokens allowed per memory frame.
        max_ngram_repeats: copies in a row of one n-gram (n = 1 to 4) that a candidate may hold.
        markers: tokens without a surface, which do not count as repetition.
        decoder_states: `keep` the decoder's states of kept prefixes as they were computed, or `recompute` them over the
            whole memory at each search, in its first step.
        memory_grows: whether the frames of one search are the first ones of the next. Otherwise all of them are new
            and the committed prefix is forced over them first.
        max_tokens: longest hypothesis that the decoder can take, None when there is no limit.
    """

    def __init__(
        self,
        step: BeamStep,
        eos: int,
        beam_size: int,
        maxlenratio: float = 1.0,
        max_ngram_repeats: int = 3,
        markers: Set[int] = frozenset(),
        decoder_states: str = "keep",
        memory_grows: bool = True,
        max_tokens: int | None = None,
    ) -> None:
        self.step = step
        self.eos = eos
        self.beam_size = beam_size
        self.maxlenratio = maxlenratio
        self.max_ngram_repeats = max_ngram_repeats
        self.markers = markers
        self.recompute = decoder_states == "recompute"
        self.memory_grows = memory_grows
        self.max_tokens = max_tokens
        self.reset()

    def reset(self) -> None:
        """Start the next utterance."""
        self.committed: Hypothesis | None = None
        self.prefix: tuple[int, ...] = ()  # what the next search begins with while nothing is committed
        self.cut_repeats = False  # whether a candidate of this utterance was cut

    def restart(self, tokens: Sequence[int]) -> None:
        """Go on from these committed tokens, over a memory that is new and with nothing else remembered."""
        cut_repeats = self.cut_repeats
        self.reset()
        self.prefix, self.cut_repeats = tuple(tokens), cut_repeats

    @abstractmethod
    def search(self, memory: Tensor, final: bool) -> Expansions[Candidate | None]:
        """Search over all memory frames `(T, D)` so far; None when every continuation is impossible."""

    def advance(self, memory: Tensor, final: bool) -> Candidate | None:
        """`search`, each of its steps computed at once."""
        return drive(self.search(memory, final))

    def commit(self, candidate: Candidate, length: int) -> None:
        """Fix the first `length` tokens of the candidate. Its score and states are those it had at that length."""
        self.committed = candidate.hypothesis.ancestor(length)
        self.committed.parent = None
        self.step.retain([self.committed])

    @property
    def committed_tokens(self) -> tuple[int, ...]:
        """The tokens fixed so far."""
        return self.prefix if self.committed is None else self.committed.tokens

    @property
    def committed_length(self) -> int:
        """Number of tokens fixed so far."""
        return len(self.committed_tokens)

    def _start(self, memory: Tensor) -> Hypothesis:
        """The committed prefix, with its scorers told of the new frames."""
        if self.committed is None:
            self.committed = self.step.force(self.prefix, memory)
        elif self.memory_grows:
            self._extend([self.committed], memory)
        else:
            self.committed = self.step.force(self.committed.tokens, memory)
        return self.committed

    def _extend(self, hypotheses: Sequence[Hypothesis], memory: Tensor) -> None:
        """Prepare the states of hypotheses for a search over the grown memory."""
        self.step.extend(hypotheses, memory)
        if self.recompute:
            self.step.forget_decoder(hypotheses)

    def _expand(self, hypotheses: Sequence[Hypothesis], memory: Tensor, size: int) -> Expansions[list[Hypothesis]]:
        """The `size` best one-token continuations, in descending score."""
        return (yield Expansion(self.step, hypotheses, memory, size))

    def _cap(self, frames: int) -> int:
        """Longest hypothesis allowed, in tokens, the forced prefix included."""
        cap = self.committed_length + max(MIN_NEW_TOKENS, int(self.maxlenratio * frames))
        return cap if self.max_tokens is None else min(cap, self.max_tokens)

    def _candidate(self, hypothesis: Hypothesis) -> Candidate:
        """The hypothesis as a candidate, cut before an n-gram repeats once too often; `cut_repeats` tells."""
        length = length_without_repeats(hypothesis.tokens, self.max_ngram_repeats)
        if length < len(hypothesis.tokens):
            self.cut_repeats = True
            hypothesis = hypothesis.ancestor(max(length, self.committed_length))
        return Candidate(hypothesis)


def end_detected(ended: Sequence[Hypothesis], position: int) -> bool:
    """ESPnet's end detection: the best hypotheses of the last lengths lag behind. It counts `sos` and `eos`."""
    return end_detect([{"yseq": (None, *h.tokens), "score": h.score} for h in ended], position)
