"""Hypotheses as a tree: truncation is a walk to an ancestor, whose score and states are what they were."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor


@dataclass(slots=True, eq=False)
class Hypothesis:
    """A token sequence after `sos` with its raw cumulative score and its scorer states.

    `states` are ESPnet's: what each scorer returned when it predicted the last token. `attention` are the decoder's
    cross attention weights `(T,)` in that step, where the search was asked for them.
    """

    tokens: tuple[int, ...]
    score: float
    states: Mapping[str, object]
    parent: "Hypothesis | None" = None
    attention: Tensor | None = None

    def ancestor(self, length: int) -> "Hypothesis":
        """The hypothesis of the first `length` tokens, exactly as it was when it had that length."""
        hypothesis = self
        while len(hypothesis.tokens) > length:
            hypothesis = hypothesis.parent
        return hypothesis

    @property
    def normalized_score(self) -> float:
        """Score per token; the committed prefix and the last token count."""
        return self.score / max(1, len(self.tokens))


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a search proposes to the policy: tokens from the start of the utterance, the committed ones included."""

    hypothesis: Hypothesis

    @property
    def tokens(self) -> tuple[int, ...]:
        """All tokens after `sos`, without an end symbol."""
        return self.hypothesis.tokens

    def attention(self, committed: int) -> list[Tensor]:
        """Cross attention `(T,)` of each token after the first `committed` ones, as far back as it is known."""
        rows, hypothesis = [], self.hypothesis
        while len(hypothesis.tokens) > committed and hypothesis.parent is not None:
            rows.append(hypothesis.attention)
            hypothesis = hypothesis.parent
        return rows[::-1]
