"""Check that a log is whole and consistent: every line, key and count. Exit code 2 names the first fault."""

from collections.abc import Sequence

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.log.instances import read_instances


def get_parser() -> ArgumentParser:
    """The command's parser."""
    parser = ArgumentParser(prog="validate_log", description=__doc__.partition("\n")[0])
    parser.add_argument("log", help="instances.log")
    parser.add_argument(
        "--format",
        choices=("ours", "simuleval"),
        default="ours",
        help="simuleval: SimulEval's keys alone are required",
    )
    parser.add_argument("--tgt_lang", help="count units as for this language; default: words or characters")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Validate one log. Raises UserError naming file, line and key."""
    args = get_parser().parse_args(argv)
    instances = read_instances(args.log, args.tgt_lang, simuleval=args.format == "simuleval")
    units = sum(len(instance.delays) for instance in instances)
    print(f"{args.log}: {len(instances)} utterances, {units} units, valid")


if __name__ == "__main__":
    run(main)
