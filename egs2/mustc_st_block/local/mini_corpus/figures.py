"""The figures of a corpus, counted from its files."""

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import yaml

from espnet_ext.files import read_lines
from mini_corpus.content import Neighbourhood

NOISE = re.compile(r"\([^)]*\)")
SENTENCE_END = re.compile(r"(?<=[.?!]) +(?=[^\W\d_a-zäöüéèàâêîôû]|[¿\d])")
WORD = re.compile(r"\w+(?:[.,'-]\w+)*")
SPLITS = ("train", "dev", "tst-COMMON", "tst-HE")


def sentences(line: str) -> list[str]:
    """The sentences of a line, or parts of one, without noises like `(Applause)`."""
    text = NOISE.sub("", line).strip()
    return SENTENCE_END.split(text) if text else []


def measure(output_dir: Path, languages: Sequence[str]) -> dict:
    """Under `sets` talks, segments and lengths by set; under `texts`, by language, word types of train and the shares
    of the other sets' sentences that train holds too (`in_train`) or holds but for one word (`near_train`).
    """
    folder = output_dir / f"en-{languages[0]}" / "data"
    figures: dict = {"sets": {split: _measure_set(folder / split / "txt", split) for split in SPLITS}, "texts": {}}
    for language in ("en", *languages):
        folder = output_dir / f"en-{languages[0] if language == 'en' else language}" / "data"
        lines = {split: read_lines(folder / split / "txt" / f"{split}.{language}") for split in SPLITS}
        figures["texts"][language] = _measure_text(lines)
    return figures


def _measure_set(folder: Path, split: str) -> dict:
    rows = yaml.load((folder / f"{split}.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    lines = read_lines(folder / f"{split}.en")
    seconds = [row["duration"] for row in rows]
    parts = [sentences(line) for line in lines]
    return {
        "talks": len({row["wav"] for row in rows}),
        "segments": len(rows),
        "hours": round(sum(seconds) / 3600, 3),
        "shortest_s": min(seconds),
        "median_s": round(statistics.median(seconds), 2),
        "longest_s": max(seconds),
        "several_sentences": sum(len(part) > 1 for part in parts),
        "cut_sentences": sum(bool(part) and (part[0][0].islower() or part[-1][-1] not in ".?") for part in parts),
        "noises": sum(bool(NOISE.search(line)) for line in lines),
    }


def _measure_text(lines: dict[str, list[str]]) -> dict:
    words = Counter(word for line in lines["train"] for word in WORD.findall(NOISE.sub("", line).lower()))
    known = Neighbourhood(text for line in lines["train"] for text in [line, *sentences(line)])
    held_out = [text for split in SPLITS[1:] for line in lines[split] for text in sentences(line)]
    return {
        "word_types": len(words),
        "words": words.total(),
        "in_train": round(sum(text in known for text in held_out) / len(held_out), 4),
        "near_train": round(sum(known.near(text) for text in held_out) / len(held_out), 4),
    }
