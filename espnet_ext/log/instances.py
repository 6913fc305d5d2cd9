"""`instances.log`: one JSON object a line and utterance, with SimulEval's keys and ours.

SimulEval's keys are `index`, `prediction`, `delays`, `elapsed`, `prediction_length`, `reference`, `source` and
`source_length`; `utt_id`, `steps` and `revisions` are added. Times are in ms; `delays` and `elapsed` have one entry per
latency unit (`espnet_ext.log.units`) and `elapsed` is under the queue clock (`espnet_ext.log.clocks`).
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from espnet_ext.errors import UserError
from espnet_ext.files import atomic_write, read_lines
from espnet_ext.log import fields
from espnet_ext.log.clocks import Step
from espnet_ext.log.units import split_units

LOG_VERSION = 1  # of the format, docs/log-format.md

__all__ = ["LOG_VERSION", "Instance", "InstanceWriter", "Revision", "Step", "read_instances", "totals", "write_text"]


@dataclass(frozen=True)
class Revision:
    """What a re-translation system showed after a search: audio received (ms) and the whole text."""

    audio_ms: float
    text: str


@dataclass(frozen=True)
class Instance:
    """One utterance of a decode. `source` is the audio path followed by descriptions, `source_length` is in ms."""

    index: int
    utt_id: str
    prediction: str
    delays: list[float]
    elapsed: list[float]
    source: list[str]
    source_length: float
    steps: list[Step]
    reference: str | None = None
    revisions: list[Revision] | None = None

    def to_json(self) -> str:
        """The log line, without its line end. Raises ValueError for a NaN or infinite number."""
        record = {
            "index": self.index,
            "prediction": self.prediction,
            "delays": self.delays,
            "elapsed": self.elapsed,
            "prediction_length": len(self.delays),
            "reference": self.reference,
            "source": self.source,
            "source_length": self.source_length,
            "utt_id": self.utt_id,
            "steps": [asdict(step) for step in self.steps],
            "revisions": None if self.revisions is None else [asdict(revision) for revision in self.revisions],
        }
        present = {key: value for key, value in record.items() if value is not None}
        return json.dumps(present, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, line: str, tgt_lang: str | None = None, simuleval: bool = False) -> Self:
        """Parse and validate one log line.

        With `tgt_lang` the prediction must have as many units as delays; without it words and characters both pass.
        `simuleval` admits a line without our own keys: `utt_id` becomes the name of the audio file.
        Raises ValueError with the key that is wrong.
        """
        record = fields.parse_object(line)
        source = fields.texts(record, "source", single=simuleval)
        if simuleval:
            record = {"utt_id": Path(source[0]).stem if source else str(record.get("index")), "steps": []} | record
        instance = cls(
            index=fields.number(record, "index", whole=True),
            utt_id=fields.text(record, "utt_id"),
            prediction=fields.text(record, "prediction"),
            delays=fields.numbers(record, "delays"),
            elapsed=fields.numbers(record, "elapsed"),
            source=source,
            source_length=fields.number(record, "source_length"),
            steps=[_step(step) for step in fields.objects(record, "steps")],
            reference=fields.text(record, "reference") if "reference" in record else None,
            revisions=[_revision(revision) for revision in fields.objects(record, "revisions")]
            if "revisions" in record
            else None,
        )
        if fields.number(record, "prediction_length", whole=True) != len(instance.delays):
            raise ValueError(f"key 'prediction_length' differs from the {len(instance.delays)} entries of 'delays'")
        instance.check(tgt_lang)
        return instance

    def check(self, tgt_lang: str | None = None) -> None:
        """Raise ValueError, naming the key, unless the fields agree with each other."""
        if not self.utt_id or any(char.isspace() for char in self.utt_id):
            raise ValueError(f"key 'utt_id' must be a word without blanks, not {self.utt_id!r}")
        if len(self.elapsed) != len(self.delays):
            raise ValueError(f"key 'elapsed' has {len(self.elapsed)} entries, 'delays' {len(self.delays)}")
        units = {lang: len(split_units(self.prediction, lang)) for lang in ([tgt_lang] if tgt_lang else ["en", "zh"])}
        if len(self.delays) not in units.values():
            counts = " or ".join(str(count) for count in dict.fromkeys(units.values()))
            raise ValueError(f"key 'delays' has {len(self.delays)} entries, the prediction has {counts} units")
        if any(later < earlier for earlier, later in zip(self.delays, self.delays[1:], strict=False)):
            raise ValueError("key 'delays' decreases")
        if any(elapsed < delay for delay, elapsed in zip(self.delays, self.elapsed, strict=True)):
            raise ValueError("key 'elapsed' has an entry below its delay")
        if self.elapsed != sorted(self.elapsed):
            raise ValueError("key 'elapsed' decreases")
        for name, moments in (("steps", self.steps), ("revisions", self.revisions or [])):
            audio = [moment.audio_ms for moment in moments]
            if audio != sorted(audio):
                raise ValueError(f"key {name!r} has an 'audio_ms' that decreases")
        if self.steps and not {*self.delays} <= {step.audio_ms for step in self.steps}:
            raise ValueError("key 'delays' has an entry that is no 'audio_ms' of 'steps'")


def read_instances(path: str | Path, tgt_lang: str | None = None, simuleval: bool = False) -> list[Instance]:
    """Read and validate a whole log, in file order; see `Instance.from_json` for the options.

    Raises UserError naming file, line and key.
    """
    lines = read_lines(path)
    refuse_cut(path, len(lines))
    return list(_parse(path, lines, tgt_lang, simuleval).values())


def refuse_cut(path: str | Path, lines: int) -> None:
    """Raise UserError when the last of a log's lines has no line end."""
    if lines and not Path(path).read_bytes().endswith(b"\n"):
        raise UserError(f"{path}:{lines}: the last line is cut off, run the decoding again to complete it")


def write_text(path: str | Path, instances: Iterable[Instance]) -> None:
    """Write the predictions as a Kaldi text, every key in it."""
    with atomic_write(path) as stream:
        stream.writelines(f"{instance.utt_id} {instance.prediction}".rstrip() + "\n" for instance in instances)


def totals(instances: Iterable[Instance]) -> dict[str, float | None]:
    """What `stats.json` says of all utterances together."""
    instances = list(instances)
    steps = [step for instance in instances for step in instance.steps]
    audio_s = sum(instance.source_length for instance in instances) / 1000
    wall_s = sum(step.compute_ms for step in steps) / 1000
    return {
        "decoder_forwards": sum(step.forwards for step in steps),
        "hypothesis_steps": sum(step.hypotheses for step in steps),
        "encoder_frames": sum(step.encoded_frames for step in steps),
        "encoder_frames_per_step": sum(step.encoded_frames for step in steps) / len(steps) if steps else None,
        "searches": sum(step.forwards > 0 for step in steps),
        "audio_s": audio_s,
        "wall_s": wall_s,
        "rtf": wall_s / audio_s if audio_s else None,
    }


def _parse(path: str | Path, lines: list[str], tgt_lang: str | None = None, simuleval: bool = False) -> dict:
    instances: dict[str, Instance] = {}
    for number, line in enumerate(lines, start=1):
        try:
            instance = Instance.from_json(line, tgt_lang, simuleval)
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}") from None
        if instance.utt_id in instances:
            raise UserError(f"{path}:{number}: key 'utt_id' repeats {instance.utt_id!r}")
        if instance.index != number - 1 and not simuleval:
            raise UserError(f"{path}:{number}: key 'index' is {instance.index}, {number - 1} is next")
        instances[instance.utt_id] = instance
    return instances


class InstanceWriter:
    """Append whole lines to a log, going on where an interrupted run stopped.

    Opening cuts a last line without line end; `done` maps the ids of the lines before it, in order, to their instances.
    Raises UserError on opening when another line is not valid.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.done: dict[str, Instance] = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            size = self.path.read_bytes().rfind(b"\n") + 1
            with open(self.path, "r+b") as stream:
                stream.truncate(size)
            self.done = _parse(self.path, read_lines(self.path))
        self._stream = open(self.path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._stream.close()
        except OSError:
            if kind is None:  # else the error is on its way already
                raise

    def write(self, instance: Instance) -> None:
        """Append one line and flush it.

        Raises ValueError when it is not valid, repeats an id or skips an index, OSError naming the log on a full disk.
        """
        instance.check()
        if instance.utt_id in self.done:
            raise ValueError(f"utt_id {instance.utt_id!r} is already in {self.path}")
        if instance.index != len(self.done):
            raise ValueError(f"index {instance.index} of {instance.utt_id!r}: {len(self.done)} is next")
        try:
            self._stream.write(instance.to_json() + "\n")
            self._stream.flush()
        except OSError as error:
            error.filename = str(self.path)
            raise
        self.done[instance.utt_id] = instance


def _step(record: dict) -> Step:
    return Step(
        fields.number(record, "audio_ms"),
        fields.number(record, "compute_ms"),
        fields.number(record, "forwards", whole=True),
        *(fields.number({key: 0} | record, key, whole=True) for key in ("hypotheses", "encoded_frames")),
    )


def _revision(record: dict) -> Revision:
    return Revision(fields.number(record, "audio_ms"), fields.text(record, "text"))
