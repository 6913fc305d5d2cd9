"""Figure 2 of the StreamAtt paper: quality over latency on whole talks, AlignAtt on their segments beside it."""

from collections.abc import Sequence

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from espnet_ext.evaluation.curves import search_name
from espnet_ext.evaluation.plots import RC
from espnet_ext.evaluation.results import Decode

# Colour (Okabe and Ito's), marker and line tell the system: readable without colour.
SYSTEMS = {
    "AlignAtt, segmented audio": {"color": "black", "marker": "D", "linestyle": (0, (6, 1.5, 1, 1.5))},
    "StreamAtt, fixed words": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "StreamAtt, punctuation": {"color": "#009E73", "marker": "^", "linestyle": (0, (5, 1.5))},
    "fixed duration (baseline)": {"color": "#D55E00", "marker": "s", "linestyle": (0, (1.5, 1.2))},
}
LABEL = {
    "xytext": (5, 2),
    "textcoords": "offset points",
    "fontsize": 7,
    "path_effects": [withStroke(linewidth=2, foreground="white")],
}
HISTORY = {"audio_history", "text_history", "n_words"}


def long_form_figure(talks: Sequence[Decode], segmented: Sequence[Decode]) -> Figure:
    """A panel a model and search, a curve a system over f (beside its points); histories at their default length."""
    panels = sorted({_panel(decode) for decode in talks})
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(0.8 + 4.2 * max(len(panels), 1), 3.9), layout="constrained")
        grid = figure.subplots(1, max(len(panels), 1), squeeze=False)[0]
        for axes, panel in zip(grid, panels, strict=False):
            decodes = [decode for decode in (*talks, *segmented) if _panel(decode) == panel]
            axes.margins(x=0.08, y=0.1)
            axes.set_title(", ".join(panel[1:]), fontsize=9)
            axes.set_xlabel("StreamLAAL (s), LAAL for AlignAtt")
            for name, style in SYSTEMS.items():
                points = sorted((d.policy_value, _lag(d) / 1000, d.get("BLEU")) for d in decodes if system(d) == name)
                axes.plot(
                    [x for _, x, _ in points],
                    [y for *_, y in points],
                    label=name,
                    linewidth=1.4,
                    markersize=4.5,
                    **style,
                )
                for f, x, y in points:
                    axes.annotate(f"{f}", (x, y), color=style["color"], **LABEL)
        grid[0].set_ylabel("BLEU")
        handles, labels = grid[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def system(decode: Decode) -> str | None:
    """The curve that a decode is a point of, None for one that is on no curve."""
    if decode.policy != "align_att" or _lag(decode) is None:
        return None
    if not decode.long_form:
        return "AlignAtt, segmented audio"
    changed = {name: value for name, value in decode.further.items() if name in HISTORY}
    return {
        (): "StreamAtt, fixed words",
        (("text_history", "punctuation"),): "StreamAtt, punctuation",
        (("audio_history", "fixed_duration"),): "fixed duration (baseline)",
    }.get(tuple(changed.items()))


def _panel(decode: Decode) -> tuple[str, str, str]:
    """Language, model and search."""
    return str(decode.get("tgt_lang")), decode.model, search_name(decode.search, decode.reliability)


def _lag(decode: Decode) -> float | None:
    return decode.get("StreamLAAL" if decode.long_form else "LAAL")
