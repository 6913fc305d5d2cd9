"""Random meanings, and the frames that join clauses into sentences.

A sentence is a list of pieces. A piece holds corresponding words in every language, so a talk can be cut between two
of them; inside a piece the languages order their words freely.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from mini_corpus import english, french, german, spanish
from mini_corpus.lexicon import LANGUAGES, Entry, phrases, table
from mini_corpus.meaning import Clause, Name, Nominal, NounPhrase, Order, Pronoun, agreement

Piece = dict[str, str]
CLAUSE: dict[str, Callable[[Clause, Order], str]] = {
    "en": english.clause,
    "de": german.clause,
    "es": spanish.clause,
    "fr": french.clause,
}
MODAL_TENSES = ("can", "must", "want", "will")


def pick(rng: Random, rows: Sequence[Entry]) -> Entry:
    """One row; the weights fall with the rank in its class, as word frequencies do, but with a short tail."""
    ranks = Counter()
    weights = []
    for row in rows:
        ranks[row.group] += 1
        weights.append((ranks[row.group] + 3) ** -0.4)
    return rng.choices(rows, weights)[0]


class Sampler:
    """Draws meanings and sentences from one random generator."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def sentence(self) -> list[Piece]:
        """Pieces of one sentence: capital at the start, punctuation at the ends of pieces."""
        frames, weights = zip(*FRAMES, strict=True)
        pieces = self.rng.choices(frames, weights)[0](self)
        if not pieces[-1]["en"].endswith("?"):
            if self.chance(0.3):
                pieces[0] = join(self.phrase("starter"), pieces[0])
            pieces[-1] = mark(pieces[-1], ".")
        pieces[0] = {language: capital(text) for language, text in pieces[0].items()}
        return pieces

    def phrase(self, kind: str) -> Entry:
        return self.rng.choice(phrases(kind))

    # meanings

    def noun_phrase(self, classes: Sequence[str], avoid: Sequence[Entry] = (), subject: bool = False) -> NounPhrase:
        rows = [row for row in table("nouns") if row["class"] in classes and row not in avoid]
        noun = pick(self.rng, rows)
        determiner = self.rng.choices(("the", "a", "this", "my", "our", "his", "number"), (42, 20, 6, 9, 8, 8, 7))[0]
        if noun["class"] == "place" and determiner == "number":
            determiner = "the"
        if determiner == "number" and not self.has_plural(noun):
            determiner = "the"
        plural = determiner == "number" or (self.has_plural(noun) and self.chance(0.25))
        if determiner == "a" and (subject or noun["class"] == "person"):
            plural = False  # Spanish has bare plurals for things as objects alone
        quantity = self.phrase("number") if determiner == "number" else None
        if subject and plural and determiner == "the" and self.chance(0.6):
            determiner, quantity = "percent", self.phrase("percent")
        adjectives = [row for row in table("adjectives") if noun["class"] in row["nouns"].split()]
        adjective = pick(self.rng, adjectives) if determiner != "percent" and self.chance(0.22) else None
        return NounPhrase(noun, determiner, plural, adjective, quantity)

    def has_plural(self, noun: Entry) -> bool:
        """Whether the corpus uses the plural: that of the more frequent half of the nouns, and of no place."""
        rows = [row for row in table("nouns") if row["class"] == noun["class"]]
        return noun["class"] != "place" and rows.index(noun) < len(rows) / 2

    def person(self, avoid: Sequence[Entry] = (), subject: bool = False) -> Nominal:
        if self.chance(0.4):
            return Name(self.rng.choice([row for row in phrases("name") if row not in avoid]))
        return self.noun_phrase(("person",), avoid, subject)

    def pronoun(self) -> Pronoun:
        return Pronoun(self.rng.choices(("I", "he", "she", "we", "they"), (30, 15, 15, 25, 15))[0])

    def subject(self) -> Nominal:
        if self.chance(0.4):
            return self.pronoun()
        return self.person(subject=True)

    def action(self, modal: bool | None = None, time: bool | None = None) -> Clause:
        """A clause with a full verb. `modal` and `time` settle the tense and whether an adverbial of time is there."""
        subject = self.subject()
        used = [subject.noun if isinstance(subject, NounPhrase) else getattr(subject, "entry", None)]
        verb = pick(self.rng, table("verbs"))
        classes = verb["objects"].removesuffix("+to").split()
        if classes == ["city"]:
            thing: Nominal = Name(self.phrase("city"))
        elif classes == ["person"]:
            thing = self.person(used)
        else:
            thing = self.noun_phrase(classes, used)
        used.append(thing.noun if isinstance(thing, NounPhrase) else thing.entry)
        modal = self.chance(0.45) if modal is None else modal
        tense = self.rng.choice(MODAL_TENSES) if modal else "past"
        clause = Clause(subject, tense, verb, thing)
        if verb["objects"].endswith("+to"):
            clause = replace(clause, recipient=self.person(used))
        kind = self.adverbial(time, bool(clause.recipient), classes in (["place"], ["city"]))
        if kind == "place":
            return replace(clause, place=self.place())
        if kind == "companion":
            return replace(clause, companion=self.person(used))
        if kind == "manner":
            return replace(clause, manner=self.phrase("manner"))
        if kind == "time":
            return replace(clause, time=self.phrase("future" if modal else "past"))
        return clause

    def adverbial(self, time: bool | None, recipient: bool, place: bool) -> str | None:
        """The kind of a clause's one adverbial, if any; `time` asks for or rules out one of time."""
        if time:
            return "time"
        weights = {None: 20, "place": 25, "companion": 20, "manner": 6, "time": 30}
        if recipient:
            weights = {None: 60, "time": 40}
        if place:
            weights.pop("place", None)
        if time is False:
            weights.pop("time")
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def place(self) -> Nominal:
        if self.chance(0.25):
            return Name(self.phrase("city"))
        return self.noun_phrase(("place",))

    def quality(self) -> Clause:
        """A clause that says an adjective or a price of its subject."""
        if self.chance(0.35):
            subject = self.noun_phrase(("thing", "place"), subject=True)
            subject = replace(subject, determiner="the") if subject.determiner == "percent" else subject
            return Clause(subject, "present", measure=self.phrase("price"))
        subject = self.noun_phrase(("thing", "document", "abstract", "place", "person"), subject=True)
        rows = [row for row in table("adjectives") if subject.noun["class"] in row["nouns"].split()]
        rows = [row for row in rows if row != subject.adjective]
        tense = "past" if self.chance(0.3) else "present"
        return Clause(subject, tense, adjective=pick(self.rng, rows), very=self.chance(0.4))

    def any_clause(self) -> Clause:
        return self.quality() if self.chance(0.3) else self.action()

    def opinion(self, kind: str) -> Piece:
        """The clause another one hangs on: I think, the doctor said."""
        row = pick(self.rng, [row for row in table("opinions") if row["clause"] == kind])
        subject = self.pronoun() if self.chance(0.4) else self.subject()
        index = agreement(subject)
        rest = row["de_rest"]
        return {
            "en": f"{english.nominal(subject)} {row.form('en', index)}",
            "de": " ".join(filter(None, [german.nominal(subject, "nom"), row.form("de", index), rest])),
            "es": f"{spanish.nominal(subject)} {row.form('es', index)}".strip(),
            "fr": french.elide(f"{french.nominal(subject)} {row.form('fr', index)}"),
        }

    def hypothetical(self) -> Piece:
        """An if-clause; a modal verb keeps Spanish and French in the indicative."""
        clause = replace(self.action(modal=True), tense=self.rng.choice(("can", "must", "want")))
        return join(words("if", "wenn", "si", "si"), say(clause, "subordinate"))

    def front(self, clause: Clause) -> Clause:
        """The clause with its time first, half of the times it has one."""
        return replace(clause, time_first=clause.time is not None and self.chance(0.5))


# pieces


def say(clause: Clause, german_order: Order) -> Piece:
    return {language: CLAUSE[language](clause, german_order) for language in LANGUAGES}


def words(en: str, de: str, es: str, fr: str) -> Piece:
    return {"en": en, "de": de, "es": es, "fr": fr}


def join(first: Piece | Entry, second: Piece) -> Piece:
    """Both in one piece, with French elision across the seam."""
    joined = {language: f"{first[language]} {second[language]}".strip() for language in LANGUAGES}
    return {**joined, "fr": french.elide(joined["fr"])}


def mark(piece: Piece, sign: str, languages: Sequence[str] = LANGUAGES) -> Piece:
    """The piece with a punctuation mark at its end in these languages. French puts a blank before `?`, `;` and `:`."""
    marked = {language: piece[language] + sign for language in languages}
    if "fr" in marked and sign in "?;:":
        marked["fr"] = f"{piece['fr']} {sign}"
    return {**piece, **marked}


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


# frames


def statement(s: Sampler) -> list[Piece]:
    return [say(s.front(s.action(time=True)), "main")]


def that(s: Sampler) -> list[Piece]:
    opinion = mark(s.opinion("that"), ",", ("de",))
    return [opinion, join(words("that", "dass", "que", "que"), say(s.any_clause(), "subordinate"))]


def whether(s: Sampler) -> list[Piece]:
    opinion = mark(s.opinion("whether"), ",", ("de",))
    return [opinion, join(words("whether", "ob", "si", "si"), say(s.any_clause(), "subordinate"))]


def because(s: Sampler) -> list[Piece]:
    first = mark(say(s.front(s.action()), "main"), ",", ("de",))
    return [first, join(words("because", "weil", "porque", "parce que"), say(s.any_clause(), "subordinate"))]


def although(s: Sampler) -> list[Piece]:
    first = mark(say(s.action(), "main"), ",", ("de", "es"))
    return [first, join(words("although", "obwohl", "aunque", "même si"), say(s.any_clause(), "subordinate"))]


def condition(s: Sampler) -> list[Piece]:
    return [mark(s.hypothetical(), ","), say(s.action(modal=True), "inverted")]


def when(s: Sampler) -> list[Piece]:
    first = join(words("when", "als", "cuando", "quand"), say(s.action(modal=False), "subordinate"))
    return [mark(first, ","), say(s.action(modal=False, time=False), "inverted")]


def conjunction(s: Sampler) -> list[Piece]:
    first = mark(say(s.front(s.action()), "main"), ",")
    link = words("but", "aber", "pero", "mais") if s.chance(0.5) else words("and", "und", "y", "et")
    return [first, join(link, say(s.any_clause(), "main"))]


def purpose(s: Sampler) -> list[Piece]:
    first = mark(say(s.action(time=False), "main"), ",", ("de",))
    aim = say(replace(s.action(time=False), manner=None), "infinitive")
    return [first, join(words("in order", "um", "para", "pour"), aim)]


def remark(s: Sampler) -> list[Piece]:
    row = s.phrase("remark")
    second = say(s.any_clause(), "main")
    return [mark({language: row[language] for language in LANGUAGES}, ":"), {**second, "de": capital(second["de"])}]


def semicolon(s: Sampler) -> list[Piece]:
    return [mark(say(s.quality(), "main"), ";"), say(s.front(s.action()), "main")]


def question(s: Sampler) -> list[Piece]:
    """How can we ..., if ...?"""
    piece = say(replace(s.action(modal=True), subject=Pronoun("we"), tense="can"), "inverted")
    first = {
        "en": "how can we" + piece["en"].removeprefix("we can"),
        "de": "wie " + piece["de"],
        "es": "¿Cómo " + piece["es"],
        "fr": "comment pouvons-nous" + piece["fr"].removeprefix("nous pouvons"),
    }
    return [mark(first, ",", ("de",)), mark(s.hypothetical(), "?")]


def deep(s: Sampler) -> list[Piece]:
    """I think that ..., because ..."""
    first = that(s)
    first[-1] = mark(first[-1], ",", ("de",))
    return [*first, join(words("because", "weil", "porque", "parce que"), say(s.quality(), "subordinate"))]


FRAMES: tuple[tuple[Callable[[Sampler], list[Piece]], int], ...] = (
    (statement, 3),
    (that, 19),
    (whether, 9),
    (because, 15),
    (although, 5),
    (condition, 9),
    (when, 8),
    (conjunction, 8),
    (purpose, 6),
    (remark, 7),
    (semicolon, 5),
    (question, 4),
    (deep, 18),
)
