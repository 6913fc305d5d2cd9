"""The papers' tables, as Markdown and as tab-separated values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from espnet_ext.evaluation.curves import (
    BLOCK_SEARCHES,
    CURVE_POLICIES,
    block_models,
    policy_and_options,
    policy_name,
    search_name,
    select,
)
from espnet_ext.evaluation.results import Decode, policy_position
from espnet_ext.files import atomic_write


@dataclass
class Table:
    """A table with its caption; cells are text, `nan` where a value is undefined."""

    caption: str
    header: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)

    def markdown(self) -> str:
        """The caption and a table with columns aligned; text to the left, numbers to the right."""
        widths = [max(2, *map(len, column)) for column in zip(self.header, *self.rows, strict=True)]
        right = [bool(self.rows) and all(_is_number(row[i]) for row in self.rows) for i in range(len(self.header))]

        def line(cells: Sequence[str]) -> str:
            padded = (
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(cells, widths, right, strict=True)
            )
            return f"| {' | '.join(padded)} |"

        rule = ["-" * (width - 1) + ":" if number else "-" * width for width, number in zip(widths, right, strict=True)]
        return "\n".join([self.caption, "", line(self.header), line(rule), *map(line, self.rows), ""])

    def write(self, stem: Path) -> None:
        """Write `stem`.md and `stem`.tsv."""
        with atomic_write(stem.with_name(f"{stem.name}.md")) as stream:
            stream.write(self.markdown())
        with atomic_write(stem.with_name(f"{stem.name}.tsv")) as stream:
            stream.writelines("\t".join(cells) + "\n" for cells in [self.header, *self.rows])


def number(value: float | None, digits: int = 1) -> str:
    """A number with a fixed count of digits, `nan` when undefined."""
    return "nan" if value is None else f"{value:.{digits}f}"


def percent(share: float | None) -> str:
    """A share as per cent without digits, `nan` when undefined."""
    return "nan" if share is None else f"{100 * share:.0f}"


def retranslation_table(decodes: Sequence[Decode]) -> Table:
    """Table 1 of the IBWBS paper: BWBS as re-translation against BWBS with incremental pruning, no policy."""
    table = Table(
        "**Table 1.** Blockwise beam search (BWBS): re-translation against incremental pruning without a policy. "
        "NE: normalised erasure, what re-translation takes back per word of the final text.",
        ("language", "block", "re-translation BLEU", "NE", "incremental BLEU", "difference", "incremental LAAL (ms)"),
    )
    for models in _by_model(decodes):
        before = next(iter(select(models, "bwbs")), None)
        after = next(iter(select(models, "bwbs_incremental", "all")), None)
        if before is None and after is None:
            continue
        bleu = [None if decode is None else decode.get("BLEU") for decode in (before, after)]
        table.rows.append(
            [
                str(models[0].get("tgt_lang")),
                str(models[0].block_size),
                number(bleu[0]),
                number(before and before.get("NE"), 2),
                number(bleu[1]),
                number(None if None in bleu else bleu[1] - bleu[0]),
                number(after and after.get("LAAL"), 0),
            ]
        )
    return table


def operating_table(dev: Sequence[Decode], test: Sequence[Decode], target_ms: float) -> Table:
    """Table 2 of the IBWBS paper: BWBS with a policy against IBWBS at one operating point.

    The policy and its value are those whose LAAL on the development set is closest to `target_ms`; the test set is
    reported only.
    """
    table = Table(
        f"**Table 2.** BWBS with incremental pruning and a policy against IBWBS. The policy and its value were chosen "
        f"on the development set (LAAL closest to {target_ms:.0f} ms) and are only reported on the test set.",
        ("language", "block", "search", "chosen on dev", "dev BLEU", "dev LAAL (ms)", "test BLEU", "test LAAL (ms)",
         "test LAAL_CA (ms)", "words at end (%)", "decoder forwards"),
    )  # fmt: skip
    candidates = block_models(dev)
    for lang, members in block_models(test).items():
        for search, reliability in [*reversed(BLOCK_SEARCHES)]:
            chosen = closest(select(candidates.get(lang, []), search, None, reliability), target_ms)
            found = same_system(chosen, members)
            if chosen is None and not select(members, search, None, reliability):
                continue
            table.rows.append(
                [
                    lang,
                    str(members[0].block_size),
                    search_name(search, reliability),
                    policy_name(chosen) if chosen else "nothing on dev",
                    number(chosen and chosen.get("BLEU")),
                    number(chosen and chosen.get("LAAL"), 0),
                    number(found and found.get("BLEU")),
                    number(found and found.get("LAAL"), 0),
                    number(found and found.get("LAAL_CA"), 0),
                    percent(found and found.get("words_at_end")),
                    number(found and found.get("decoder_forwards"), 0),
                ]
            )
    return table


def closest(decodes: Iterable[Decode], target_ms: float) -> Decode | None:
    """The decode under a policy whose LAAL is closest to `target_ms`, the better BLEU in a tie; None without any."""
    usable = [decode for decode in decodes if decode.policy in CURVE_POLICIES and decode.get("LAAL") is not None]
    return min(usable, key=lambda d: (abs(d.get("LAAL") - target_ms), -d.get("BLEU")), default=None)


def same_system(chosen: Decode | None, decodes: Iterable[Decode]) -> Decode | None:
    """What the model and system that were chosen on one set did on another."""
    return next((d for d in decodes if chosen and (d.model, d.system) == (chosen.model, chosen.system)), None)


def onlinised_table(decodes: Sequence[Decode]) -> Table:
    """Tables 3 and 4 of the IBWBS paper: standard beam search against IBWBS with full-context models.

    Forwards are compared with the standard search of the same policy and step that ends when its beam has finished.
    """
    table = Table(
        "**Tables 3 and 4.** Full-context models made simultaneous: standard beam search against IBWBS under the same "
        "policy and step. Forwards: calls of the decoder for a step of the whole beam, forced prefixes included.",
        ("language", "policy", "step (ms)", "search", "BLEU", "LAAL (ms)", "decoder forwards", "against standard (%)",
         "encoder frames"),
    )  # fmt: skip
    simultaneous = [d for d in decodes if d.block_size is None and d.search in ("standard", "ibwbs")]
    places: dict[tuple, list[Decode]] = {}
    for decode in simultaneous:
        step = (decode.get("chunk_ms") or 0) * (decode.get("la_every") or 1)
        place = (str(decode.get("tgt_lang")), policy_position(decode.policy), decode.policy_value or 0, step)
        places.setdefault(place, []).append(decode)
    for (lang, _, _, step), members in sorted(places.items()):
        base = next((d for d in members if d.search == "standard" and not d.further.get("end_detect")), None)
        for decode in sorted(members, key=lambda d: d.sort_key):
            ours, theirs = decode.get("decoder_forwards"), base and base.get("decoder_forwards")
            ending = ", ESPnet's end detection" if decode.further.get("end_detect") else ""
            table.rows.append(
                [
                    lang,
                    policy_name(decode),
                    number(step, 0),
                    search_name(decode.search, decode.reliability) + ending,
                    number(decode.get("BLEU")),
                    number(decode.get("LAAL"), 0),
                    number(ours, 0),
                    number(100 * (ours / theirs - 1) if ours is not None and theirs else None, 0),
                    number(decode.get("encoder_frames"), 0),
                ]
            )
    return table


def long_form_table(talks: Sequence[Decode], segmented: Sequence[Decode]) -> Table:
    """Table 2 of the StreamAtt paper: StreamAtt on whole talks, AlignAtt on their segments as the upper bound."""
    table = Table(
        "**StreamAtt.** Whole talks, by what is kept of the past, and AlignAtt on pre-segmented audio beside them "
        "(LAAL in the place of StreamLAAL). Quality is that of the resegmented text.",
        ("language", "model", "search", "system", "f", "BLEU", "StreamLAAL (ms)", "StreamLAAL_CA (ms)",
         "LongYAAL (ms)", "decoder forwards"),
    )  # fmt: skip
    rows = []
    for decode in [*talks, *(d for d in segmented if talks and d.policy == "align_att")]:
        metric = "StreamLAAL" if decode.long_form else "LAAL"
        values = (decode.get(name) for name in (metric, f"{metric}_CA", "LongYAAL", "decoder_forwards"))
        name = _history_name(decode) if decode.long_form else "AlignAtt, segmented audio"
        search = search_name(decode.search, decode.reliability)
        place = (str(decode.get("tgt_lang")), decode.model, search, name, decode.policy_value or 0)
        rows.append((place, [number(decode.get("BLEU")), *(number(value, 0) for value in values)]))
    table.rows += [[*map(str, place), *cells] for place, cells in sorted(rows)]
    return table


def _history_name(decode: Decode) -> str:
    """What a long-form decode keeps, with the options of it that were changed."""
    kept = dict(decode.further)
    audio, text = kept.pop("audio_history", "attention"), kept.pop("text_history", "fixed_words")
    name = "fixed duration (baseline)" if audio == "fixed_duration" else f"StreamAtt, {text.replace('_', ' ')}"
    hidden = ("long_form", "max_audio_s", "align_att_layer", "chunk_ms")
    return ", ".join([name, *(f"{option} {value}" for option, value in kept.items() if option not in hidden)])


def systems_table(decodes: Sequence[Decode]) -> Table:
    """Every decode with its main scores."""
    table = Table(
        "All systems. Times in ms; CA: computation-aware; ±: half the 95 % interval by bootstrap over utterances. "
        "Words at end: released when the source had ended.",
        ("set", "model", "search", "policy", "BLEU", "BLEU ±", "chrF", "LAAL", "LAAL ±", "LAAL_CA", "AL", "DAL", "AP",
         "YAAL", "NE", "words at end (%)", "decoder forwards", "RTF"),
    )  # fmt: skip
    for decode in decodes:
        table.rows.append(
            [
                decode.set,
                decode.model,
                search_name(decode.search, decode.reliability),
                policy_and_options(decode),
                number(decode.get("BLEU")),
                number(_half_width(decode, "BLEU")),
                number(decode.get("chrF")),
                number(decode.get("LAAL"), 0),
                number(_half_width(decode, "LAAL"), 0),
                *(number(decode.get(name), 0) for name in ("LAAL_CA", "AL", "DAL")),
                number(decode.get("AP"), 2),
                number(decode.get("YAAL"), 0),
                number(decode.get("NE"), 2),
                percent(decode.get("words_at_end")),
                number(decode.get("decoder_forwards"), 0),
                number(decode.get("rtf"), 2),
            ]
        )
    return table


def _half_width(decode: Decode, metric: str) -> float | None:
    """Half of the metric's 95 % interval."""
    interval = (decode.get("CI95") or {}).get(metric)
    return interval and (interval[1] - interval[0]) / 2


def _by_model(decodes: Iterable[Decode]) -> list[list[Decode]]:
    models: dict[str, list[Decode]] = {}
    for decode in decodes:
        models.setdefault(decode.model, []).append(decode)
    return list(models.values())


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
