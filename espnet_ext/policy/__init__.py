"""Policies: how many tokens of a candidate are stable. Pure: they see token lists and import no model."""

from collections.abc import Sequence
from typing import Protocol

from espnet_ext.policy.all import All
from espnet_ext.policy.hold_n import HoldN
from espnet_ext.policy.local_agreement import LocalAgreement

__all__ = ["All", "HoldN", "LocalAgreement", "Policy"]


class Policy(Protocol):
    """What a session asks of a policy. At the end of the input it is not asked: everything is stable then."""

    def reset(self) -> None:
        """Start the next utterance."""

    def stable_length(self, tokens: Sequence[int]) -> int:
        """Number of leading candidate tokens (from the start of the utterance) to commit.

        Less than what is committed already means nothing new: the session never takes back.
        """
