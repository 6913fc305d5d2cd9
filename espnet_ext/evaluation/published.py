"""What the two papers report on MuST-C, beside what was measured: its columns stay empty until MuST-C is decoded."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from espnet_ext.evaluation.curves import block_models, select
from espnet_ext.evaluation.results import Decode
from espnet_ext.evaluation.tables import Table, closest, number, same_system
from espnet_ext.files import read_lines

STREAMATT = Path(__file__).with_name("published.tsv")
STREAMATT_LANGUAGES = ("de", "es", "fr", "it", "nl", "pt", "ro", "ru")
SYSTEMS = {
    "fixed_duration": "baseline",
    "fixed_words": "StreamAtt, fixed words",
    "punctuation": "StreamAtt, punctuation",
}
HISTORY = {"fixed_duration": "audio_history", "fixed_words": "text_history", "punctuation": "text_history"}
# IBWBS paper: (table, language, what is compared, the paper's figure). The text of the paper gives differences.
IBWBS = (
    *(("1", lang, "BLEU, re-translation minus incremental BWBS", "0.6 to 0.7") for lang in ("de", "es", "fr")),
    ("2", "de", "BLEU, IBWBS minus BWBS at LAAL of about 2300 ms", "0.6"),
    ("2", "es", "BLEU, IBWBS minus BWBS at LAAL of about 2300 ms", "0.9"),
    ("2", "fr", "BLEU, IBWBS minus BWBS at LAAL of about 2300 ms", "3.6"),
    ("2", "de", "LAAL (ms), full context, IBWBS minus standard, local agreement at similar BLEU", "-959"),
    ("2", "es", "LAAL (ms), full context, IBWBS minus standard, local agreement at similar BLEU", "-1395"),
    ("2", "fr", "LAAL (ms), full context, IBWBS minus standard, local agreement at similar BLEU", "-752"),
    ("3", "de", "BLEU, full context, IBWBS minus standard, local agreement at LAAL of about 1700 ms", "6.2"),
    ("3", "es", "BLEU, full context, IBWBS minus standard, local agreement at LAAL of about 1700 ms", "5.7"),
    ("3", "fr", "BLEU, full context, IBWBS minus standard, local agreement at LAAL of about 1700 ms", "8.3"),
    *(("3", lang, "forwards (%), IBWBS against standard, local agreement", "about -20") for lang in ("de", "es", "fr")),
    *(("4", lang, "BLEU, IBWBS minus standard, hold-n", "no change") for lang in ("de", "es", "fr")),
    *(("4", lang, "LAAL (ms), IBWBS minus standard, hold-n", "no change") for lang in ("de", "es", "fr")),
    *(("4", lang, "forwards (%), IBWBS against standard, hold-n", "-20 to -30") for lang in ("de", "es", "fr")),
)
BLOCK_TARGET_MS, FULL_CONTEXT_TARGET_MS = 2300, 1700


def ibwbs_table(dev: Sequence[Decode], test: Sequence[Decode]) -> Table:
    """Tables 1 to 4 of the IBWBS paper as its text sums them up, and the same figures of these decodes."""
    table = Table(
        "**IBWBS paper on MuST-C tst-COMMON.** Published figures beside ours; empty: not run yet.",
        ("table", "language", "figure", "paper", "ours"),
    )
    agreement, hold = (partial(_full_context, dev, test, policy=policy) for policy in ("local_agreement", "hold_n"))
    measures: dict[tuple[str, str], Callable[[str], float | None]] = {
        ("1", "BLEU"): lambda lang: _retranslation_gain(test, lang),
        ("2", "BLEU"): lambda lang: _block_gain(dev, test, lang),
        ("2", "LAAL"): lambda lang: _difference("LAAL", *agreement(lang, of_similar_bleu=True)),
        ("3", "BLEU"): lambda lang: _difference("BLEU", *agreement(lang)),
        ("3", "forwards"): lambda lang: _forwards(*agreement(lang)),
        ("4", "BLEU"): lambda lang: _difference("BLEU", *hold(lang)),
        ("4", "LAAL"): lambda lang: _difference("LAAL", *hold(lang)),
        ("4", "forwards"): lambda lang: _forwards(*hold(lang)),
    }
    for table_number, lang, figure, paper in IBWBS:
        kind = re.match(r"\w+", figure)[0]
        digits = 0 if kind == "LAAL" else 1
        table.rows.append([table_number, lang, figure, paper, _shown(measures[table_number, kind](lang), digits)])
    return table


def streamatt_table(dev_talks: Sequence[Decode], test_talks: Sequence[Decode]) -> Table:
    """Tables 2, 4 and 6 of the StreamAtt paper, and the same figures of these decodes; latencies in ms."""
    table = Table(
        "**StreamAtt paper on MuST-C.** Published figures beside ours; empty: not run yet. Table 4 is on dev, with "
        "fixed words; the others are on tst-COMMON.",
        ("table", "language", "system", "f", "BLEU paper", "BLEU ours", "StreamLAAL paper", "StreamLAAL ours",
         "StreamLAAL_CA paper", "StreamLAAL_CA ours"),
    )  # fmt: skip
    for line in read_lines(STREAMATT)[1:]:
        table_number, lang, system, f, *published = line.split("\t")
        decodes = dev_talks if table_number == "4" else test_talks
        languages = STREAMATT_LANGUAGES if lang == "mean" else (lang,)
        found = [_streamatt(decodes, one, system, int(f)) for one in languages]
        cells = []
        for metric, paper, digits in zip(("BLEU", "StreamLAAL", "StreamLAAL_CA"), published, (1, 0, 0), strict=True):
            values = [decode and decode.get(metric) for decode in found]
            cells += [paper, _shown(None if None in values else fmean(values), digits)]
        table.rows.append([table_number, lang, SYSTEMS.get(system, system.replace("=", " ")), f, *cells])
    return table


def _shown(value: float | None, digits: int = 1) -> str:
    return "" if value is None else number(value, digits)


def _difference(metric: str, ours: Decode | None, theirs: Decode | None) -> float | None:
    return ours and theirs and ours.get(metric) - theirs.get(metric)


def _forwards(ours: Decode | None, theirs: Decode | None) -> float | None:
    """Decoder calls of ours against theirs, in per cent more."""
    return ours and theirs and 100 * (ours.get("decoder_forwards") / theirs.get("decoder_forwards") - 1)


def _retranslation_gain(test: Sequence[Decode], lang: str) -> float | None:
    members = block_models(test).get(lang, [])
    before, after = (next(iter(select(members, search, "all")), None) for search in ("bwbs", "bwbs_incremental"))
    return _difference("BLEU", before, after)


def _block_gain(dev: Sequence[Decode], test: Sequence[Decode], lang: str) -> float | None:
    ours, theirs = (
        same_system(closest(select(block_models(dev).get(lang, []), search), BLOCK_TARGET_MS), test)
        for search in ("ibwbs", "bwbs_incremental")
    )
    return _difference("BLEU", ours, theirs)


def _full_context(
    dev: Sequence[Decode], test: Sequence[Decode], lang: str, policy: str, of_similar_bleu: bool = False
) -> tuple[Decode | None, Decode | None]:
    """IBWBS and the standard search, chosen on dev near the target latency, or the latter for its similar BLEU."""
    usable = [
        decode
        for decode in dev
        if (decode.block_size, decode.get("tgt_lang"), decode.policy) == (None, lang, policy)
        and decode.reliability
        and decode.further.keys() <= {"chunk_ms"}
    ]
    ours = closest([d for d in usable if d.search == "ibwbs"], FULL_CONTEXT_TARGET_MS)
    standard = [d for d in usable if d.search == "standard"]
    if of_similar_bleu and ours:
        theirs = min(standard, key=lambda d: abs(d.get("BLEU") - ours.get("BLEU")), default=None)
    else:
        theirs = closest(standard, FULL_CONTEXT_TARGET_MS)
    return same_system(ours, test), same_system(theirs, test)


def _streamatt(decodes: Sequence[Decode], lang: str, system: str, f: int) -> Decode | None:
    """The decode of a row of the paper's tables; of several that of a full-context model by standard search."""
    defaults = {"n_words": 20, "audio_history": "attention", "text_history": "fixed_words"}
    option, _, value = system.rpartition("=")
    changed = {"n_words": int(value)} if option else {HISTORY[system]: system}
    fitting = [
        decode
        for decode in decodes
        if (decode.get("tgt_lang"), decode.policy, decode.policy_value) == (lang, "align_att", f)
        and {name: decode.further.get(name, default) for name, default in defaults.items()} == defaults | changed
    ]
    return min(fitting, key=lambda d: (d.block_size is not None, d.search != "standard", d.system), default=None)
