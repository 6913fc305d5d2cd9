"""The figures of a corpus, counted from its files."""

import re
import statistics
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


def measure(output_dir: Path, language: str) -> dict:
    """Hours, talks, segments and lengths by set; word types and near repetitions of train in the test sets."""
    figures: dict = {}
    texts: dict[str, list[str]] = {}
    for split in SPLITS:
        folder = output_dir / f"en-{language}" / "data" / split / "txt"
        rows = yaml.load((folder / f"{split}.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
        source, texts[split] = read_lines(folder / f"{split}.en"), read_lines(folder / f"{split}.{language}")
        seconds = [row["duration"] for row in rows]
        irregular = [line for line in source if len(sentences(line)) != 1 or not _whole(sentences(line)[0])]
        figures[split] = {
            "talks": len({row["wav"] for row in rows}),
            "segments": len(rows),
            "hours": round(sum(seconds) / 3600, 3),
            "median_s": round(statistics.median(seconds), 2),
            "shortest_s": min(seconds),
            "longest_s": max(seconds),
            "irregular_share": round(len(irregular) / len(rows), 3),
            "noises": sum(bool(NOISE.search(line)) for line in source),
        }
    train = Neighbourhood(sentence for line in texts["train"] for sentence in [line, *sentences(line)])
    for split in SPLITS[1:]:
        own = [sentence for line in texts[split] for sentence in sentences(line)]
        figures[split]["in_train_share"] = sum(sentence in train for sentence in own) / len(own)
        figures[split]["near_train_share"] = sum(train.near(sentence) for sentence in own) / len(own)
    counts: dict[str, int] = {}
    for line in texts["train"]:
        for word in WORD.findall(NOISE.sub("", line).lower()):
            counts[word] = counts.get(word, 0) + 1
    figures["target_word_types"] = len(counts)
    figures["target_words"] = sum(counts.values())
    return figures


def _whole(sentence: str) -> bool:
    return sentence[-1] in ".?!" and not sentence[0].islower()
