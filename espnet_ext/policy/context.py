"""What policies see of a search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np


def _absent() -> np.ndarray:
    raise ValueError("this search was not asked for it")


@dataclass(frozen=True)
class Context:
    """The candidate of a search and what it rests on. Attention and CTC are computed when a policy asks.

    Args:
        tokens: the candidate, from the start of the utterance.
        committed: how many of them are committed already.
        frames: encoder frames searched over.
        attention: gives the cross attention weights of the steps that predicted the new tokens, `(new tokens, frames)`;
            columns after these are silence that the model was given after the audio.
        ctc_length: gives the number of tokens that greedy CTC finds in the frames.
    """

    tokens: Sequence[int]
    committed: int = 0
    frames: int = 0
    attention: Callable[[], np.ndarray] = field(default=_absent)
    ctc_length: Callable[[], int] = field(default=_absent)
