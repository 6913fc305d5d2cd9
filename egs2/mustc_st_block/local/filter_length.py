"""Drop utterances that training cannot use: too short, too long, without text."""

from pathlib import Path

from kaldi_dir import read_texts, source_text, target_text, validate, write_speakers, write_table
from step import Step, new_directory, say

from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import check_output, read_table
from espnet_ext.lock import locked


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--dump", type=Path, required=True, help="dumped data directory")
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--tgt_lang", required=True)
    parser.add_argument("--min_s", type=float, default=0.1, help="shortest utterance in seconds")
    parser.add_argument("--max_s", type=float, default=30.0, help="longest utterance in seconds")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Write the tables of the utterances that stay; the audio files are shared with the dump."""
    args = get_parser().parse_args(argv)
    check_output(args.output_dir, "output_dir", [args.dump])
    count = validate(args.dump)
    texts = read_texts(args.dump)
    needed = [texts.get(name) for name in (source_text(args.dump), target_text(args.tgt_lang))]
    if None in needed:
        raise UserError(f"{args.dump}: needs {target_text(args.tgt_lang)}; run stages 1 to 3")
    seconds = {u: int(n) / SAMPLE_RATE for u, n in read_table(args.dump / "utt2num_samples").items()}
    inputs = [args.dump / name for name in ("wav.scp", "utt2num_samples", *texts)]
    step = Step(args.output_dir / ".done", {"min_s": args.min_s, "max_s": args.max_s}, inputs)
    with locked(args.output_dir):
        if step.is_done(args.output_dir):
            return
        dropped = {
            "without text": {u for u in seconds if not all(table[u] for table in needed)},
            f"shorter than {args.min_s:g} s": {u for u, s in seconds.items() if s < args.min_s},
            f"longer than {args.max_s:g} s": {u for u, s in seconds.items() if s > args.max_s},
        }
        kept = seconds.keys() - set().union(*dropped.values())
        if not kept:
            raise UserError(
                f"{args.dump}: no utterance of {args.min_s}-{args.max_s} s with text; see --min_s and --max_s"
            )
        with new_directory(args.output_dir) as temporary:
            for name in ("wav.scp", "utt2num_samples"):
                table = read_table(args.dump / name)
                write_table(temporary / name, {u: value for u, value in table.items() if u in kept})
            write_speakers(temporary, {u: s for u, s in read_table(args.dump / "utt2spk").items() if u in kept})
            for name, table in texts.items():
                write_table(temporary / name, {u: text for u, text in table.items() if u in kept})
            validate(temporary)
        step.finish(path for path in args.output_dir.iterdir() if path.is_file())
    reasons = ", ".join(f"{len(utterances)} {reason}" for reason, utterances in dropped.items())
    say(f"{args.output_dir}: kept {len(kept)} of {count} utterances; {reasons}")


if __name__ == "__main__":
    run(main)
