"""Report on all decodes of an experiment: results.tsv, the papers' tables and figures, checks.json and report.md."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from espnet_ext.cli import ArgumentParser, run, str2bool
from espnet_ext.errors import UserError
from espnet_ext.evaluation.checks import check, describe
from espnet_ext.evaluation.long_form_plot import long_form_figure
from espnet_ext.evaluation.plots import block_figure, policy_figure, tradeoff_figure, write_figure
from espnet_ext.evaluation.published import ibwbs_table, streamatt_table
from espnet_ext.evaluation.results import COLUMNS, Decode, of_set, read_decodes, talks_of_set
from espnet_ext.evaluation.tables import (
    long_form_table,
    onlinised_table,
    operating_table,
    retranslation_table,
    systems_table,
)
from espnet_ext.files import atomic_write
from espnet_ext.lock import locked

FIGURES = {
    "figure_tradeoff": "Quality over latency, and the decoder's work. Numbers beside points are n of hold-n.",
    "figure2a": "Figure 2(a): latency by block size, without a policy.",
    "figure2b": "Figure 2(b): BWBS with incremental pruning and policies.",
    "figure2c": "Figure 2(c): IBWBS and BWBS with policies.",
    "figure_longform": "StreamAtt paper, Figure 2: whole talks. Numbers beside points are f of AlignAtt.",
}


def get_parser() -> ArgumentParser:
    """The command's parser."""
    parser = ArgumentParser(prog="report_simul", description=__doc__)
    parser.add_argument("--exp_dir", required=True, help="experiment directory, with decode/<model>/<system>/<set>/")
    parser.add_argument("--output_dir", required=True, help="where the report is written")
    parser.add_argument("--test_set", default="tst-COMMON", help="set of the tables and figures")
    parser.add_argument("--dev_set", default="dev", help="set on which operating points are chosen")
    parser.add_argument("--latency_target_ms", type=float, default=2300, help="LAAL of the operating points (table 2)")
    parser.add_argument(
        "--mustc", type=str2bool, default=False, help="the decodes are of MuST-C: put them beside the papers' figures"
    )
    return parser


def write_results(path: Path, decodes: Sequence[Decode]) -> None:
    """results.tsv: a row a decode, `nan` where a value is undefined or absent, objects as JSON."""
    with atomic_write(path) as stream:
        stream.write("\t".join(COLUMNS) + "\n")
        for decode in decodes:
            stream.write("\t".join(_cell(decode.get(column)) for column in COLUMNS) + "\n")


def provenance(decodes: Sequence[Decode]) -> list[str]:
    """Commits, versions and BLEU signatures of the decodes; more than one of a kind is said."""
    lines = []
    for title, key in (("Commit", "commit"), ("Versions", "versions"), ("BLEU", "BLEU_signature")):
        values = sorted({_cell(decode.get(key)) for decode in decodes})
        mixed = f" ({len(values)} different)" if len(values) > 1 else ""
        lines.append(f"- {title}{mixed}: {'; '.join(f'`{value}`' for value in values)}")
    clocks = sorted({_cell(decode.get("CA_clock")) for decode in decodes})
    return [*lines, f"- Clock of computation-aware scores: {', '.join(clocks)}"]


def _cell(value: object) -> str:
    if value is None:
        return "nan"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".")
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return str(value)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the report. Raises UserError when there is nothing to report."""
    args = get_parser().parse_args(argv)
    with locked(args.output_dir):
        write_report(args)


def write_report(args: argparse.Namespace) -> None:
    """Write the report that parsed options ask for."""
    output = Path(args.output_dir)
    decodes, incomplete = read_decodes(args.exp_dir)
    test, dev = of_set(decodes, args.test_set), of_set(decodes, args.dev_set)
    if not test:
        raise UserError(f"{args.exp_dir}/decode: no scored decode of the set {args.test_set}, see --test_set")
    write_results(output / "results.tsv", decodes)
    talks = talks_of_set(decodes, args.test_set)
    tables = {
        "table1": retranslation_table(test),
        "table2": operating_table(dev, test, args.latency_target_ms),
        "table3": onlinised_table(test),
        "longform": long_form_table(talks, test),
        "systems": systems_table(test),
        "systems_dev": systems_table(dev),
        "ibwbs_paper": ibwbs_table(*((dev, test) if args.mustc else ((), ()))),
        "streamatt_paper": streamatt_table(
            *(talks_of_set(decodes, name) if args.mustc else () for name in (args.dev_set, args.test_set))
        ),
    }
    for name, table in tables.items():
        table.write(output / name)
    figures = {
        "figure_tradeoff": tradeoff_figure(test),
        "figure2a": block_figure(test),
        "figure2b": policy_figure(test, ["bwbs_incremental"]),
        "figure2c": policy_figure(test, ["ibwbs", "bwbs_incremental"]),
    }
    if talks:
        figures["figure_longform"] = long_form_figure(talks, test)
    for name, figure in figures.items():
        write_figure(figure, output / name)
    records = check(test)
    with atomic_write(output / "checks.json") as stream:
        json.dump(records, stream, ensure_ascii=False, allow_nan=False, indent=2)
        stream.write("\n")
    claims = describe(records)
    command = (
        f"python -m espnet_ext.bin.report_simul --exp_dir {args.exp_dir} --output_dir {args.output_dir} "
        f"--test_set {args.test_set} --dev_set {args.dev_set} --latency_target_ms {args.latency_target_ms:g} "
        f"--mustc {str(args.mustc).lower()}"
    )
    missing = [f"- `{name}`: {reason}" for name, reason in incomplete] or ["- none"]
    sections = [
        f"# Results on {args.test_set}\n",
        "\n".join([*provenance(decodes), f"- Command: `{command}`"]) + "\n",
        "## What was measured\n",
        "\n".join(f"- {line}" for line in claims) + "\n",
        *(f"![{caption}]({name}.png)\n\n{caption}\n" for name, caption in FIGURES.items() if name in figures),
        *(f"## {title}\n\n{tables[name].markdown()}" for name, title in (
            ("table1", "Re-translation and incremental pruning"),
            ("table2", "BWBS and IBWBS at one operating point"),
            ("table3", "Full-context models made simultaneous"),
            ("longform", "Whole talks"),
            ("systems", f"All systems on {args.test_set}"),
            ("ibwbs_paper", "Beside the IBWBS paper"),
            ("streamatt_paper", "Beside the StreamAtt paper"),
        ) if tables[name].rows),
        "## Missing or incomplete decodes\n",
        "\n".join(missing) + "\n",
    ]  # fmt: skip
    with atomic_write(output / "report.md") as stream:
        stream.write("\n".join(sections))
    print("\n".join(claims))
    print(f"{len(decodes)} decodes, {len(incomplete)} missing or incomplete; report in {output / 'report.md'}")


if __name__ == "__main__":
    run(main)
