"""The papers' figures: quality over latency, one column of panels a language, the legend outside the data."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from espnet_ext.evaluation.curves import BLOCK_SEARCHES, CURVE_POLICIES, block_models, languages, search_name, select
from espnet_ext.evaluation.results import Decode
from espnet_ext.files import atomic_write

# Colour (Okabe and Ito's), marker and line tell the search, the marker's fill the policy: readable without colour.
STYLES = {
    ("ibwbs", True): {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    ("ibwbs", False): {"color": "#009E73", "marker": "^", "linestyle": (0, (5, 1.5))},
    ("bwbs_incremental", True): {"color": "#D55E00", "marker": "s", "linestyle": (0, (1.5, 1.2))},
}
FILLS = {
    "hold_n": {"fillstyle": "full", "markersize": 4.5},
    "local_agreement": {"fillstyle": "none", "markersize": 8, "markeredgewidth": 1.4},
    "all": {"fillstyle": "bottom", "markersize": 7.5, "markeredgewidth": 1.0, "markerfacecoloralt": "white"},
}
FILL_NAMES = {
    "hold_n": "hold-n (n beside points)",
    "local_agreement": "local agreement (LA)",
    "all": "no policy (block size)",
}
OFFLINE = {"color": "black", "linewidth": 1.0, "linestyle": (0, (6, 1.5, 1, 1.5))}
# Where a label may stand beside its point, best first: offset in points, horizontal and vertical alignment.
ABOVE = ((-3, 4, "right", "bottom"), (0, 6, "center", "bottom"), (-7, 0, "right", "center"))
BELOW = ((3, -4, "left", "top"), (0, -6, "center", "top"), (7, 0, "left", "center"))
FARTHER = ((9, -11, "left", "top"), (0, -15, "center", "top"), (-9, 11, "right", "bottom"), (0, 15, "center", "bottom"))
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
    """Decodes of one search and policy, joined by a line or not."""

    search: tuple[str, bool]
    policy: str
    decodes: list[Decode]
    joined: bool

    @property
    def style(self) -> dict:
        """Line and marker, as matplotlib's keyword arguments."""
        style = STYLES[self.search] | FILLS[self.policy]
        return style | ({"linewidth": 1.4} if self.joined else {"linestyle": "none"})

    def text(self, decode: Decode) -> str:
        """What is written beside a point."""
        if self.policy == "all":
            return f"block {decode.block_size}"
        return str(decode.policy_value) if self.policy == "hold_n" else f"LA-{decode.policy_value}"


def block_figure(decodes: Sequence[Decode]) -> Figure:
    """Figure 2(a): no policy, latency by block size alone; each point is a model of its own."""
    return _figure({lang: _block_series(decodes, lang, joined=True) for lang in languages(decodes)}, {})


def policy_figure(decodes: Sequence[Decode], searches: Collection[str]) -> Figure:
    """Figures 2(b) and 2(c): hold-n and local agreement with one block model a language, for the given searches."""
    models = block_models(decodes)
    return _figure({lang: _policy_series(members, searches) for lang, members in models.items()}, _offline(models))


def tradeoff_figure(decodes: Sequence[Decode]) -> Figure:
    """The whole trade-off: every policy of one block model, block sizes without a policy, and the decoder's work."""
    models = block_models(decodes)
    columns = {
        lang: _policy_series(members, ("ibwbs", "bwbs_incremental")) + _block_series(decodes, lang, joined=False)
        for lang, members in models.items()
    }
    return _figure(columns, _offline(models), with_work=True)


def write_figure(figure: Figure, stem: Path) -> None:
    """Write `stem`.png and `stem`.svg."""
    with matplotlib.rc_context(RC):
        for suffix, metadata in (("png", None), ("svg", {"Date": None})):
            with atomic_write(stem.with_name(f"{stem.name}.{suffix}"), "wb") as stream:
                figure.savefig(stream, format=suffix, dpi=220, metadata=metadata)


def _policy_series(members: Sequence[Decode], searches: Collection[str]) -> list[Series]:
    return [
        Series(search, policy, found, joined=policy == "hold_n" or len(found) > 1)
        for policy in CURVE_POLICIES
        for search in BLOCK_SEARCHES
        if search[0] in searches and (found := _located(select(members, search[0], policy, search[1])))
    ]


def _block_series(decodes: Sequence[Decode], lang: str, joined: bool) -> list[Series]:
    members = [d for d in decodes if d.get("tgt_lang") == lang and d.block_size is not None]
    return [
        Series(search, "all", found, joined)
        for search in BLOCK_SEARCHES
        if (found := _located(select(members, search[0], "all", search[1])))
    ]


def _located(decodes: Iterable[Decode]) -> list[Decode]:
    return [decode for decode in decodes if decode.get("LAAL") is not None]


def _offline(models: dict[str, list[Decode]]) -> dict[str, Decode]:
    return {lang: found[0] for lang, members in models.items() if (found := select(members, "offline"))}


def _figure(columns: dict[str, list[Series]], offline: dict[str, Decode], with_work: bool = False) -> Figure:
    with matplotlib.rc_context(RC):
        heights = [2.7, 1.2] if with_work else [1.0]
        size = (0.8 + 4.2 * max(len(columns), 1), 5.6 if with_work else 3.9)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(heights), max(len(columns), 1), sharex="col", squeeze=False, height_ratios=heights)
        for column, (lang, series) in enumerate(columns.items()):
            quality, bottom = grid[0][column], grid[-1][column]
            quality.margins(x=0.07, y=0.1)
            quality.set_title(_title(lang, series, offline.get(lang)), fontsize=9)
            bottom.set_xlabel("LAAL (s)")
            _plot(quality, series, lambda decode: decode.get("BLEU"))
            if lang in offline:
                quality.axhline(offline[lang].get("BLEU"), **OFFLINE)
            if with_work:
                _plot(bottom, series, lambda decode: decode.forwards_per_s)
                bottom.set_ylim(bottom=0)
        grid[0][0].set_ylabel("BLEU")
        if with_work:
            grid[1][0].set_ylabel("decoder forwards\nper second of audio")
        handles = _legend([one for series in columns.values() for one in series], bool(offline))
        if handles:
            figure.legend(handles=handles, loc="outside lower center", ncols=2)
        figure.draw_without_rendering()  # settles the layout, on which the room for labels depends
        for axes, series in zip(grid[0], columns.values(), strict=False):
            _label(axes, series)
    return figure


def _title(lang: str, series: Sequence[Series], offline: Decode | None) -> str:
    decodes = [*(decode for one in series for decode in one.decodes), *([offline] if offline else [])]
    blocks = {decode.block_size for one in series if one.policy != "all" for decode in one.decodes}
    block = f", block {blocks.pop()}" if len(blocks) == 1 else ""
    return ", ".join(sorted({decode.set for decode in decodes}) or [lang]) + block


def _legend(series: Sequence[Series], offline: bool) -> list[Line2D]:
    searches = [search for search in BLOCK_SEARCHES if any(one.search == search for one in series)]
    policies = [policy for policy in FILLS if any(one.policy == policy for one in series)]
    entries = [Line2D([], [], label=search_name(*search), **STYLES[search], markersize=4.5) for search in searches]
    entries += [Line2D([], [], label="offline, whole utterance", **OFFLINE)] if offline else []
    black = {"color": "black", "marker": "o", "linestyle": "none"}
    return entries + [Line2D([], [], label=FILL_NAMES[policy], **black, **FILLS[policy]) for policy in policies]


def _plot(axes: Axes, all_series: Sequence[Series], value: Callable[[Decode], float | None]) -> None:
    for series in all_series:
        shown = [decode for decode in series.decodes if value(decode) is not None]
        axes.plot([decode.get("LAAL") / 1000 for decode in shown], [value(decode) for decode in shown], **series.style)


def _label(axes: Axes, all_series: Sequence[Series]) -> None:
    """Write what a point stands for beside it.

    A label covers no marker and no other label, and no line if that can be had. Without room it is left out.
    """
    lines = [line.get_path().transformed(line.get_transform()) for line in axes.lines if line.get_linestyle() != "None"]
    points = [(decode.get("LAAL") / 1000, decode.get("BLEU")) for series in all_series for decode in series.decodes]
    taken = [_around(axes.transData.transform(point)) for point in points]
    for series in sorted(
        all_series, key=lambda one: one.policy == "hold_n"
    ):  # longer labels first, they need more room
        for decode in series.decodes:
            text = axes.annotate(
                series.text(decode),
                (decode.get("LAAL") / 1000, decode.get("BLEU")),
                xytext=(0, 0),
                textcoords="offset points",
                fontsize=7,
                color=STYLES[series.search]["color"],
                path_effects=[withStroke(linewidth=2, foreground="white")],
            )
            text.set_in_layout(False)
            places = [(place, box) for place in _places(series) if _free(axes, box := _move(text, place), taken)]
            clear = [
                place for place in places if not any(line.intersects_bbox(place[1], filled=False) for line in lines)
            ]
            # A number that cuts a line is worse than none: its neighbours tell it.
            if clear or (places and series.policy != "hold_n"):
                place, box = (clear or places)[0]
                _move(text, place)
                taken.append(box)
            else:
                text.remove()


def _places(series: Series) -> tuple:
    near = BELOW + ABOVE if series.search[0] == "bwbs_incremental" else ABOVE + BELOW
    return near if series.policy == "hold_n" else near + FARTHER  # a number apart from its curve would be a riddle


def _move(text: Annotation, place: tuple) -> Bbox:
    x, y, horizontal, vertical = place
    text.set(position=(x, y), horizontalalignment=horizontal, verticalalignment=vertical)
    return text.get_window_extent()


def _free(axes: Axes, box: Bbox, taken: Sequence[Bbox]) -> bool:
    inside = axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1 and axes.bbox.y0 <= box.y0 and box.y1 <= axes.bbox.y1
    return inside and not any(box.overlaps(other) for other in taken)


def _around(point: Sequence[float]) -> Bbox:
    """The box (pixels) of a marker at `point`."""
    return Bbox.from_bounds(point[0] - 6, point[1] - 6, 12, 12)
