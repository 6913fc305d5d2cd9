"""Comparing quality-latency curves: Pareto front, interpolation, latency saved, range of a policy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Point:
    """One system on the quality-latency plane: latency in ms, BLEU, share of words released at the source end."""

    name: str
    latency: float
    bleu: float
    words_at_end: float | None = None


@dataclass(frozen=True)
class Crossing:
    """Where a curve reaches a BLEU: interpolated latency (ms) and share of words at the end, and the systems beside."""

    latency: float
    words_at_end: float | None
    systems: tuple[str, ...]


def pareto_front(points: Iterable[Point]) -> list[Point]:
    """The points that no other beats in latency and BLEU at once, by growing latency (and BLEU)."""
    front: list[Point] = []
    for point in sorted(points, key=lambda point: (point.latency, -point.bleu)):
        if not front or point.bleu > front[-1].bleu:
            front.append(point)
    return front


def latency_at(points: Iterable[Point], bleu: float) -> Crossing | None:
    """Where the Pareto front of `points`, joined by straight lines, reaches `bleu`.

    None outside the front: nothing is extrapolated.
    """
    front = pareto_front(points)
    for point in front:
        if point.bleu == bleu:
            return Crossing(point.latency, point.words_at_end, (point.name,))
    for low, high in pairwise(front):
        if low.bleu < bleu < high.bleu:
            share = (bleu - low.bleu) / (high.bleu - low.bleu)
            ends = (low.words_at_end, high.words_at_end)
            at_end = None if None in ends else ends[0] + share * (ends[1] - ends[0])
            return Crossing(low.latency + share * (high.latency - low.latency), at_end, (low.name, high.name))
    return None


def cheapest(points: Iterable[Point], bleu: float) -> Point | None:
    """The measured point of least latency with at least `bleu`; None when no point has it."""
    return min((point for point in points if point.bleu >= bleu), key=lambda point: point.latency, default=None)


def latency_saving(
    system: Sequence[Point], baseline: Sequence[Point], offline_bleu: float, below: float
) -> dict[str, object]:
    """Latency (ms) of two curves at the BLEU `below` offline, and how much the first saves in per cent.

    `saving_percent` is None when a curve does not reach that BLEU, or starts above it; `undefined` then says which.
    `measured` compares, without interpolation, the cheapest systems with at least that BLEU.
    """
    bleu = offline_bleu - below
    ours, theirs = latency_at(system, bleu), latency_at(baseline, bleu)
    undefined = [
        f"{name} {_range(points)}"
        for name, points, crossing in (("system", system, ours), ("baseline", baseline, theirs))
        if crossing is None
    ]
    if not undefined and theirs.latency <= 0:
        undefined = [f"baseline latency is {theirs.latency:.0f} ms"]
    return {
        "bleu": bleu,
        "system_latency": ours.latency if ours else None,
        "system_words_at_end": ours.words_at_end if ours else None,
        "system_points": list(ours.systems) if ours else [],
        "baseline_latency": theirs.latency if theirs else None,
        "baseline_words_at_end": theirs.words_at_end if theirs else None,
        "baseline_points": list(theirs.systems) if theirs else [],
        "saving_percent": None if undefined else 100 * (1 - ours.latency / theirs.latency),
        "undefined": "; ".join(undefined) or None,
        "measured": _measured(cheapest(system, bleu), cheapest(baseline, bleu)),
    }


def policy_range(points: Sequence[Point], offline_bleu: float) -> dict[str, object]:
    """How far a policy reaches: smallest and largest latency (ms), their ratio, and best BLEU against offline.

    The ratio is None unless both latencies are above 0 (LAAL can be below); all is None without points.
    """
    if not points:
        return dict.fromkeys(("min_latency", "max_latency", "ratio", "max_bleu", "below_offline"))
    low, high = min(point.latency for point in points), max(point.latency for point in points)
    best = max(point.bleu for point in points)
    return {
        "min_latency": low,
        "max_latency": high,
        "ratio": high / low if low > 0 else None,
        "max_bleu": best,
        "below_offline": offline_bleu - best,
    }


def _measured(system: Point | None, baseline: Point | None) -> dict[str, object] | None:
    if system is None or baseline is None:
        return None
    values: dict[str, object] = {}
    for name, point in (("system", system), ("baseline", baseline)):
        values |= {name: point.name, f"{name}_bleu": point.bleu, f"{name}_latency": point.latency}
        values[f"{name}_words_at_end"] = point.words_at_end
    saving = 100 * (1 - system.latency / baseline.latency) if baseline.latency > 0 else None
    return values | {"saving_percent": saving}


def _range(points: Sequence[Point]) -> str:
    if not points:
        return "has no points"
    front = pareto_front(points)
    return f"spans BLEU {front[0].bleu:.1f} to {front[-1].bleu:.1f} only"
