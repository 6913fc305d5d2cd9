"""Policies: how many tokens of a candidate are stable. Pure: they see token lists and matrices, and import no model."""

from typing import Protocol

from espnet_ext.policy.align_att import AlignAtt
from espnet_ext.policy.all import All
from espnet_ext.policy.context import Context
from espnet_ext.policy.ctc_wait import CtcWait
from espnet_ext.policy.hold_n import HoldN
from espnet_ext.policy.local_agreement import LocalAgreement
from espnet_ext.policy.wait_k import WaitK

__all__ = ["AlignAtt", "All", "Context", "CtcWait", "HoldN", "LocalAgreement", "Policy", "WaitK"]


class Policy(Protocol):
    """What a session asks of a policy. At the end of the input it is not asked: everything is stable then.

    One that reads `context.attention()` has the class attribute `needs_attention = True`.
    """

    def reset(self) -> None:
        """Start the next utterance."""

    def stable_length(self, context: Context) -> int:
        """Number of leading candidate tokens (from the start of the utterance) to commit.

        Less than what is committed already means nothing new: the session never takes back.
        """
