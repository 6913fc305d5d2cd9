"""Pruning without a policy (IBWBS paper, section 3.1 and Table 1)."""

from collections.abc import Sequence


class All:
    """Everything the search proposes is stable."""

    def reset(self) -> None:
        """Nothing to forget."""

    def stable_length(self, tokens: Sequence[int]) -> int:
        """Number of leading candidate tokens to commit."""
        return len(tokens)
