"""The claims of the method as numbers, for every language: latency saved near offline quality, range of hold-n."""

from collections.abc import Iterable, Sequence

from espnet_ext.evaluation.curves import BLOCK_SEARCHES, block_models, points, policy_points, search_name, select
from espnet_ext.evaluation.results import Decode
from espnet_ext.evaluation.tradeoff import latency_saving, policy_range

BELOW_OFFLINE = 3.0  # BLEU below offline at which latencies are compared
MIN_SAVING = 20.0  # per cent of the latency of BWBS with policies
MAX_WORDS_AT_END = 0.5  # a system that stalls until the end proves nothing
MIN_RATIO = 3.0  # largest to smallest LAAL of hold-n
MAX_BELOW = 2.0  # BLEU below offline that hold-n must come to


def check(decodes: Iterable[Decode]) -> list[dict[str, object]]:
    """One record per language, over decodes of one test set: what was measured and whether the claim holds.

    `passed` is None where the measure is undefined.
    """
    records = []
    for lang, members in block_models(decodes).items():
        offline = next((decode.get("BLEU") for decode in select(members, "offline")), None)
        record = {"tgt_lang": lang, "model": members[0].model, "block_size": members[0].block_size}
        record |= {"set": members[0].set, "offline_bleu": offline, "latency_saving": {}, "hold_n_range": {}}
        for search, reliability in BLOCK_SEARCHES:
            hold = points(select(members, search, "hold_n", reliability))
            if offline is None or not hold:
                continue
            name = search_name(search, reliability)
            record["hold_n_range"][name] = _judge_range(policy_range(hold, offline))
            if search == "ibwbs":
                ours, theirs = policy_points(members, search, reliability), policy_points(members, "bwbs_incremental")
                record["latency_saving"][name] = _judge_saving(latency_saving(ours, theirs, offline, BELOW_OFFLINE))
        records.append(record)
    return records


def _judge_saving(saving: dict) -> dict:
    percent, at_end = saving["saving_percent"], saving["system_words_at_end"]
    passed = None if percent is None or at_end is None else percent >= MIN_SAVING and at_end <= MAX_WORDS_AT_END
    return saving | {"passed": passed}


def _judge_range(values: dict) -> dict:
    ratio, below = values["ratio"], values["below_offline"]
    passed = None if ratio is None or below is None else ratio >= MIN_RATIO and below <= MAX_BELOW
    return values | {"passed": passed}


def describe(records: Sequence[dict]) -> list[str]:
    """The records in sentences, one a line."""
    lines = []
    for record in records:
        head = f"{record['tgt_lang']}, {record['model']}, {record['set']}"
        if record["offline_bleu"] is None:
            lines.append(f"{head}: no offline decode, nothing to compare with")
            continue
        lines.append(f"{head}: offline BLEU {record['offline_bleu']:.1f}")
        lines += [f"{head}: {_saving_line(name, saving)}" for name, saving in record["latency_saving"].items()]
        lines += [
            f"{head}: {_measured_line(name, saving)}"
            for name, saving in record["latency_saving"].items()
            if saving["measured"]
        ]
        lines += [f"{head}: {_range_line(name, values)}" for name, values in record["hold_n_range"].items()]
    return lines


def _saving_line(name: str, saving: dict) -> str:
    at = f"at BLEU {saving['bleu']:.1f} ({BELOW_OFFLINE:g} below offline)"
    if saving["saving_percent"] is None:
        return f"{name} against BWBS with policies {at}: undefined, {saving['undefined']}"
    shown = {key: _percent(saving[f"{key}_words_at_end"]) for key in ("system", "baseline")}
    return (
        f"{name} {at} has LAAL {saving['system_latency']:.0f} ms, BWBS with policies {saving['baseline_latency']:.0f} "
        f"ms: {saving['saving_percent']:.1f} % less (aim: {MIN_SAVING:g} % or more); words released at the source "
        f"end {shown['system']} (aim: at most {100 * MAX_WORDS_AT_END:.0f} %) against {shown['baseline']}; "
        f"between {' and '.join(saving['system_points'])}{_verdict(saving)}"
    )


def _measured_line(name: str, saving: dict) -> str:
    values = saving["measured"]
    system, baseline = (
        f"{values[key]} (BLEU {values[f'{key}_bleu']:.1f}, LAAL {values[f'{key}_latency']:.0f} ms, "
        f"{_percent(values[f'{key}_words_at_end'])} of words at the source end)"
        for key in ("system", "baseline")
    )
    percent = "" if values["saving_percent"] is None else f": {values['saving_percent']:.1f} % less"
    return f"{name}, cheapest system with BLEU {saving['bleu']:.1f} or more: {system} against {baseline}{percent}"


def _percent(share: float | None) -> str:
    return "nan" if share is None else f"{100 * share:.0f} %"


def _range_line(name: str, values: dict) -> str:
    ratio = "undefined" if values["ratio"] is None else f"{values['ratio']:.1f}"
    return (
        f"{name} with hold-n: LAAL {values['min_latency']:.0f} to {values['max_latency']:.0f} ms, ratio {ratio} "
        f"(aim: {MIN_RATIO:g} or more); best BLEU {values['max_bleu']:.1f}, {values['below_offline']:.1f} below "
        f"offline (aim: at most {MAX_BELOW:g}){_verdict(values)}"
    )


def _verdict(values: dict) -> str:
    return {True: ": reached", False: ": not reached", None: ""}[values["passed"]]
