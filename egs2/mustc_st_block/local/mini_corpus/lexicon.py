"""The words of the corpus, read from the tables in `lexicon/`, one row a concept with its form in every language."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LANGUAGES = ("en", "de", "es", "fr")


@dataclass(frozen=True)
class Entry:
    """One row of a table. `entry["de"]` is a whole cell, `entry.form("de", 1)` the second of its forms split at `/`."""

    cells: tuple[tuple[str, str], ...]

    def __getitem__(self, column: str) -> str:
        return dict(self.cells)[column]

    @property
    def group(self) -> str:
        """The class of a noun or phrase, within which the rows are ranked; empty for other words."""
        return dict(self.cells).get("class", "")

    def form(self, column: str, index: int) -> str:
        """The form with this index, or the last one there is: a cell lists no form that repeats the one before it."""
        forms = self[column].split("/")
        return forms[min(index, len(forms) - 1)]

    def has(self, column: str, index: int) -> bool:
        """Whether the cell lists this many forms."""
        return self[column].count("/") >= index


@cache
def table(name: str) -> tuple[Entry, ...]:
    """All rows of `lexicon/NAME.tsv`, in file order: the most frequent words of a class come first."""
    path = Path(__file__).parent / "lexicon" / f"{name}.tsv"
    with open(path, encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)
        return tuple(Entry(tuple(row.items())) for row in rows)


@cache
def phrases(kind: str) -> tuple[Entry, ...]:
    """The rows of `lexicon/phrases.tsv` of one class: `past`, `future`, `city`, `name`, `number`, ..."""
    return tuple(row for row in table("phrases") if row["class"] == kind)
