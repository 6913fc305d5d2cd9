"""The papers' figures: quality over latency, one column of panels a language, the legend outside the data."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from espnet_ext.evaluation.curves import BLOCK_SEARCHES, POLICY_NAMES, block_models, languages, search_name, select
from espnet_ext.evaluation.results import Decode
from espnet_ext.files import atomic_write

# Okabe and Ito's colours; markers and lines differ too, for print without colour. Labels sit on the side of the curve
# where no other is expected: better curves have theirs above.
STYLES = {
    ("ibwbs", True): {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    ("ibwbs", False): {"color": "#009E73", "marker": "^", "linestyle": (0, (5, 1.5))},
    ("bwbs_incremental", True): {"color": "#D55E00", "marker": "s", "linestyle": (0, (1.5, 1.2))},
}
LABELS_BELOW = {("bwbs_incremental", True)}
HOLLOW_SIZE = 7.5  # points; local agreement and single block models stand out from the curves
RC = {
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.handlelength": 3.2,
    "svg.hashsalt": "espnet_ext",  # the same bytes for the same numbers
}


@dataclass(frozen=True)
class Series:
    """One legend entry: decodes of one search joined by a line, or `hollow` markers on their own."""

    name: str
    search: tuple[str, bool]
    decodes: list[Decode]
    text: Callable[[Decode], str]
    hollow: bool = False


def block_figure(decodes: Sequence[Decode]) -> Figure:
    """Figure 2(a): no policy, latency by block size alone; each point is a model of its own."""
    columns = {}
    for lang in languages(decodes):
        members = [d for d in decodes if d.get("tgt_lang") == lang and d.block_size is not None]
        columns[lang] = [
            Series(f"{search_name(*search)}, no policy", search, found, lambda decode: f"block {decode.block_size}")
            for search in BLOCK_SEARCHES
            if (found := _located(select(members, search[0], "all", search[1])))
        ]
    return _figure(columns, {})


def policy_figure(decodes: Sequence[Decode], searches: Iterable[str]) -> Figure:
    """Figures 2(b) and 2(c): hold-n and local agreement with one block model a language, for the given searches."""
    models = block_models(decodes)
    wanted = [search for search in BLOCK_SEARCHES if search[0] in set(searches)]
    return _figure({lang: _policy_series(members, wanted) for lang, members in models.items()}, _offline(models))


def tradeoff_figure(decodes: Sequence[Decode]) -> Figure:
    """The whole trade-off: every policy of one block model, block sizes without a policy, and the decoder's work."""
    models = block_models(decodes)
    columns = {}
    for lang, members in models.items():
        singles = [d for d in decodes if d.get("tgt_lang") == lang and d.block_size is not None and d.policy == "all"]
        columns[lang] = _policy_series(members, BLOCK_SEARCHES) + [
            Series(f"{search_name(*search)}, no policy", search, found, lambda d: f"block {d.block_size}", hollow=True)
            for search in BLOCK_SEARCHES
            if (found := _located(select(singles, search[0], "all", search[1])))
        ]
    return _figure(columns, _offline(models), with_work=True)


def write_figure(figure: Figure, stem: Path) -> None:
    """Write `stem`.png and `stem`.svg."""
    with matplotlib.rc_context(RC):
        for suffix, metadata in (("png", None), ("svg", {"Date": None})):
            with atomic_write(stem.with_name(f"{stem.name}.{suffix}"), "wb") as stream:
                figure.savefig(stream, format=suffix, dpi=220, metadata=metadata)


def _policy_series(members: Sequence[Decode], searches: Iterable[tuple[str, bool]]) -> list[Series]:
    return [
        Series(
            f"{search_name(*search)}, {POLICY_NAMES[policy]}",
            search,
            found,
            (lambda d: str(d.policy_value)) if policy == "hold_n" else (lambda d: f"LA-{d.policy_value}"),
            hollow=policy == "local_agreement",
        )
        for policy in ("hold_n", "local_agreement")
        for search in searches
        if (found := _located(select(members, search[0], policy, search[1])))
    ]


def _located(decodes: Iterable[Decode]) -> list[Decode]:
    return [decode for decode in decodes if decode.get("LAAL") is not None]


def _offline(models: dict[str, list[Decode]]) -> dict[str, Decode]:
    return {lang: found[0] for lang, members in models.items() if (found := select(members, "offline"))}


def _figure(columns: dict[str, list[Series]], offline: dict[str, Decode], with_work: bool = False) -> Figure:
    with matplotlib.rc_context(RC):
        heights = [2.6, 1.4] if with_work else [1.0]
        size = (0.7 + 3.9 * max(len(columns), 1), 5.6 if with_work else 3.7)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(heights), max(len(columns), 1), sharex="col", squeeze=False, height_ratios=heights)
        for column, (lang, series) in enumerate(columns.items()):
            quality, bottom = grid[0][column], grid[-1][column]
            quality.set_title(_title(lang, series, offline.get(lang)), fontsize=9)
            quality.set_ylabel("BLEU" if column == 0 else "")
            bottom.set_xlabel("LAAL (s)")
            for one in series:
                _plot(quality, one, [decode.get("BLEU") for decode in one.decodes])
            if lang in offline:
                quality.axhline(offline[lang].get("BLEU"), color="black", linewidth=1, linestyle="-.",
                                label="Offline (whole utterance)")  # fmt: skip
            if with_work:
                bottom.set_ylabel("Decoder forwards\nper s of audio" if column == 0 else "")
                for one in series:
                    if all(decode.forwards_per_s is not None for decode in one.decodes):
                        _plot(bottom, one, [decode.forwards_per_s for decode in one.decodes])
                bottom.set_ylim(bottom=0)
        handles = {
            label: handle for axes in grid[0] for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        if handles:
            figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        figure.draw_without_rendering()  # settles the layout, on which the room for labels depends
        for axes, series in zip(grid[0], columns.values(), strict=False):
            _label(axes, series)
    return figure


def _title(lang: str, series: Sequence[Series], offline: Decode | None) -> str:
    decodes = [*(decode for one in series for decode in one.decodes), *([offline] if offline else [])]
    sets = sorted({decode.set for decode in decodes})
    policy_blocks = {decode.block_size for decode in decodes if decode.policy != "all"}
    block = f", block {policy_blocks.pop()}" if len(policy_blocks) == 1 else ""
    return f"{', '.join(sets) or lang}{block}"


def _plot(axes: Axes, series: Series, values: Sequence[float]) -> None:
    style = dict(STYLES[series.search])
    if series.hollow:
        alone = "no policy" not in series.name and len(series.decodes) > 1
        style |= {"markerfacecolor": "white", "markersize": HOLLOW_SIZE, "markeredgewidth": 1.3}
        style |= {} if alone else {"linestyle": "none"}
        style["marker"] = "D" if "no policy" in series.name else style["marker"]
    else:
        style |= {"markersize": 4, "linewidth": 1.4}
    axes.plot([decode.get("LAAL") / 1000 for decode in series.decodes], values, label=series.name, **style)


def _label(axes: Axes, all_series: Sequence[Series]) -> None:
    """Write what a point stands for beside it, leaving out labels that would cover another."""
    taken: list = []
    for series in all_series:
        below = series.search in LABELS_BELOW
        for decode in series.decodes:
            text = axes.annotate(
                series.text(decode),
                (decode.get("LAAL") / 1000, decode.get("BLEU")),
                xytext=(4, -5) if below else (-4, 5),
                textcoords="offset points",
                ha="left" if below else "right",
                va="top" if below else "bottom",
                fontsize=7,
                color=STYLES[series.search]["color"],
                path_effects=[withStroke(linewidth=2, foreground="white")],
            )
            text.set_in_layout(False)
            box = text.get_window_extent()
            if any(box.overlaps(other) for other in taken):
                text.remove()
            else:
                taken.append(box)
