"""The decodes of an experiment directory: `DIR/decode/<model>/<system>/<set>/{stats.json,score/scores.json}`."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from espnet_ext.config import POLICIES, SEARCHES
from espnet_ext.errors import UserError
from espnet_ext.evaluation.scoring import LATENCY_COLUMNS
from espnet_ext.files import read_lines

COLUMNS = (
    *("model", "system", "set", "tgt_lang", "block_size", "search", "policy", "hold_n", "la_n", "la_every"),
    *("reliability", "chunk_ms", "beam_size", "BLEU", "chrF", *LATENCY_COLUMNS, "NE", "words_at_end", "CI95"),
    *("StreamLAAL", "StreamLAAL_CA", "LongYAAL", "LongYAAL_CA"),
    *("decoder_forwards", "hypothesis_steps", "encoder_frames", "searches", "audio_s", "wall_s", "rtf", "peak_rss_mb"),
    *("n_total", "n_empty", "CA_clock", "BLEU_signature", "policy_args", "variant", "model_dir", "commit", "versions"),
)


@dataclass(frozen=True)
class Decode:
    """One scored decode: the names of its directories, its stats.json and its scores.json."""

    model: str
    system: str
    set: str
    stats: dict
    scores: dict

    def get(self, column: str) -> object:
        """The value of a column of results.tsv, None where the decode has none."""
        if column in ("model", "system", "set"):
            return getattr(self, column)
        for values in (self.stats, self.stats.get("policy_args") or {}, self.scores):
            if column in values:
                return values[column]
        return None

    @property
    def search(self) -> str:
        """The search preset."""
        return self.stats["search"]

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self.stats["policy"]

    @property
    def reliability(self) -> bool:
        """Whether an `ibwbs` run stopped unreliable beams; true for any other search, which has no such choice."""
        return self.search != "ibwbs" or self.get("reliability") is not False

    @property
    def further(self) -> dict[str, object]:
        """Options not at their default, beside search, policy, its value and reliability."""
        return {name: value for name, value in (self.get("variant") or {}).items() if name != "reliability"}

    @property
    def long_form(self) -> bool:
        """Whether whole talks were decoded."""
        return "StreamLAAL" in self.scores

    @property
    def policy_value(self) -> int | None:
        """What the policy is tuned by: n of hold-n and local agreement, f of AlignAtt; None for others."""
        return self.get(
            {"hold_n": "hold_n", "local_agreement": "la_n", "align_att": "align_att_f"}.get(self.policy, "")
        )

    @property
    def block_size(self) -> int | None:
        """Block size of the encoder in frames; None for a full-context model."""
        return self.stats["block_size"]

    @property
    def forwards_per_s(self) -> float | None:
        """Decoder forward passes per second of audio."""
        forwards, audio = self.get("decoder_forwards"), self.get("audio_s")
        return forwards / audio if forwards is not None and audio else None

    @property
    def sort_key(self) -> tuple:
        """Order of tables and curves: language, block, model, set, search, reliability, policy and its value."""
        return (
            str(self.get("tgt_lang")),
            self.block_size or 0,
            self.model,
            self.set,
            _position(SEARCHES, self.search),
            not self.reliability,
            policy_position(self.policy),
            self.policy_value or 0,
            self.system,
        )


def policy_position(policy: str) -> int:
    """The policy's place in our order; one from outside comes last."""
    return _position(POLICIES, policy)


def read_decodes(exp_dir: str | Path) -> tuple[list[Decode], list[tuple[str, str]]]:
    """Every scored decode in order, and what is incomplete: (directory below `exp_dir`, what is missing).

    A system that was run on one set of a model is expected on all sets of that model.
    Raises UserError when there is no decode directory or a file in it is broken.
    """
    root = Path(exp_dir) / "decode"
    directories = sorted(path for path in root.glob("*/*/*") if path.is_dir())
    if not directories:
        raise UserError(f"{root}: no decodes, run stages 11 and 12 first")
    decodes, incomplete = [], []
    for directory in directories:
        stats, scores = directory / "stats.json", directory / "score" / "scores.json"
        name = str(directory.relative_to(exp_dir))
        if not stats.exists():
            incomplete.append((name, "decoding has not ended (no stats.json)"))
        elif not scores.exists():
            incomplete.append((name, "not scored (no score/scores.json)"))
        else:
            model, system, test_set = directory.relative_to(root).parts
            decodes.append(Decode(model, system, test_set, _read(stats, ("search", "policy", "block_size")),
                                  _read(scores, ("BLEU", "n_total"))))  # fmt: skip
    return sorted(decodes, key=lambda decode: decode.sort_key), incomplete + _absent(directories, exp_dir)


def of_set(decodes: Iterable[Decode], name: str) -> list[Decode]:
    """The decodes of one set's segments: `tst-COMMON` is `tst-COMMON.en-de` and every other language of it."""
    return [d for d in decodes if name in (d.set, d.set.partition(".")[0]) and not d.long_form]


def talks_of_set(decodes: Iterable[Decode], name: str) -> list[Decode]:
    """The decodes of one set's whole talks."""
    return [decode for decode in decodes if name == decode.set.partition(".")[0] and decode.long_form]


def _absent(directories: Sequence[Path], exp_dir: str | Path) -> list[tuple[str, str]]:
    absent = []
    for model in sorted({path.parent.parent for path in directories}):
        for talks in (False, True):
            here = [p for p in directories if p.parent.parent == model and p.name.endswith("_talks") == talks]
            for system, test_set in product(sorted({p.parent for p in here}), sorted({p.name for p in here})):
                if not (system / test_set).is_dir():
                    absent.append((str((system / test_set).relative_to(exp_dir)), "not decoded"))
    return absent


def _read(path: Path, required: Sequence[str]) -> dict:
    try:
        record = json.loads("\n".join(read_lines(path)))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    for key in required:
        if not isinstance(record, dict) or key not in record:
            raise UserError(f"{path}: key {key!r} is missing, remove the directory and run its stage again")
    return record


def _position(order: Sequence[str], name: str) -> int:
    return order.index(name) if name in order else len(order)
