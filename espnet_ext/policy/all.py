"""Pruning without a policy (IBWBS paper, section 3.1 and Table 1)."""

from espnet_ext.policy.context import Context


class All:
    """Everything the search proposes is stable."""

    def reset(self) -> None:
        """Nothing to forget."""

    def stable_length(self, context: Context) -> int:
        """Number of leading candidate tokens to commit."""
        return len(context.tokens)
