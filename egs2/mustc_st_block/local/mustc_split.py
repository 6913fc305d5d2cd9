"""Reading one split of MuST-C: its yaml, texts and recordings, with a note of everything that is not taken as it is."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from audio_files import AudioFile, probe
from kaldi_dir import Segment
from text_hygiene import changes, clean

from espnet_ext.audio.reader import SAMPLE_RATE
from espnet_ext.errors import UserError
from espnet_ext.files import read_raw_lines

# The release rounds offsets: ends a little behind the audio are cut to it, starts a little before 0 are moved to it.
TOLERANCE_S = 0.05
CHUNK = 100  # yaml entries parsed at a time: bounds the memory, and takes a third of the time of all at once


@dataclass(frozen=True)
class Note:
    """A line of the report: where, which utterance, what was done with it (`dropped`, `moved`, `changed`) and why."""

    file: str
    line: int
    utterance: str
    action: str
    reason: str
    detail: str = ""


@dataclass
class Split:
    """One split as read: recordings by talk id, segments and texts by utterance id, and the report."""

    recordings: dict[str, AudioFile] = field(default_factory=dict)
    segments: dict[str, Segment] = field(default_factory=dict)
    source: dict[str, str] = field(default_factory=dict)
    target: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def talk_id(wav: str) -> str:
    """`ted_7.wav` to `ted_00007`: zero-padded, for the order of their numbers.

    It holds no `-`. That sorts before all that it may hold, so that with `-` behind it utterances sort as their talks
    do, as Kaldi needs it, even where one id begins with another.
    """
    stem = re.sub(r"[0-9]+", lambda match: match[0].zfill(5), Path(wav).stem)
    return re.sub(r"[^\w.]", "_", stem)


def read_entries(path: Path) -> list:
    """The entries of a split's yaml.

    Raises UserError when the file is missing, or not a yaml list, naming the line where it breaks.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; is this an unpacked MuST-C release?") from None
    try:
        entries = _parse_in_chunks(content)
        if entries is None:
            entries = yaml.load(content, yaml.CSafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not yaml: {error}") from None
    if not isinstance(entries, list) or not entries:
        raise UserError(f"{path}: holds no segments, a list of them is expected; unpack the release again")
    return entries


def _parse_in_chunks(content: bytes) -> list | None:
    """A list whose items begin with `- ` at the line's start, by parts; None when it is not written so."""
    begins = [match.start() for match in re.finditer(rb"^- ", content, re.MULTILINE)]
    if not begins:
        return None
    entries = []
    for first in range(0, len(begins), CHUNK):
        begin = begins[first] if first else 0
        end = begins[first + CHUNK] if first + CHUNK < len(begins) else len(content)
        try:
            part = yaml.load(content[begin:end], yaml.CSafeLoader)
        except yaml.YAMLError:
            return None  # parsed as a whole, the error names its line
        if not isinstance(part, list):
            return None
        entries += part
    return entries if len(entries) == len(begins) else None


def parse_entry(entry: object, where: str) -> tuple[str, float, float]:
    """(wav name, offset, duration) of a yaml entry. Raises UserError naming `where` and the key."""
    try:
        wav, offset, duration = entry["wav"], entry["offset"], entry["duration"]
        if isinstance(offset, bool) or isinstance(duration, bool):
            raise TypeError("true and false are no times")
        offset, duration = float(offset), float(duration)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UserError(f"{where}: needs wav, offset and duration in seconds ({error!r})") from None
    if not isinstance(wav, str) or Path(wav).name != wav or re.search(r"[\x00-\x1f\x7f]", wav):
        raise UserError(f"{where}: wav {wav!r} must be the name of a file in wav/")
    return wav, offset, duration


class BadSegment(Exception):
    """A segment that cannot be cut from its recording: the reason, and the numbers that show it."""


def fit_segment(offset: float, duration: float, recording: AudioFile | None) -> tuple[float, float]:
    """(start, end) inside the recording. Raises BadSegment."""
    if recording is None:
        raise BadSegment("wav missing or unreadable", "")
    if not (math.isfinite(offset) and math.isfinite(duration)):
        raise BadSegment("time not finite", f"offset {offset}, duration {duration}")
    if duration <= 0:
        raise BadSegment("duration not positive", f"duration {duration}")
    if offset < -TOLERANCE_S:
        raise BadSegment("starts before its wav", f"offset {offset}")
    length = recording.seconds
    start, end = max(offset, 0.0), offset + duration
    if start >= length:
        raise BadSegment("starts behind its wav", f"starts at {start:.3f} s, its wav ends at {length:.3f} s")
    if end > length + TOLERANCE_S:
        raise BadSegment("ends behind its wav", f"ends at {end:.3f} s, its wav at {length:.3f} s")
    end = min(end, length)
    rate = min(SAMPLE_RATE, recording.rate)
    if round(end * rate) <= round(start * rate):
        raise BadSegment("no sample", f"from {start:.6f} to {end:.6f} s at {recording.rate} Hz")
    return start, end


class _Reader:
    """Reads a split; holds what has to be known of the entries before."""

    def __init__(self, release: Path, split: str, src: str, tgt: str) -> None:
        self.split, self.src, self.tgt = split, src, tgt
        self.text_dir, self.wav_dir = release / split / "txt", release / split / "wav"
        self.result = Split()
        self.recordings: dict[str, AudioFile | None] = {}
        self.wav_of: dict[str, str] = {}
        self.count: dict[str, int] = {}
        self.seen: dict[tuple, int] = {}

    def file(self, suffix: str) -> str:
        """How the report names a file of the split."""
        return f"{self.split}/txt/{self.split}.{suffix}"

    def entries(self) -> Iterator[tuple[int, object, str, str]]:
        """(number, yaml entry, source line, target line). Raises UserError when their numbers differ."""
        path = self.text_dir / f"{self.split}.yaml"
        entries = read_entries(path)
        texts = []
        for language in (self.src, self.tgt):
            texts.append(read_raw_lines(self.text_dir / f"{self.split}.{language}"))
            if len(texts[-1]) != len(entries):
                raise UserError(
                    f"{path} has {len(entries)} segments but {self.split}.{language} has {len(texts[-1])} lines; "
                    "unpack it again"
                )
        return zip(range(1, len(entries) + 1), entries, *texts, strict=True)

    def recording(self, wav: str, where: str) -> tuple[str, AudioFile | None]:
        """Id and header of a talk. Raises UserError when another wav has that id."""
        talk = talk_id(wav)
        if self.wav_of.setdefault(talk, wav) != wav:
            raise UserError(f"{where}: {wav} and {self.wav_of[talk]} get the same id {talk}; rename one of them")
        if wav not in self.recordings:
            self.recordings[wav] = probe(self.wav_dir / wav)
        return talk, self.recordings[wav]

    def read(self, number: int, entry: object, source: str, target: str) -> None:
        """One segment. Raises UserError for what is malformed anywhere, or bad outside train."""
        where = f"{self.text_dir}/{self.split}.yaml: entry {number}"
        wav, offset, duration = parse_entry(entry, where)
        talk, recording = self.recording(wav, where)
        self.count[talk] = self.count.get(talk, 0) + 1
        utterance = f"{talk}-{self.count[talk]:05d}"
        try:
            start, end = fit_segment(offset, duration, recording)
            if self.split == "train":
                first = self.seen.setdefault((wav, offset, duration, source, target), number)
                if first != number:
                    raise BadSegment("repeats an earlier one", f"line {first}")
        except BadSegment as bad:
            reason, detail = bad.args
            if self.split != "train":
                numbers = f" ({detail})" if detail else ""
                raise UserError(
                    f"{where} ({wav}): {reason}{numbers}; a test or dev segment may not be dropped"
                ) from None
            self.result.notes.append(Note(self.file("yaml"), number, utterance, "dropped", reason, detail))
            return
        if (start, end) != (offset, offset + duration):
            detail = f"from {offset}-{offset + duration:.6f} to {start}-{end:.6f} s"
            self.result.notes.append(Note(self.file("yaml"), number, utterance, "moved", "into its wav", detail))
        self.result.recordings[talk] = recording
        self.result.segments[utterance] = Segment(talk, start, end)
        for language, line, texts in ((self.src, source, self.result.source), (self.tgt, target, self.result.target)):
            texts[utterance] = clean(line)
            if texts[utterance] != line:
                what = [Note(self.file(language), number, utterance, "changed", change) for change in changes(line)]
                self.result.notes += what
            if not texts[utterance]:
                self.result.notes.append(Note(self.file(language), number, utterance, "kept", "empty text"))


def read_split(release: Path, split: str, src: str, tgt: str) -> Split:
    """Read one split of `SRC-TGT/data`. Raises UserError for a count mismatch, or a bad segment outside train."""
    reader = _Reader(release, split, src, tgt)
    for line in reader.entries():
        reader.read(*line)
    if not reader.result.segments:
        note = reader.result.notes[0]
        raise UserError(f"{reader.text_dir}/{split}.yaml: no usable segment; the first: {note.reason} {note.detail}")
    return reader.result
