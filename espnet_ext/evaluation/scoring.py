"""The scores of one decode: quality, latency and its computation-aware twins, and what they were computed from."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from espnet_ext.errors import UserError
from espnet_ext.evaluation.latency import METRICS, average_token_delay, latency, token_ends
from espnet_ext.evaluation.quality import bleu_interval, mean_interval, normalized_erasure, quality
from espnet_ext.log.clocks import elapsed_times
from espnet_ext.log.instances import Instance
from espnet_ext.log.units import clean_text, split_units

LATENCY_COLUMNS = (*METRICS, *(f"{metric}_CA" for metric in METRICS))
NAMED_IDS = 3  # ids shown in an error about ids that do not match


def join_references(
    instances: Sequence[Instance], references: Mapping[str, str], log: str, ref: str
) -> list[tuple[Instance, str]]:
    """Instances with their references, by id, in the order of the references.

    Raises UserError, naming some ids, unless both sides have the same ids.
    """
    by_id = {instance.utt_id: instance for instance in instances}
    for name, other, ids in (
        (ref, log, [key for key in references if key not in by_id]),
        (log, ref, [key for key in by_id if key not in references]),
    ):
        if ids:
            named = ", ".join(ids[:NAMED_IDS]) + (", ..." if len(ids) > NAMED_IDS else "")
            raise UserError(f"{name}: {len(ids)} of its ids are not in {other}: {named}")
    if not references:
        raise UserError(f"{ref}: holds no reference")
    return [(by_id[key], reference) for key, reference in references.items()]


def score_utterance(instance: Instance, reference: str, tgt_lang: str, clock: str) -> dict[str, float | None]:
    """Latency metrics and CA twins of one utterance under `clock`; None where undefined.

    A re-translation run (one with revisions) has no latency: whatever it shows may change until the end.
    """
    if instance.revisions is not None or not instance.delays or instance.source_length <= 0:
        return dict.fromkeys(LATENCY_COLUMNS)
    delays, length = instance.delays, len(split_units(reference, tgt_lang))
    elapsed = instance.elapsed if clock == "queue" else elapsed_times(delays, instance.steps, clock)
    plain = latency(delays, instance.source_length, length)
    aware = latency(elapsed, instance.source_length, length)
    plain["ATD"] = average_token_delay(delays, delays)
    aware["ATD"] = average_token_delay(delays, token_ends(delays, elapsed, clock))
    return {metric: plain[metric] for metric in METRICS} | {f"{metric}_CA": aware[metric] for metric in METRICS}


def score(
    pairs: Sequence[tuple[Instance, str]], tgt_lang: str, clock: str = "queue"
) -> tuple[dict[str, object], list[dict[str, object]]]:
    """Score joined instances; returns the scores of the set and one row per utterance.

    Latencies are means over the utterances where they are defined (`n_scored`, `n_skipped` say how many); `NE` is
    defined for re-translation only; `CI95` holds 95 % intervals by bootstrap over utterances.
    """
    rows: list[dict[str, object]] = []
    for instance, reference in pairs:
        try:
            values = score_utterance(instance, reference, tgt_lang, clock)
        except ValueError as error:
            raise UserError(f"utterance {instance.utt_id}: no time under the {clock} clock: {error}") from None
        rows.append(
            {
                "utt_id": instance.utt_id,
                "source_length": instance.source_length,
                "reference_length": len(split_units(reference, tgt_lang)),
                "prediction_length": len(instance.delays),
                **values,
                "prediction": instance.prediction,
                "reference": clean_text(reference, tgt_lang),
            }
        )
    defined = {name: [row[name] for row in rows if row[name] is not None] for name in LATENCY_COLUMNS}
    released = [delay >= instance.source_length for instance, _ in pairs for delay in instance.delays]
    revised = [instance for instance, _ in pairs if instance.revisions is not None]
    shown = [[*(revision.text for revision in instance.revisions), instance.prediction] for instance in revised]
    texts = [row["prediction"] for row in rows], [row["reference"] for row in rows]
    scores: dict[str, object] = {
        **quality(*texts, tgt_lang),
        **{name: fmean(values) if values else None for name, values in defined.items()},
        "NE": normalized_erasure(shown, tgt_lang),
        "words_at_end": fmean(released) if released else None,
        "CA_clock": clock,
        "CI95": {
            "BLEU": bleu_interval(*texts, tgt_lang),
            **{name: mean_interval(values) for name, values in defined.items()},
        },
        "n_total": len(rows),
        "n_empty": sum(not instance.delays for instance, _ in pairs),
        "n_scored": {name: len(values) for name, values in defined.items()},
        "n_skipped": {name: len(rows) - len(values) for name, values in defined.items()},
    }
    return scores, rows
