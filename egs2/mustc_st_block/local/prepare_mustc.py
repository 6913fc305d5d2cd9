"""A MuST-C release directory to Kaldi data directories, one per split and one of whole talks."""

import math
import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

import soundfile
import yaml
from kaldi_dir import Segment, target_text, validate, write_speakers, write_table
from step import Step, new_directory, say

from espnet_ext.cli import ArgumentParser, run
from espnet_ext.errors import UserError
from espnet_ext.files import read_lines
from espnet_ext.lock import locked

SPLITS = ("train", "dev", "tst-COMMON", "tst-HE")
OPTIONAL_SPLITS = ("tst-HE",)
TALK_SPLITS = ("tst-COMMON",)
# The release rounds offsets: ends a little behind the audio are cut to it, starts a little before 0 are moved to it.
TOLERANCE_S = 0.05


@dataclass
class Split:
    """One split as read: talks by id, segments and texts by utterance id, and what was dropped."""

    recordings: dict[str, Path] = field(default_factory=dict)
    segments: dict[str, Segment] = field(default_factory=dict)
    source: dict[str, str] = field(default_factory=dict)
    target: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)


def clean(text: str) -> str:
    """Every run of white space (Unicode blanks and line separators too) to one blank."""
    return " ".join(text.split())


def lower_without_punctuation(text: str) -> str:
    """`lc.rm`: lower case; only letters, marks, digits and apostrophes inside words stay."""
    text = unicodedata.normalize("NFC", text).lower().replace("’", "'")
    text = "".join(c if c == "'" or unicodedata.category(c)[0] in "LMN" else " " for c in text)
    return clean(re.sub(r"(?<!\w)'|'(?!\w)", " ", text))


def talk_id(wav: str) -> str:
    """`ted_7.wav` to `ted_00007`: zero-padded, so that talks and their utterances sort alike in C order."""
    return re.sub(r"\d+", lambda match: match[0].zfill(5), Path(wav).stem).replace(" ", "_")


def load_entries(directory: Path, split: str, src: str, tgt: str) -> tuple[list[dict], list[str], list[str]]:
    """The yaml entries, source and target lines of a split. Raises UserError when their numbers differ."""
    path = directory / f"{split}.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader reads 230,000 entries in seconds
    try:
        with open(path, "rb") as stream:
            entries = yaml.load(stream, Loader=loader) or []
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; is this an unpacked MuST-C release?") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not yaml: {error}") from None
    source, target = (read_lines(directory / f"{split}.{language}") for language in (src, tgt))
    for language, lines in ((src, source), (tgt, target)):
        if len(lines) != len(entries):
            raise UserError(
                f"{path} has {len(entries)} segments but {split}.{language} has {len(lines)} lines; unpack it again"
            )
    return entries, source, target


def parse_entry(entry: dict, where: str) -> tuple[str, float, float]:
    """(wav name, offset, duration) of a yaml entry. Raises UserError naming `where` and the key."""
    try:
        return str(entry["wav"]), float(entry["offset"]), float(entry["duration"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{where}: needs wav, offset and duration in seconds ({error!r})") from None


def fit_segment(offset: float, duration: float, length: float | None) -> tuple[float, float] | str:
    """(start, end) inside a recording of `length` seconds, or what is wrong with the segment."""
    if length is None:
        return "wav missing or unreadable"
    if not (math.isfinite(offset) and math.isfinite(duration)):
        return "offset or duration is not a finite number"
    if duration <= 0:
        return f"duration {duration} is not positive"
    if offset < -TOLERANCE_S:
        return f"negative offset {offset}"
    start, end = max(offset, 0.0), offset + duration
    if end > length + TOLERANCE_S:
        return f"ends at {end:.3f} s, its wav at {length:.3f} s"
    end = min(end, length)
    return (start, end) if end > start else f"starts at {start:.3f} s, its wav ends at {length:.3f} s"


def wav_length(path: Path) -> float | None:
    """Length of an audio file in seconds, None when it cannot be read."""
    try:
        info = soundfile.info(str(path))
    except soundfile.LibsndfileError:
        return None
    return info.frames / info.samplerate


def read_split(release: Path, split: str, src: str, tgt: str) -> Split:
    """Read one split of `SRC-TGT/data`. Raises UserError for a count mismatch, or a bad segment outside train."""
    text_dir, wav_dir = release / split / "txt", release / split / "wav"
    entries, source, target = load_entries(text_dir, split, src, tgt)
    if not entries:
        raise UserError(f"{text_dir}/{split}.yaml: holds no segments")
    result = Split()
    lengths: dict[str, float | None] = {}
    talk_of: dict[str, str] = {}
    count: dict[str, int] = {}
    for number, (entry, en, xx) in enumerate(zip(entries, source, target, strict=True), start=1):
        where = f"{text_dir}/{split}.yaml: entry {number}"
        wav, offset, duration = parse_entry(entry, where)
        talk = talk_id(wav)
        if talk_of.setdefault(talk, wav) != wav:
            raise UserError(f"{where}: {wav} and {talk_of[talk]} get the same id {talk}; rename one of them")
        if wav not in lengths:
            lengths[wav] = wav_length(wav_dir / wav)
        count[talk] = count.get(talk, 0) + 1
        utterance = f"{talk}_{count[talk]:05d}"
        span = fit_segment(offset, duration, lengths[wav])
        if isinstance(span, str):
            result.dropped[utterance] = f"{wav}: {span}"
            if split != "train":
                raise UserError(f"{where} ({wav}): {span}; a test or dev segment may not be dropped")
            continue
        result.recordings[talk] = (wav_dir / wav).resolve()
        result.segments[utterance] = Segment(talk, *span)
        result.source[utterance], result.target[utterance] = clean(en), clean(xx)
    if not result.segments:
        raise UserError(f"{text_dir}/{split}.yaml: no usable segment; the first: {next(iter(result.dropped.values()))}")
    return result


def write_texts(directory: Path, source: dict[str, str], target: dict[str, str], src: str, tgt: str) -> None:
    """Write true-cased source and target and the lower-cased source without punctuation."""
    write_table(directory / f"text.tc.{src}", source)
    write_table(directory / target_text(tgt), target)
    write_table(directory / f"text.lc.rm.{src}", {u: lower_without_punctuation(text) for u, text in source.items()})


def write_split(split: Split, directory: Path, src: str, tgt: str) -> None:
    """Write a segment-level data directory."""
    write_table(directory / "wav.scp", split.recordings)
    write_table(directory / "segments", split.segments)
    write_speakers(directory, {u: segment.recording for u, segment in split.segments.items()})
    write_texts(directory, split.source, split.target, src, tgt)
    if split.dropped:
        write_table(directory / "dropped_segments", split.dropped)


def write_talks(split: Split, directory: Path, src: str, tgt: str) -> None:
    """Write a talk-level data directory: one utterance a talk, its text the segments' texts in order of time."""
    in_time = sorted(split.segments, key=lambda u: (split.segments[u].recording, split.segments[u].start))
    joined: dict[str, dict[str, list[str]]] = {"source": {}, "target": {}}
    for utterance in in_time:
        for side, texts in (("source", split.source), ("target", split.target)):
            joined[side].setdefault(split.segments[utterance].recording, []).append(texts[utterance])
    source, target = ({talk: clean(" ".join(parts)) for talk, parts in joined[s].items()} for s in joined)
    write_table(directory / "wav.scp", split.recordings)
    write_speakers(directory, {talk: talk for talk in split.recordings})
    write_texts(directory, source, target, src, tgt)


def get_parser() -> ArgumentParser:
    """Options of the command."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--mustc_dir", type=Path, required=True, help="directory that holds SRC-TGT/data")
    parser.add_argument("--src_lang", default="en", help="source language")
    parser.add_argument("--tgt_lang", required=True, help="target language, for example de")
    parser.add_argument("--data_dir", type=Path, default=Path("data"), help="where the data directories go")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Find the release, and prepare it unless that is done."""
    args = get_parser().parse_args(argv)
    src, tgt = args.src_lang, args.tgt_lang
    pair = f"{src}-{tgt}"
    release = args.mustc_dir / pair / "data"
    if not release.is_dir():
        raise UserError(
            f"{release}: no corpus in MuST-C's layout; for MuST-C download MUSTC {pair} (ict.fbk.eu/must-c), unpack it "
            f"and give the directory that holds {pair} as --mustc_dir, or use --corpus mini"
        )
    splits = [split for split in SPLITS if split not in OPTIONAL_SPLITS or (release / split).is_dir()]
    texts = [release / split / "txt" / f"{split}.{end}" for split in splits for end in ("yaml", src, tgt)]
    wavs = sorted((wav.name, wav.stat().st_size) for split in splits for wav in (release / split / "wav").glob("*"))
    step = Step(args.data_dir / f".prepared.{pair}", {"release": str(release.resolve()), "wavs": wavs}, texts)
    with locked(step.marker):
        if not step.is_done(f"{args.data_dir}/*.{pair}"):
            step.finish(write_splits(release, splits, args.data_dir, src, tgt))


def write_splits(release: Path, splits: list[str], data_dir: Path, src: str, tgt: str) -> list[Path]:
    """Read every split first, so that a fault in any of them leaves nothing half-written; then write them.

    Returns the files.
    """
    pair = f"{src}-{tgt}"
    outputs = []
    for name, split in {split: read_split(release, split, src, tgt) for split in splits}.items():
        targets = [(data_dir / f"{name}.{pair}", write_split)]
        if name in TALK_SPLITS:
            targets.append((data_dir / f"{name}.{pair}_talks", write_talks))
        for directory, write in targets:
            with new_directory(directory) as temporary:
                write(split, temporary, src, tgt)
                validate(temporary)
            outputs += sorted(path for path in directory.iterdir() if path.is_file())
        hours = sum(segment.end - segment.start for segment in split.segments.values()) / 3600
        dropped = f", {len(split.dropped)} bad segments dropped (dropped_segments)" if split.dropped else ""
        say(f"{targets[0][0]}: {len(split.segments)} segments, {len(split.recordings)} talks, {hours:.2f} h{dropped}")
    return outputs


if __name__ == "__main__":
    run(main)
