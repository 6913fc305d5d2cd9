"""The German of a meaning: declension, and the verb second, first or last."""

import re

from mini_corpus.lexicon import Entry
from mini_corpus.meaning import Clause, Name, Nominal, NounPhrase, Order, Pronoun, agreement

PRONOUNS = {"I": "ich", "he": "er", "she": "sie", "we": "wir", "they": "sie"}
# finite forms for ich, er/sie, wir, sie
FINITE = {
    "can": ("kann", "kann", "können", "können"),
    "must": ("muss", "muss", "müssen", "müssen"),
    "want": ("will", "will", "wollen", "wollen"),
    "will": ("werde", "wird", "werden", "werden"),
    "haben": ("habe", "hat", "haben", "haben"),
    "sein": ("bin", "ist", "sind", "sind"),
}
CASES = ("nom", "acc", "dat")
# articles by gender (m, f, n, plural) and case
DER = {"m": ("der", "den", "dem"), "f": ("die", "die", "der"), "n": ("das", "das", "dem"), "p": ("die", "die", "den")}
DIESER = {"m": ("er", "en", "em"), "f": ("e", "e", "er"), "n": ("es", "es", "em"), "p": ("e", "e", "en")}
EIN = {"m": ("", "en", "em"), "f": ("e", "e", "er"), "n": ("", "", "em"), "p": ("e", "e", "en")}
AFTER_DER = {"m": ("e", "en", "en"), "f": ("e", "e", "en"), "n": ("e", "e", "en"), "p": ("en", "en", "en")}
AFTER_EIN = {"m": ("er", "en", "en"), "f": ("e", "e", "en"), "n": ("es", "es", "en"), "p": ("en", "en", "en")}
BARE_PLURAL = ("e", "e", "en")
CONTRACTIONS = {"in dem": "im", "an dem": "am", "von dem": "vom"}


def gender(entry: Entry) -> str:
    kind = entry["de_gender"]
    return "m" if kind.startswith("weak") else kind


def noun(entry: Entry, plural: bool, case: str) -> str:
    if plural:
        form = entry.form("de", 1)
        return form + "n" if case == "dat" and not form.endswith(("n", "s")) else form
    ending = {"weak": "en", "weak-n": "n"}.get(entry["de_gender"], "")
    return entry.form("de", 0) + (ending if case != "nom" else "")


def nominal(meaning: Nominal, case: str) -> str:
    """The noun phrase in the case `nom`, `acc` or `dat`."""
    if isinstance(meaning, Name):
        return meaning.entry["de"]
    if isinstance(meaning, Pronoun):
        return PRONOUNS[meaning.word]
    column = CASES.index(case)
    kind = "p" if meaning.plural else gender(meaning.noun)
    determiner, adjective_ending = _determiner(meaning, kind, column)
    if meaning.determiner == "percent":
        case = "nom"  # a genitive plural, which in the noun itself looks like the nominative
    adjective = meaning.adjective.form("de", 1) + adjective_ending if meaning.adjective else ""
    return " ".join(filter(None, [determiner, adjective, noun(meaning.noun, meaning.plural, case)]))


def _determiner(meaning: NounPhrase, kind: str, column: int) -> tuple[str, str]:
    """The determiner and the ending it leaves to the adjective."""
    match meaning.determiner:
        case "the":
            return DER[kind][column], AFTER_DER[kind][column]
        case "this":
            return "dies" + DIESER[kind][column], AFTER_DER[kind][column]
        case "percent":
            return f"{meaning.quantity['de']} Prozent der", "en"
        case "number":
            return meaning.quantity["de"], BARE_PLURAL[column]
        case "a" if kind == "p":
            return "", BARE_PLURAL[column]
        case "a" | "my" | "our" | "his" as word:
            stem = {"a": "ein", "my": "mein", "our": "unser", "his": "sein"}[word]
            return stem + EIN[kind][column], AFTER_EIN[kind][column]


def clause(meaning: Clause, order: Order) -> str:
    """The clause with its finite verb second (`main`), first (`inverted`) or last (`subordinate`); or zu-infinitive."""
    subject = nominal(meaning.subject, "nom")
    finite, rest, middle = _verb(meaning)
    time = meaning.time["de"] if meaning.time else ""
    if order == "infinitive":
        parts = [time, *middle, _zu(meaning.verb["de"])]
    elif order == "subordinate":
        parts = [subject, time, *middle, rest, finite]
    elif order == "inverted":
        parts = [finite, subject, time, *middle, rest]
    elif meaning.time_first:
        parts = [time, finite, subject, *middle, rest]
    else:
        parts = [subject, finite, time, *middle, rest]
    text = " ".join(filter(None, parts))
    return re.sub(r"\b(in|an|von) dem\b", lambda match: CONTRACTIONS[match[0]], text)


def _verb(meaning: Clause) -> tuple[str, str, list[str]]:
    """The finite verb, the participle or infinitive, and the middle field between them."""
    row = agreement(meaning.subject)
    if meaning.verb is None:
        return _copula(meaning)
    verb = meaning.verb
    motion = verb["objects"] == "city"
    last = motion or " " in verb["de_governs"]  # an object with a preposition stands next to the verb
    middle = [
        nominal(meaning.recipient, "dat") if meaning.recipient else "",
        "" if last else _object(meaning),
        f"mit {nominal(meaning.companion, 'dat')}" if meaning.companion else "",
        f"in {nominal(meaning.place, 'dat')}" if meaning.place else "",
        meaning.manner["de"] if meaning.manner else "",
        _object(meaning) if last else "",
    ]
    if meaning.tense == "past":
        return FINITE["sein" if motion else "haben"][row], verb["de_participle"], middle
    return FINITE[meaning.tense][row], verb["de"].replace("_", ""), middle


def _object(meaning: Clause) -> str:
    """The object in the case its verb governs: `acc` when nothing is said, `dat`, or a preposition with a case."""
    *preposition, case = (meaning.verb["de_governs"] or "acc").split()
    if case == "nach":
        return f"nach {nominal(meaning.object, 'dat')}"
    return " ".join([*preposition, nominal(meaning.object, case)])


def _zu(infinitive: str) -> str:
    prefix, separable, stem = infinitive.rpartition("_")
    return f"{prefix}zu{stem}" if separable else f"zu {stem}"


def _copula(meaning: Clause) -> tuple[str, str, list[str]]:
    plural = meaning.subject.plural
    if meaning.measure:
        return ("kosten" if plural else "kostet"), "", [meaning.measure["de"]]
    forms = ("war", "waren") if meaning.tense == "past" else ("ist", "sind")
    return forms[plural], "", ["sehr" if meaning.very else "", meaning.adjective.form("de", 0)]
