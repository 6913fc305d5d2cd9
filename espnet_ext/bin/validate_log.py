"""Check that a log is whole and consistent: every line, key and count. Exit code 2 names the first fault."""

from collections.abc import Sequence

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.log.instances import Instance, read_instances
from espnet_ext.log.simulstream import read_simulstream

FORMATS = ("ours", "simuleval", "simulstream", "omnisteval")


def get_parser() -> ArgumentParser:
    """The command's parser."""
    parser = ArgumentParser(prog="validate_log", description=__doc__.partition("\n")[0])
    parser.add_argument("log", help="instances.log, or the log of another tool")
    parser.add_argument("--format", choices=FORMATS, default="ours", help="whose log it is")
    parser.add_argument("--tgt_lang", help="count units as for this language; default: words or characters")
    return parser


def read_log(path: str, kind: str, tgt_lang: str | None) -> list[Instance]:
    """Read and validate a log of one of the formats. Raises UserError naming file, line and key."""
    if kind == "simulstream":
        return read_simulstream(path, tgt_lang or "en")
    return read_instances(path, tgt_lang, simuleval=kind != "ours")


def main(argv: Sequence[str] | None = None) -> None:
    """Validate one log. Raises UserError naming file, line and key."""
    args = get_parser().parse_args(argv)
    instances = read_log(args.log, args.format, args.tgt_lang)
    units = sum(len(instance.delays) for instance in instances)
    print(f"{args.log}: {len(instances)} utterances, {units} units, valid")


if __name__ == "__main__":
    run(main)
