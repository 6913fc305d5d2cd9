"""Local agreement (IBWBS paper, section 2.3): what consecutive searches agree on is stable."""

from collections import deque
from collections.abc import Sequence
from itertools import takewhile

from espnet_ext.policy.context import Context


class LocalAgreement:
    """Stable is the longest common prefix of the candidates of the last `la_n` searches that gave one."""

    def __init__(self, la_n: int) -> None:
        self.la_n = la_n
        self.reset()

    def reset(self) -> None:
        """Forget earlier candidates."""
        self.history: deque[Sequence[int]] = deque(maxlen=self.la_n)

    def stable_length(self, context: Context) -> int:
        """Number of leading candidate tokens to commit; 0 until `la_n` searches have run."""
        self.history.append(context.tokens)
        if len(self.history) < self.la_n:
            return 0
        return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, zip(*self.history, strict=False)))
