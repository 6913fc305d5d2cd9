"""simulstream's log: a line that names the audio of an id, then a line a chunk with the tokens it added and took back.

Times are in seconds; `computation_time` is that of the chunk alone.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from espnet_ext.errors import UserError
from espnet_ext.files import read_lines
from espnet_ext.log import fields
from espnet_ext.log.clocks import Step, finish_times
from espnet_ext.log.instances import Instance, refuse_cut
from espnet_ext.log.units import clean_text, split_units, uses_characters

WORD_MARKER = "▁"


def to_lines(instance: Instance, tgt_lang: str) -> Iterator[str]:
    """The lines of one utterance: each step with the units that it released.

    Its scorers read the tokens with `detokenizer_type: simuleval`, `latency_unit: word` (or `char`).
    Raises ValueError for a log without steps, from which chunks cannot be told.
    """
    if not instance.steps:
        raise ValueError(f"utterance {instance.utt_id}: no key 'steps', which simulstream's chunks are made from")
    yield json.dumps({"id": instance.index, "metadata": {"wav_name": f"{instance.utt_id}.wav"}}, ensure_ascii=False)
    units = split_units(instance.prediction, tgt_lang)
    released = 0
    for number, step in enumerate(instance.steps, start=1):
        last = number == len(instance.steps)
        end = len(units) if last else sum(delay <= step.audio_ms for delay in instance.delays)
        record = {
            "id": instance.index,
            "total_audio_processed": step.audio_ms / 1000,
            "computation_time": step.compute_ms / 1000,
            "generated_tokens": units[released:end],
            "deleted_tokens": [],
        }
        released = max(released, end)
        yield json.dumps(record, ensure_ascii=False)


@dataclass
class _Stream:
    """One audio file of a log as it is read: the tokens so far, each with the step that put it there."""

    wav_name: str
    tokens: list[tuple[str, int]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def add(self, record: dict) -> None:
        """A chunk. Raises ValueError naming the key that is wrong."""
        deleted = fields.texts(record, "deleted_tokens")
        if deleted and deleted != [token for token, _ in self.tokens[-len(deleted) :]]:
            raise ValueError("key 'deleted_tokens' are not the last tokens so far")
        del self.tokens[len(self.tokens) - len(deleted) :]
        self.tokens += [(token, len(self.steps)) for token in fields.texts(record, "generated_tokens")]
        audio, computation = fields.number(record, "total_audio_processed"), fields.number(record, "computation_time")
        if self.steps and 1000 * audio < self.steps[-1].audio_ms:
            raise ValueError("key 'total_audio_processed' decreases")
        self.steps.append(Step(1000 * audio, 1000 * computation, 0))

    def instance(self, index: int, tgt_lang: str) -> Instance:
        """The stream as one of our lines; a word counts as released with its last token."""
        times = finish_times(self.steps)
        words = list(_words([token for token, _ in self.tokens], tgt_lang))
        delays, elapsed, place = [], [], iter(self.tokens)
        for word, count in words:
            step = max(next(place)[1] for _ in range(count))
            for _ in split_units(word, tgt_lang):
                delays.append(self.steps[step].audio_ms)
                elapsed.append(max(times[step], delays[-1]))
        separator = "" if uses_characters(tgt_lang) else " "
        return Instance(
            index=index,
            utt_id=Path(self.wav_name).stem,
            prediction=clean_text(separator.join(word for word, _ in words), tgt_lang),
            delays=delays,
            elapsed=elapsed,
            source=[self.wav_name],
            source_length=self.steps[-1].audio_ms if self.steps else 0.0,
            steps=self.steps,
        )


def _words(tokens: Sequence[str], tgt_lang: str) -> Iterator[tuple[str, int]]:
    """Words and their counts of tokens; sentencepiece's word marker joins pieces where there is one."""
    pieces = any(token.startswith(WORD_MARKER) for token in tokens)
    word, count = "", 0
    for token in tokens:
        if count and (not pieces or token.startswith(WORD_MARKER) or uses_characters(tgt_lang)):
            yield word, count
            word, count = "", 0
        word, count = word + token.removeprefix(WORD_MARKER), count + 1
    if count:
        yield word, count


def read_simulstream(path: str | Path, tgt_lang: str) -> list[Instance]:
    """The streams of a log, in the order of their first lines. Raises UserError naming file, line and key.

    A client that sends several files one after the other has one id for all; a line with the next one's name begins it.
    """
    lines = read_lines(path)
    refuse_cut(path, len(lines))
    streams: list[_Stream] = []
    current: dict[object, _Stream] = {}
    for line_number, line in enumerate(lines, start=1):
        try:
            record = fields.parse_object(line)
            if "metadata" in record:
                metadata = fields.get(record, "metadata")
                if not isinstance(metadata, dict):
                    raise ValueError("key 'metadata' must be an object")
                streams.append(_Stream(fields.text(metadata, "wav_name")))
                current[_id(record)] = streams[-1]
            elif record.keys() != {"model_loading_time"}:
                if _id(record) not in current:
                    raise ValueError(f"id {record['id']!r} has no line with metadata before")
                current[record["id"]].add(record)
        except ValueError as error:
            raise UserError(f"{path}:{line_number}: {error}") from None
    return _checked(path, [stream.instance(index, tgt_lang) for index, stream in enumerate(streams)], tgt_lang)


def _id(record: dict) -> str | int:
    value = fields.get(record, "id")
    if not isinstance(value, str | int):
        raise ValueError(f"key 'id' must be a string or a whole number, not {value!r}")
    return value


def _checked(path: str | Path, instances: list[Instance], tgt_lang: str) -> list[Instance]:
    seen: set[str] = set()
    for instance in instances:
        try:
            instance.check(tgt_lang)
        except ValueError as error:
            raise UserError(f"{path}: {instance.source[0]!r}: {error}") from None
        if instance.utt_id in seen:
            raise UserError(f"{path}: {instance.source[0]!r}: another file's name is {instance.utt_id!r} too")
        seen.add(instance.utt_id)
    return instances


def write_simulstream(instances: Iterable[Instance], tgt_lang: str) -> Iterator[str]:
    """The lines of a whole log."""
    for instance in instances:
        yield from to_lines(instance, tgt_lang)
