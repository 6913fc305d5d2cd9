"""Kaldi data directories: writing them sorted in C order, reading and validating them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write, read_table


def source_lang(directory: Path) -> str:
    """Source language of a data directory, that of its one table `text.lc.rm.LANG`. Raises UserError without one."""
    names = sorted(path.name for path in directory.glob("text.lc.rm.*"))
    if len(names) != 1:
        raise UserError(f"{directory}: needs one text.lc.rm.LANG, has {' and '.join(names) or 'none'}; run stage 1")
    return names[0].removeprefix("text.lc.rm.")


def source_text(directory: Path) -> str:
    """Name of a data directory's source text, lower-cased without punctuation."""
    return f"text.lc.rm.{source_lang(directory)}"


def target_text(lang: str) -> str:
    """Name of the true-cased target text of a language."""
    return f"text.tc.{lang}"


def write_table(path: Path, table: Mapping[str, object]) -> None:
    """Write `KEY VALUE` lines in C order of the keys, whatever the locale."""
    with atomic_write(path) as stream:
        for key in sorted(table, key=lambda key: key.encode()):
            stream.write(f"{key} {table[key]}".rstrip(" ") + "\n")


def write_speakers(directory: Path, utt2spk: Mapping[str, str]) -> None:
    """Write utt2spk and its inverse spk2utt."""
    spk2utt: dict[str, list[str]] = {}
    for utterance in sorted(utt2spk, key=lambda key: key.encode()):
        spk2utt.setdefault(utt2spk[utterance], []).append(utterance)
    write_table(directory / "utt2spk", utt2spk)
    write_table(directory / "spk2utt", {speaker: " ".join(utterances) for speaker, utterances in spk2utt.items()})


@dataclass(frozen=True)
class Segment:
    """A part of a recording, in seconds."""

    recording: str
    start: float
    end: float

    def __str__(self) -> str:
        return f"{self.recording} {self.start:.6f} {self.end:.6f}"


def read_segments(path: Path) -> dict[str, Segment]:
    """Read `UTTERANCE RECORDING START END` lines. Raises UserError on a malformed or empty segment."""
    segments = {}
    for number, (utterance, value) in enumerate(read_table(path).items(), start=1):
        try:
            recording, start, end = value.split()
            segments[utterance] = Segment(recording, float(start), float(end))
        except ValueError:
            raise UserError(f"{path}:{number}: expected UTTERANCE RECORDING START END") from None
        if not 0 <= segments[utterance].start < segments[utterance].end:
            raise UserError(f"{path}:{number}: segment {utterance} has no positive length or a negative start")
    return segments


def read_texts(directory: Path) -> dict[str, dict[str, str]]:
    """Every text table of a data directory by file name; an utterance may have an empty text."""
    return {path.name: read_table(path, allow_empty=True) for path in sorted(directory.glob("text.*"))}


def validate(directory: Path) -> int:
    """Check a data directory and return its number of utterances.

    Raises UserError when a table is missing, empty, unsorted, or does not hold the same keys as utt2spk, when an id
    holds white space or does not begin with its speaker, when utterances do not sort as their speakers do (Kaldi's
    tools need all of this), when a segment's recording is unknown, or when spk2utt is not the inverse of utt2spk.
    """
    if not (directory / "utt2spk").is_file():
        raise UserError(f"{directory}: not a data directory (no utt2spk); run stage 1")
    utt2spk = read_table(directory / "utt2spk")
    if not utt2spk:
        raise UserError(f"{directory}: the data directory is empty; run stage 1 again")
    for utterance, speaker in utt2spk.items():
        if f"{utterance} {speaker}".split() != [utterance, speaker]:
            raise UserError(f"{directory}/utt2spk: {utterance!r} {speaker!r}: ids may not hold white space")
        if not utterance.startswith(speaker):
            raise UserError(f"{directory}/utt2spk: {utterance} does not begin with the id of its speaker, {speaker}")
    for speaker, following in pairwise(utt2spk.values()):
        if speaker.encode() > following.encode():
            raise UserError(f"{directory}/utt2spk: utterances do not sort as their speakers, {following} and {speaker}")
    recordings = read_table(directory / "wav.scp")
    tables: dict[str, Mapping[str, object]] = {"utt2spk": utt2spk, **read_texts(directory)}
    if (directory / "segments").is_file():
        segments = read_segments(directory / "segments")
        tables["segments"] = segments
        unknown = next((u for u, segment in segments.items() if segment.recording not in recordings), None)
        if unknown is not None:
            raise UserError(f"{directory}/segments: {unknown}: recording {segments[unknown].recording} not in wav.scp")
    else:
        tables["wav.scp"] = recordings
    for name, table in tables.items():
        keys = list(table)
        if keys != sorted(keys, key=lambda key: key.encode()):
            raise UserError(f"{directory}/{name}: not sorted in C order")
        if table.keys() != utt2spk.keys():
            key = min(table.keys() ^ utt2spk.keys())
            raise UserError(f"{directory}/{name}: {key} is not in both {name} and utt2spk")
    inverse = {u: s for s, utterances in read_table(directory / "spk2utt").items() for u in utterances.split()}
    if inverse != utt2spk:
        raise UserError(f"{directory}/spk2utt: not the inverse of utt2spk")
    return len(utt2spk)
