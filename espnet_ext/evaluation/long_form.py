"""Scores of whole talks: quality on resegmented text, StreamLAAL, and OmniSTEval's LongYAAL and its like.

StreamLAAL (StreamAtt paper, section 4): each talk's words are assigned to the reference segments by minimum word error
rate, delays count from the segment's start, LAAL of each segment, mean. The Long metrics use OmniSTEval's alignment.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from statistics import fmean

from omnisteval.alignment import Word
from omnisteval.data import Instance as OmniInstance
from omnisteval.resegment import resegment
from omnisteval.scoring import ALScorer, DALScorer, LAALScorer, YAALScorer

from espnet_ext.errors import UserError
from espnet_ext.evaluation.latency import latency
from espnet_ext.evaluation.quality import bleu_interval, mean_interval, quality
from espnet_ext.evaluation.segmentation import Segment, assign, by_talk, joined
from espnet_ext.log.clocks import elapsed_times
from espnet_ext.log.instances import Instance
from espnet_ext.log.units import split_units, uses_characters

LONG_SCORERS: dict[str, Callable[[bool], object]] = {
    "LongYAAL": lambda aware: YAALScorer(computation_aware=aware, is_longform=True),
    "LongLAAL": lambda aware: LAALScorer(computation_aware=aware),
    "LongAL": lambda aware: ALScorer(computation_aware=aware),
    "LongDAL": lambda aware: DALScorer(computation_aware=aware),
}
LONG_FORM_METRICS = ("StreamLAAL", *LONG_SCORERS)
EMPTY_SEGMENTS = ("skip", "paper")
MARKS = (".", ",", "!", "?", ";", ":")


def join_talks(
    instances: Sequence[Instance], segments: Sequence[Segment], log: str
) -> list[tuple[Instance, list[Segment]]]:
    """Each talk's log line with its segments. Raises UserError unless both sides hold the same talks."""
    lines, talks = {instance.utt_id: instance for instance in instances}, by_talk(segments)
    for name in talks.keys() - lines.keys():
        raise UserError(f"{log}: no line for talk {name!r}, of which there are segments")
    for name in lines.keys() - talks.keys():
        raise UserError(f"{log}: there are no segments of talk {name!r}")
    return [(lines[name], found) for name, found in talks.items()]


def score_talks(
    talks: Sequence[tuple[Instance, Sequence[Segment]]],
    tgt_lang: str,
    clock: str = "queue",
    empty_segments: str = "skip",
    clip_negative: bool = False,
) -> tuple[dict[str, object], list[dict[str, object]]]:
    """The scores of all talks and a row a segment; latencies in ms, None where undefined.

    Args:
        empty_segments: a segment without words is left out (`skip`) or adds 0 to the mean (`paper`).
        clip_negative: a word put out before its segment begins counts as put out at its beginning.
    """
    rows: list[dict[str, object]] = []
    for instance, segments in talks:
        rows += _stream_rows(instance, segments, tgt_lang, clock, clip_negative)
    texts = [row["prediction"] for row in rows], [row["reference"] for row in rows]
    scores: dict[str, object] = {**quality(*texts, tgt_lang)}
    intervals = {"BLEU": bleu_interval(*texts, tgt_lang)}
    n_scored = {}
    for name in ("StreamLAAL", "StreamLAAL_CA"):
        values = [row[name] for row in rows if row[name] is not None]
        n_scored[name] = len(values)
        count = len(rows) if empty_segments == "paper" else len(values)
        scores[name] = sum(values) / count if values else None
        intervals[name] = mean_interval(values + [0.0] * (count - len(values)))
    for name, values in _long_values(talks, tgt_lang, clock).items():
        n_scored[name] = len(values)
        scores[name] = fmean(values) if values else None
        intervals[name] = mean_interval(values)
    released = [delay >= instance.source_length for instance, _ in talks for delay in instance.delays]
    scores |= {
        "words_at_end": fmean(released) if released else None,
        "punctuation": _marks(instance.prediction for instance, _ in talks),
        "reference_punctuation": _marks(segment.reference for _, segments in talks for segment in segments),
        "CA_clock": clock,
        "CI95": intervals,
        "empty_segments": empty_segments,
        "clip_negative": clip_negative,
        "n_total": len(rows),
        "n_empty": sum(not row["prediction"] for row in rows),
        "n_scored": n_scored,
        "n_skipped": {name: len(rows) - count for name, count in n_scored.items()},
    }
    return scores, rows


def _elapsed(instance: Instance, clock: str) -> Sequence[float]:
    return instance.elapsed if clock == "queue" else elapsed_times(instance.delays, instance.steps, clock)


def _stream_rows(
    instance: Instance, segments: Sequence[Segment], tgt_lang: str, clock: str, clip_negative: bool
) -> list[dict[str, object]]:
    units = split_units(instance.prediction, tgt_lang)
    stream = iter(zip(units, instance.delays, _elapsed(instance, clock), strict=True))
    rows = []
    for segment, count in zip(segments, assign(units, segments, tgt_lang), strict=True):
        own = list(islice(stream, count))
        length = len(split_units(segment.reference, tgt_lang))
        row: dict[str, object] = {
            "segment": segment.key,
            "talk": segment.talk,
            "start": segment.start,
            "source_length": segment.end - segment.start,
            "reference_length": length,
            "prediction_length": count,
        }
        for name, times in (("StreamLAAL", [one[1] for one in own]), ("StreamLAAL_CA", [one[2] for one in own])):
            since = [time - segment.start for time in times]
            since = [max(0.0, time) for time in since] if clip_negative else since
            row[name] = latency(since, segment.end - segment.start, length).get("LAAL")
        row["prediction"] = joined([one[0] for one in own], tgt_lang)
        row["reference"] = joined(split_units(segment.reference, tgt_lang), tgt_lang)
        rows.append(row)
    return rows


def _long_values(
    talks: Sequence[tuple[Instance, Sequence[Segment]]], tgt_lang: str, clock: str
) -> dict[str, list[float]]:
    """The values of every Long metric, one a segment where it is defined."""
    characters = uses_characters(tgt_lang)
    references, hypotheses, places, texts = [], [], [], []
    for instance, segments in talks:
        ends = max(segment.end for segment in segments)
        references.append([])
        for segment in segments:
            units = split_units(segment.reference, tgt_lang)
            references[-1] += [Word(unit.lower(), emission_cu=segment.start, seq_id=len(texts)) for unit in units]
            texts.append(joined(units, tgt_lang))
            length = segment.end - segment.start
            place = {"offset": segment.start, "duration": length, "time_to_recording_end": ends - segment.start}
            places.append(place)
        units = split_units(instance.prediction, tgt_lang)
        times = zip(units, instance.delays, _elapsed(instance, clock), strict=True)
        hypotheses.append([Word(unit, emission_cu=delay, emission_ca=late) for unit, delay, late in times])
    found, _ = resegment(references, hypotheses, places, texts, char_level=characters)
    return {
        name + suffix: [value for one in found if (value := _long_value(make(bool(suffix)), one)) is not None]
        for name, make in LONG_SCORERS.items()
        for suffix in ("", "_CA")
    }


def _long_value(scorer: object, segment: OmniInstance) -> float | None:
    """One segment's value: OmniSTEval's own mean loses all segments when one of them has no length."""
    if not segment.source_length or not segment.emission_cu or not segment.reference:
        return None
    if isinstance(scorer, DALScorer):
        return scorer([segment])
    return scorer.compute(segment)


def _marks(texts: Iterable[str]) -> dict[str, int]:
    counts = dict.fromkeys(MARKS, 0)
    for text in texts:
        for mark in MARKS:
            counts[mark] += text.count(mark)
    return counts
