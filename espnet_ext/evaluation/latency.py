"""Latency of one utterance, all times in ms: AL, LAAL, AP, DAL, ATD and YAAL.

OmniSTEval computes all but ATD, from counts made here: on its own it counts reference words at every single blank,
divides by an empty reference and takes an empty one for one word. Average Token Delay is from Kano, Sudoh and Nakamura
(2023), with SimulEval's settings for speech input and text output.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil, isnan

from omnisteval.data import Instance as OmniInstance
from omnisteval.scoring import ALScorer, APScorer, DALScorer, LAALScorer, YAALScorer

METRICS = ("AL", "LAAL", "AP", "DAL", "ATD", "YAAL")
SOURCE_TOKEN_MS = 300.0  # a source token of ATD, SimulEval's value for speech

_AL, _LAAL, _AP, _DAL, _YAAL = ALScorer(), LAALScorer(), APScorer(), DALScorer(), YAALScorer()


@dataclass
class _Utterance(OmniInstance):
    """An instance whose reference length is given, not counted."""

    units: int = 0

    @property
    def reference_length(self) -> int:
        return self.units


def latency(delays: Sequence[float], source_length: float, reference_length: int) -> dict[str, float | None]:
    """Every metric of one utterance but ATD; None where it is undefined.

    `delays` (ms, one per unit of the hypothesis) may also be `elapsed` times, for the computation-aware twins;
    `source_length` is in ms, `reference_length` in units.
    """
    if not delays or source_length <= 0:
        return dict.fromkeys(metric for metric in METRICS if metric != "ATD")
    utterance = _Utterance(source_length=source_length, emission_cu=list(delays), units=reference_length)
    return {
        "AL": _AL.compute(utterance) if reference_length else None,
        "LAAL": _LAAL.compute(utterance),
        "AP": _defined(_AP([utterance])),
        "DAL": _defined(_DAL([utterance])),
        "YAAL": _YAAL.compute(utterance),
    }


def average_token_delay(delays: Sequence[float], ends: Sequence[float]) -> float | None:
    """ATD: mean time between each target token and the source token it is paired with; None without tokens.

    `delays` (ms) cut both sides into chunks: a target chunk is the units with one delay, its source chunk the audio
    received since the delay before, in tokens of 300 ms. `ends` (ms) are the times at which the units are shown: the
    delays themselves, or computation-aware times (`token_ends`).
    """
    if not delays:
        return None
    source_ends = [0.0]  # of the source tokens, 1-based
    lags: list[float] = []
    previous_delay = 0.0
    for delay, chunk in groupby(delays):
        source_before, target_before = len(source_ends) - 1, len(lags)
        tokens = ceil((delay - previous_delay) / SOURCE_TOKEN_MS)
        source_ends += [min(previous_delay + (i + 1) * SOURCE_TOKEN_MS, delay) for i in range(tokens)]
        surplus = max(0, target_before - source_before)  # target tokens without a source token of their own
        for position in range(target_before + 1, target_before + 1 + sum(1 for _ in chunk)):
            paired = min(position - surplus, len(source_ends) - 1)
            lags.append(ends[position - 1] - source_ends[paired])
        previous_delay = delay
    return sum(lags) / len(lags)


def token_ends(delays: Sequence[float], elapsed: Sequence[float], clock: str) -> list[float]:
    """The times (ms) at which units are shown, for a computation-aware ATD.

    `elapsed` itself, but under the `simuleval` clock SimulEval adds the computation between two units to the later of
    this unit's delay and the time of the unit before.
    """
    if clock != "simuleval":
        return list(elapsed)
    lags = [0.0, *(late - delay for delay, late in zip(delays, elapsed, strict=True))]
    ends: list[float] = []
    for delay, (before, after) in zip(delays, pairwise(lags), strict=True):
        ends.append(max(delay, ends[-1] if ends else 0.0) + after - before)
    return ends


def _defined(value: float) -> float | None:
    return None if isnan(value) else value
