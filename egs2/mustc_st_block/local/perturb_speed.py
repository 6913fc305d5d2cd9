"""A copy of a data directory for each speed factor, joined: ids get a prefix, utt2speed tells the dump what to do."""

import math
from pathlib import Path

from kaldi_dir import read_segments, read_texts, validate, write_speakers, write_table
from step import Step, new_directory, say

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import check_output, read_table
from espnet_ext.lock import locked


def prefix(factor: float) -> str:
    """What a factor puts before ids, for example `sp0.9-`; nothing at the original speed."""
    return "" if factor == 1 else f"sp{factor:g}-"


def perturb(source: Path, output: Path, factors: list[float]) -> int:
    """Write `output`, which holds `source` once for each factor; returns its number of utterances."""
    segments, speakers = read_segments(source / "segments"), read_table(source / "utt2spk")
    prefixes = {factor: prefix(factor) for factor in factors}

    def copies(table: dict) -> dict:
        result = {p + utterance: value for p in prefixes.values() for utterance, value in table.items()}
        if len(result) < len(prefixes) * len(table):
            raise UserError(f"{source}: ids begin with {' or '.join(filter(None, prefixes.values()))} already")
        return result

    write_table(output / "wav.scp", read_table(source / "wav.scp"))
    write_table(output / "segments", copies(segments))
    write_table(output / "utt2speed", {p + u: f"{f:g}" for f, p in prefixes.items() for u in segments})
    write_speakers(output, {p + u: p + s for p in prefixes.values() for u, s in speakers.items()})
    for name, texts in read_texts(source).items():
        write_table(output / name, copies(texts))
    return validate(output)


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="data directory with segments")
    parser.add_argument("--factors", type=float, nargs="+", required=True, help="speeds, for example 0.9 1.0 1.1")
    parser.add_argument("--output_dir", type=Path, required=True)
    return parser


def main(argv: list[str] | None = None) -> None:
    """Check the factors and write the joined directory."""
    args = get_parser().parse_args(argv)
    if not all(math.isfinite(factor) and 0.1 <= factor <= 10 for factor in args.factors):
        raise UserError(f"--factors {args.factors}: must lie between 0.1 and 10")
    if len({prefix(factor) for factor in args.factors}) < len(args.factors):
        raise UserError(f"--factors {args.factors}: must differ, in six digits")
    check_output(args.output_dir, "output_dir", [args.data])
    validate(args.data)
    inputs = [args.data / name for name in ("wav.scp", "segments", "utt2spk", *read_texts(args.data))]
    step = Step(args.output_dir / ".done", {"factors": args.factors}, inputs)
    with locked(args.output_dir):
        if step.is_done(args.output_dir):
            return
        with new_directory(args.output_dir) as temporary:
            count = perturb(args.data, temporary, args.factors)
        step.finish(path for path in args.output_dir.iterdir() if path.is_file())
    say(f"{args.output_dir}: {count} utterances at speeds {' '.join(f'{factor:g}' for factor in args.factors)}")


if __name__ == "__main__":
    run(main)
