"""Reference segments of talks, and the assignment of a talk's words to them."""

import contextlib
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from espnet_ext.errors import UserError
from espnet_ext.files import read_lines, read_table
from espnet_ext.log.units import split_units, uses_characters

_present = logging.NullHandler()  # mweralign configures the root logger at its import unless a handler is there
logging.root.addHandler(_present)
import mweralign  # noqa: E402

logging.root.removeHandler(_present)


@dataclass(frozen=True)
class Segment:
    """A reference segment: its talk, where it lies in it (ms), and its translation."""

    key: str
    talk: str
    start: float
    end: float
    reference: str


def read_segments(segments: str | Path, ref: str | Path) -> list[Segment]:
    """Segments of a Kaldi `segments` file with references by id, each talk's in the order of its audio.

    Raises UserError for a malformed line and for ids that are in one of the files only.
    """
    references = read_table(ref, allow_empty=True)
    found = []
    for key, value in read_table(segments).items():
        try:
            talk, start, end = value.split()
            found.append(Segment(key, talk, 1000 * float(start), 1000 * float(end), references.pop(key)))
        except ValueError:
            raise UserError(f"{segments}: key {key!r} needs 'RECORDING START END', found {value!r}") from None
        except KeyError:
            raise UserError(f"{ref}: no reference for segment {key!r} of {segments}") from None
    if references:
        raise UserError(f"{segments}: no segment {next(iter(references))!r}, which {ref} holds")
    return _in_order(found)


def read_audio_yaml(path: str | Path, ref: str | Path) -> list[Segment]:
    """Segments of MuST-C's own yaml (`wav`, `offset`, `duration` in s), the reference of each in its line of `ref`.

    Raises UserError for another kind of file and when the counts differ.
    """
    try:
        entries = yaml.load("\n".join(read_lines(path)), Loader=yaml.CSafeLoader)
        found = [(Path(e["wav"]).stem, 1000 * float(e["offset"]), 1000 * float(e["duration"])) for e in entries]
    except (yaml.YAMLError, TypeError, KeyError, ValueError) as error:
        raise UserError(f"{path}: not a list of segments with wav, offset and duration: {error}") from None
    references = read_lines(ref)
    if len(references) != len(found):
        raise UserError(f"{ref}: has {len(references)} lines for the {len(found)} segments of {path}")
    return _in_order(
        Segment(str(number), talk, start, start + duration, reference)
        for number, ((talk, start, duration), reference) in enumerate(zip(found, references, strict=True), start=1)
    )


def _in_order(segments: Iterable[Segment]) -> list[Segment]:
    return sorted(segments, key=lambda segment: (segment.talk, segment.start, segment.end))


def by_talk(segments: Sequence[Segment]) -> dict[str, list[Segment]]:
    """The segments of each talk, in order."""
    talks: dict[str, list[Segment]] = {}
    for segment in segments:
        talks.setdefault(segment.talk, []).append(segment)
    return talks


def assign(units: Sequence[str], segments: Sequence[Segment], tgt_lang: str) -> list[int]:
    """How many of a talk's consecutive units belong to each of its segments, by minimum word error rate."""
    references = [" ".join(split_units(segment.reference, tgt_lang)) for segment in segments]
    spoken = [index for index, reference in enumerate(references) if reference]
    counts = [0] * len(segments)
    if not units or not spoken:
        return counts
    with _silenced():
        aligned = mweralign.align_texts("\n".join(references[index] for index in spoken), " ".join(units))
    for index, line in zip(spoken, aligned.split("\n"), strict=True):
        counts[index] = len(line.split())
    if sum(counts) != len(units):
        raise ValueError(f"mweralign returned {sum(counts)} of {len(units)} units")
    return counts


def joined(units: Sequence[str], tgt_lang: str) -> str:
    """The text of units."""
    return ("" if uses_characters(tgt_lang) else " ").join(units)


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Keep what the C++ part of mweralign prints from the terminal."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
