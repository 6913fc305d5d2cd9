"""A MuST-C release to Kaldi data directories, one per split, and one of whole talks per dev and test set."""

import shutil
from collections import Counter
from dataclasses import astuple, fields
from pathlib import Path

from audio_files import AudioFile, convert
from kaldi_dir import target_text, validate, write_speakers, write_table
from mustc_release import SPLITS, find_release
from mustc_split import Note, Split, read_split
from parallel import in_parallel
from step import Step, new_directory, say
from text_hygiene import lower_without_punctuation

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write
from espnet_ext.lock import locked

OPTIONAL_SPLITS = ("tst-HE",)
REPORT = "report.tsv"


def write_texts(directory: Path, source: dict[str, str], target: dict[str, str], src: str, tgt: str) -> None:
    """Write true-cased source and target and the lower-cased source without punctuation."""
    write_table(directory / f"text.tc.{src}", source)
    write_table(directory / target_text(tgt), target)
    write_table(directory / f"text.lc.rm.{src}", {u: lower_without_punctuation(text) for u, text in source.items()})


def write_report(path: Path, notes: list[Note]) -> None:
    """Write what was not taken as it is, a line each, with a heading."""
    with atomic_write(path) as stream:
        stream.write("\t".join(f.name for f in fields(Note)) + "\n")
        stream.writelines("\t".join(map(str, astuple(note))) + "\n" for note in notes)


def write_split(split: Split, directory: Path, wav_scp: dict[str, Path], src: str, tgt: str) -> None:
    """Write a segment-level data directory."""
    write_table(directory / "wav.scp", wav_scp)
    write_table(directory / "segments", split.segments)
    write_speakers(directory, {u: segment.recording for u, segment in split.segments.items()})
    write_texts(directory, split.source, split.target, src, tgt)
    write_report(directory / REPORT, split.notes)


def write_talks(split: Split, directory: Path, wav_scp: dict[str, Path], src: str, tgt: str) -> None:
    """Write a talk-level data directory: one utterance a talk, its text the segments' texts in order of time.

    `reference_segments` lists the segments in that order.
    """
    in_time = sorted(split.segments.items(), key=lambda item: (item[1].recording.encode(), item[1].start, item[1].end))
    joined: dict[str, dict[str, list[str]]] = {"source": {}, "target": {}}
    for utterance, segment in in_time:
        for side, texts in (("source", split.source), ("target", split.target)):
            joined[side].setdefault(segment.recording, []).append(texts[utterance])
    source, target = ({talk: " ".join(filter(None, parts)) for talk, parts in joined[s].items()} for s in joined)
    write_table(directory / "wav.scp", wav_scp)
    write_speakers(directory, {talk: talk for talk in wav_scp})
    write_texts(directory, source, target, src, tgt)
    with atomic_write(directory / "reference_segments") as stream:
        stream.writelines(f"{utterance} {segment}\n" for utterance, segment in in_time)


def _convert(job: tuple[AudioFile, Path]) -> None:
    convert(*job)


def converted(split: Split, directory: Path, temporary: Path, nj: int) -> dict[str, Path]:
    """wav.scp of a dev or test set: what is not mono at 16 kHz is converted into `audio/`, as decoding needs it."""
    jobs = {t: (r, temporary / "audio" / f"{t}.wav") for t, r in split.recordings.items() if not r.is_mono_16k}
    if jobs:
        say(f"{directory}: converting {len(jobs)} of {len(split.recordings)} recordings to mono at 16 kHz")
        for _ in in_parallel(_convert, list(jobs.values()), nj, "recordings to convert"):
            pass
    final = directory.resolve() / "audio"
    return {t: final / f"{t}.wav" if t in jobs else r.path for t, r in split.recordings.items()}


def summary(split: Split, directory: Path) -> None:
    """Say what was kept, dropped and changed, and why."""
    counts = Counter((note.action, note.reason) for note in split.notes)
    per_action: dict[str, list[str]] = {}
    for (action, reason), count in counts.most_common():
        per_action.setdefault(action, []).append(f"{count} {reason}")
    hours = sum(segment.end - segment.start for segment in split.segments.values()) / 3600
    dropped = sum(count for (action, _), count in counts.items() if action == "dropped")
    say(
        f"{directory}: kept {len(split.segments)} of {len(split.segments) + dropped} segments, "
        f"{len(split.recordings)} talks, {hours:.2f} h"
    )
    for action, reasons in per_action.items():
        say(f"{directory}: {action}: {', '.join(reasons)} (listed in {REPORT})")


def write_directories(splits: dict[str, Split], data_dir: Path, src: str, tgt: str, nj: int) -> list[Path]:
    """Write the directories of all splits and remove those of splits that only an earlier release had."""
    outputs: list[Path] = []
    for name, split in splits.items():
        directory, talks = data_dir / f"{name}.{src}-{tgt}", data_dir / f"{name}.{src}-{tgt}_talks"
        with new_directory(directory) as temporary:
            if name == "train":
                wav_scp = {talk: recording.path for talk, recording in split.recordings.items()}
            else:
                wav_scp = converted(split, directory, temporary, nj)
            write_split(split, temporary, wav_scp, src, tgt)
            validate(temporary)
        outputs += [path for path in directory.rglob("*") if path.is_file()]
        if name != "train":
            with new_directory(talks) as temporary:
                write_talks(split, temporary, wav_scp, src, tgt)
                validate(temporary)
            outputs += talks.iterdir()
        summary(split, directory)
    for name in set(SPLITS) - set(splits):
        for suffix in ("", "_talks"):
            shutil.rmtree(data_dir / f"{name}.{src}-{tgt}{suffix}", ignore_errors=True)
    return outputs


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument(
        "--mustc_dir", type=Path, required=True, help="holds SRC-TGT/data or MUSTC_*_SRC-TGT.tar.gz, or is one"
    )
    parser.add_argument("--src_lang", default="en", help="source language")
    parser.add_argument("--tgt_lang", required=True, help="target language, for example de")
    parser.add_argument("--data_dir", type=Path, default=Path("data"), help="where the data directories go")
    parser.add_argument("--unpack_dir", type=Path, default=Path("downloads/mustc"), help="where an archive is unpacked")
    parser.add_argument("--nj", type=int, default=1, help="parallel jobs, for recordings that must be converted")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Read every split first, so that a fault in any of them leaves nothing half-written; then write them."""
    args = get_parser().parse_args(argv)
    src, tgt = args.src_lang, args.tgt_lang
    for option, lang in (("--src_lang", src), ("--tgt_lang", tgt)):
        if not (lang.isascii() and lang.isalpha() and lang.islower()):
            raise UserError(f"{option} {lang!r}: give a language as in the release's SRC-TGT, for example de")
    pair = f"{src}-{tgt}"
    release = find_release(args.mustc_dir, pair, args.unpack_dir)
    splits = [split for split in SPLITS if split not in OPTIONAL_SPLITS or (release / split).is_dir()]
    texts = [release / split / "txt" / f"{split}.{end}" for split in splits for end in ("yaml", src, tgt)]
    wavs = {str(wav): wav.stat() for split in splits for wav in sorted((release / split / "wav").glob("*"))}
    settings = {"release": str(release.resolve()), "wavs": [(w, s.st_size, s.st_mtime_ns) for w, s in wavs.items()]}
    step = Step(args.data_dir / f".prepared.{pair}", settings, texts)
    with locked(step.marker):
        if not step.is_done(f"{args.data_dir}/*.{pair}"):
            read = {split: read_split(release, split, src, tgt) for split in splits}
            step.finish(sorted(write_directories(read, args.data_dir, src, tgt, args.nj)))


if __name__ == "__main__":
    run(main)
