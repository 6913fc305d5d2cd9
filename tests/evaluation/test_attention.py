"""Monotonic, sharp, neither: on hand-made weights."""

import numpy as np
import pytest

from espnet_ext.evaluation.attention import measure, monotonicity, recommend, sharpness


def along(tokens=10, frames=100, width=3.0, reverse=False):
    """Weights whose peaks move along the diagonal."""
    peaks = np.linspace(5, frames - 10, tokens)
    peaks = peaks[::-1] if reverse else peaks
    weights = np.exp(-(((np.arange(frames) - peaks[:, None]) / width) ** 2))
    return weights / weights.sum(axis=1, keepdims=True)


def test_a_diagonal_is_monotonic_and_sharp():
    assert monotonicity(along()) == pytest.approx(1, abs=0.01)
    assert sharpness(along()) > 0.95
    assert monotonicity(along(reverse=True)) == pytest.approx(-1, abs=0.01)
    assert sharpness(np.full((10, 100), 0.01)) < 0.15
    assert monotonicity(np.full((10, 100), 0.01)) == 0


def test_the_best_layer_is_recommended_and_none_when_none_will_do():
    diffuse, still = along(width=200), np.eye(100)[[50] * 10]
    layers = measure([[diffuse, diffuse], [along(), along(width=9)], [still, still]])
    assert [layer["layer"] for layer in layers] == [1, 2, 3]
    assert recommend(layers) == 2
    assert recommend([layers[0], layers[2]]) is None
