"""What a sentence means, before any language: nominals, clauses, and how clauses are joined."""

from dataclasses import dataclass
from typing import Literal

from mini_corpus.lexicon import Entry

Tense = Literal["past", "can", "must", "want", "will", "present"]
Determiner = Literal["the", "a", "this", "my", "our", "his", "number", "percent"]
Order = Literal["main", "inverted", "subordinate", "infinitive"]


@dataclass(frozen=True)
class NounPhrase:
    """A noun with its determiner; `quantity` is the number of "three books" or "40 percent of the books"."""

    noun: Entry
    determiner: Determiner
    plural: bool = False
    adjective: Entry | None = None
    quantity: Entry | None = None

    person = 3

    @property
    def human(self) -> bool:
        return self.noun["class"] == "person"


@dataclass(frozen=True)
class Name:
    """A person or a city by name: one form for every case."""

    entry: Entry

    plural = False
    person = 3

    @property
    def human(self) -> bool:
        return self.entry["class"] == "name"


@dataclass(frozen=True)
class Pronoun:
    """I, he, she, we or they, named by the English word; a subject always."""

    word: Literal["I", "he", "she", "we", "they"]

    human = True

    @property
    def person(self) -> int:
        return 1 if self.word in ("I", "we") else 3

    @property
    def plural(self) -> bool:
        return self.word in ("we", "they")


Nominal = NounPhrase | Name | Pronoun


def agreement(subject: Nominal) -> int:
    """Index of the verb form for a subject: I 0, he and she 1, we 2, they 3, as in the lexicon's tables."""
    return (2 if subject.plural else 0) + (0 if subject.person == 1 else 1)


@dataclass(frozen=True)
class Clause:
    """Who does what, to whom, where, with whom, how and when.

    `verb` is None in a copula clause, which says `adjective` or `measure` (a price) of the subject.
    """

    subject: Nominal
    tense: Tense
    verb: Entry | None = None
    object: Nominal | None = None
    recipient: Nominal | None = None
    place: Nominal | None = None
    companion: Nominal | None = None
    manner: Entry | None = None
    time: Entry | None = None
    time_first: bool = False
    adjective: Entry | None = None
    very: bool = False
    measure: Entry | None = None
