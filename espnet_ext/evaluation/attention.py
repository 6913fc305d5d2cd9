"""Whether the cross attention of a decoder layer can steer AlignAtt: does it move along with the translation, and how
sharply?

AlignAtt and StreamAtt read from the attention how far a token has got in the audio. A model can translate well with
attention that says nothing of the kind.
"""

from collections.abc import Sequence
from statistics import fmean

import numpy as np

AROUND = 6  # frames on either side of a peak that count as near it
LEAST_MONOTONICITY = 0.6
LEAST_SHARPNESS = 0.2


def monotonicity(weights: np.ndarray) -> float:
    """Correlation of the tokens' order with their attention peaks in weights `(tokens, frames)`; 0 if none moves."""
    peaks = weights[:, :-1].argmax(axis=1)
    if len(peaks) < 2 or np.ptp(peaks) == 0:
        return 0.0
    return float(np.corrcoef(np.arange(len(peaks)), peaks)[0, 1])


def sharpness(weights: np.ndarray) -> float:
    """Mean share of a token's weight that lies near its peak, in weights `(tokens, frames)`."""
    peaks = weights[:, :-1].argmax(axis=1)
    near = np.abs(np.arange(weights.shape[1]) - peaks[:, None]) <= AROUND
    return float((weights * near).sum(axis=1).mean())


def measure(layers: Sequence[Sequence[np.ndarray]]) -> list[dict[str, float]]:
    """For each layer, means over its utterances' weights `(tokens, frames)`."""
    return [
        {
            "layer": number,
            "monotonicity": round(fmean(map(monotonicity, utterances)), 3),
            "sharpness": round(fmean(map(sharpness, utterances)), 3),
        }
        for number, utterances in enumerate(layers, start=1)
    ]


def recommend(layers: Sequence[dict[str, float]]) -> int | None:
    """The number of the best layer, None when none is both monotonic and sharp enough."""
    usable = [
        layer
        for layer in layers
        if layer["monotonicity"] >= LEAST_MONOTONICITY and layer["sharpness"] >= LEAST_SHARPNESS
    ]
    best = max(usable, key=lambda layer: layer["monotonicity"] * layer["sharpness"], default=None)
    return None if best is None else best["layer"]
