"""Score a simultaneous decode: BLEU, chrF and latency, with and without computation.

With `--long_form` the decode is one of whole talks, and the references are those of their segments. Writes
`scores.json` and `per_utt.tsv` (a row a segment for talks) into the output directory and prints a table. What was
decoded, and how, is copied from the `stats.json` beside the log.
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from espnet_ext.bin.validate_log import FORMATS, read_log
from espnet_ext.cli import ArgumentParser, run, str2bool
from espnet_ext.errors import UserError
from espnet_ext.evaluation.comet import comet
from espnet_ext.evaluation.latency import METRICS
from espnet_ext.evaluation.long_form import EMPTY_SEGMENTS, LONG_FORM_METRICS, join_talks, score_talks
from espnet_ext.evaluation.scoring import join_references, score
from espnet_ext.evaluation.segmentation import Segment, read_audio_yaml, read_segments
from espnet_ext.files import atomic_write, check_output, read_lines, read_table
from espnet_ext.lock import locked
from espnet_ext.log.clocks import CLOCKS

META = (
    "system",
    "model_dir",
    "block_size",
    "search",
    "policy",
    "policy_args",
    "variant",
    "chunk_ms",
    "beam_size",
    "tgt_lang",
    "test_set",
    "commit",
    "versions",
)


def get_parser() -> ArgumentParser:
    """The command's parser."""
    parser = ArgumentParser(prog="score_simul", description=__doc__.partition("\n")[0])
    parser.add_argument("--instances", required=True, help="instances.log of a finished decode")
    parser.add_argument("--format", choices=FORMATS, default="ours", help="whose log it is, as for validate_log")
    parser.add_argument("--ref", required=True, help="references, a Kaldi text file with the ids of the decode")
    parser.add_argument("--tgt_lang", required=True, help="target language, e.g. de; zh and ja are scored by character")
    parser.add_argument("--output_dir", required=True, help="where scores.json and per_utt.tsv are written")
    parser.add_argument("--long_form", type=str2bool, nargs="?", const=True, default=False, help="score whole talks")
    parser.add_argument("--segments", help="long form: Kaldi segments of the talks, with the ids of --ref")
    parser.add_argument("--audio_yaml", help="long form: MuST-C's yaml instead, --ref holds a line a segment")
    parser.add_argument("--empty_segments", choices=EMPTY_SEGMENTS, default="skip", help="long form: or count as 0")
    parser.add_argument("--clip_negative", type=str2bool, default=False, help="long form: no word before its segment")
    parser.add_argument("--comet_model", help="also COMET, by this checkpoint file or model of the Hugging Face hub")
    parser.add_argument(
        "--src", help="source texts for COMET, with the ids of --ref (default: text.tc.en beside --ref)"
    )
    parser.add_argument("--ca_clock", choices=CLOCKS, default="queue", help="clock of the computation-aware twins")
    return parser


def read_meta(log: Path, tgt_lang: str) -> dict[str, object]:
    """What the decode's stats.json says about it; every value None when the log comes from elsewhere and has none.

    Raises UserError when the file is no JSON object or names another target language.
    """
    path = log.parent / "stats.json"
    if not path.exists():
        return dict.fromkeys(META) | {"tgt_lang": tgt_lang}
    try:
        stats = json.loads("\n".join(read_lines(path)))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    if not isinstance(stats, dict):
        raise UserError(f"{path}: a JSON object is expected")
    if stats.get("tgt_lang") not in (None, tgt_lang):
        raise UserError(f"{path}: key 'tgt_lang' is {stats['tgt_lang']!r}, but --tgt_lang is {tgt_lang!r}")
    return {key: stats.get(key) for key in META} | {"tgt_lang": tgt_lang}


def read_references(args: argparse.Namespace) -> list[Segment]:
    """The reference segments that the options name. Raises UserError unless exactly one of the lists is given."""
    if (args.segments is None) == (args.audio_yaml is None):
        raise UserError("--long_form needs --segments or --audio_yaml, one of them")
    if args.segments is not None:
        return read_segments(args.segments, args.ref)
    return read_audio_yaml(args.audio_yaml, args.ref)


def read_sources(args: argparse.Namespace) -> dict[str, str] | None:
    """Source texts by id when COMET is asked for. Raises UserError when there are none."""
    if args.comet_model is None:
        if args.src is not None:
            raise UserError("--src is for COMET: add --comet_model")
        return None
    path = Path(args.src or Path(args.ref).with_name("text.tc.en"))
    if not path.is_file():
        raise UserError(f"{path}: no such file; COMET needs the source texts: --src")
    return read_table(path, allow_empty=True)


def add_comet(scores: dict, rows: Sequence[Mapping[str, object]], sources: Mapping[str, str], model: str) -> None:
    """Put the COMET score of the rows among the scores. Raises UserError when a source text is missing."""
    keys = [row.get("utt_id") or row["segment"] for row in rows]
    for key in keys:
        if key not in sources:
            raise UserError(f"--src: no source text of {key!r}")
    texts = [[row[side] for row in rows] for side in ("prediction", "reference")]
    scores |= {"COMET": comet([sources[key] for key in keys], *texts, model), "COMET_model": model}


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """A tab-separated file with a header; undefined numbers are `nan`."""
    with atomic_write(path) as stream:
        stream.write("\t".join(rows[0]) + "\n")
        for row in rows:
            stream.write("\t".join(_cell(value) for value in row.values()) + "\n")


def print_scores(scores: Mapping[str, object], name: str) -> None:
    """A table on a terminal, one plain line elsewhere."""
    metrics = LONG_FORM_METRICS if "StreamLAAL" in scores else METRICS
    if not sys.stdout.isatty():
        lag = "StreamLAAL" if "StreamLAAL" in scores else "LAAL"
        shown = ("BLEU", "chrF", lag, f"{lag}_CA", "words_at_end", "n_total", "n_empty")
        print(name, *(f"{key} {_number(scores[key])}" for key in shown))
        return
    table = Table(title=name, caption=f"ms, but AP; CA: computation-aware, {scores['CA_clock']} clock")
    for column in ("", "plain", "95 %", "CA", "scored"):
        table.add_column(column, justify="left" if not column else "right")
    for metric in metrics:
        aware, count = _number(scores[f"{metric}_CA"]), str(scores["n_scored"][metric])
        table.add_row(metric, _number(scores[metric]), _interval(scores["CI95"][metric]), aware, count)
    table.add_section()
    for key in ("BLEU", "chrF", "COMET", "NE", "words_at_end", "n_total", "n_empty"):
        if key in scores:
            table.add_row(key, _number(scores[key]), _interval(scores["CI95"].get(key)))
    Console().print(table)


def _number(value: float | None) -> str:
    if value is None:
        return "nan"
    return str(value) if isinstance(value, int) else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def _interval(bounds: tuple[float, float] | None) -> str:
    return "" if bounds is None else " to ".join(map(_number, bounds))


def _cell(value: object) -> str:
    if value is None:
        return "nan"
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) and math.isfinite(value) else str(value)


def main(argv: Sequence[str] | None = None) -> None:
    """Score one decode. Raises UserError on bad input."""
    args = get_parser().parse_args(argv)
    for option in ("segments", "audio_yaml"):
        if getattr(args, option) is not None and not args.long_form:
            raise UserError(f"--{option} is for whole talks: add --long_form")
    sources = read_sources(args)
    log, output_dir = Path(args.instances), Path(args.output_dir)
    for name in ("per_utt.tsv", "scores.json"):
        check_output(output_dir / name, "output_dir", [log, args.ref, args.segments, args.audio_yaml, args.src])
    meta = read_meta(log, args.tgt_lang)
    instances = read_log(args.instances, args.format, args.tgt_lang)
    if args.long_form:
        talks = join_talks(instances, read_references(args), str(log))
        scores, rows = score_talks(talks, args.tgt_lang, args.ca_clock, args.empty_segments, args.clip_negative)
    else:
        pairs = join_references(instances, read_table(args.ref, allow_empty=True), str(log), args.ref)
        scores, rows = score(pairs, args.tgt_lang, args.ca_clock)
    if sources is not None:
        add_comet(scores, rows, sources, args.comet_model)
    with locked(output_dir):
        write_rows(output_dir / "per_utt.tsv", rows)
        with atomic_write(output_dir / "scores.json") as stream:
            json.dump(scores | meta, stream, ensure_ascii=False, allow_nan=False, indent=2)
            stream.write("\n")
    print_scores(scores, meta["system"] or str(log))


if __name__ == "__main__":
    run(main)
