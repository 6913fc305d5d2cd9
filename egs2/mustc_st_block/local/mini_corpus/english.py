"""The English of a meaning: subject, verb, object, recipient, manner, place, time."""

from mini_corpus.lexicon import Entry
from mini_corpus.meaning import Clause, Name, Nominal, NounPhrase, Order, Pronoun, agreement

MODALS = {"can": "can", "must": "must", "will": "will"}


def noun(entry: Entry, plural: bool) -> str:
    singular = entry.form("en", 0)
    if not plural:
        return singular
    if entry.has("en", 1):
        return entry.form("en", 1)
    if singular.endswith(("s", "x", "ch")):
        return singular + "es"
    if singular.endswith("y") and singular[-2] not in "aeo":
        return singular[:-1] + "ies"
    return singular + "s"


def nominal(meaning: Nominal) -> str:
    if isinstance(meaning, Name):
        return meaning.entry["en"]
    if isinstance(meaning, Pronoun):
        return meaning.word
    words = [meaning.adjective["en"]] if meaning.adjective else []
    words.append(noun(meaning.noun, meaning.plural))
    return " ".join(filter(None, [_determiner(meaning, words[0]), *words]))


def _determiner(meaning: NounPhrase, following: str) -> str:
    match meaning.determiner:
        case "a":
            if meaning.plural:
                return ""
            return "an" if following[0] in "aeio" else "a"
        case "this":
            return "these" if meaning.plural else "this"
        case "number":
            return meaning.quantity["en"]
        case "percent":
            return f"{meaning.quantity['en']} percent of the"
        case word:
            return word


def clause(meaning: Clause, order: Order) -> str:
    """The clause's words without capital or full stop; every `order` but the infinitive's is the same in English."""
    subject = nominal(meaning.subject)
    if meaning.verb is None:
        return f"{subject} {_copula(meaning)}"
    subject_first = not (meaning.time and meaning.time_first)
    third_singular = agreement(meaning.subject) == 1
    infinitive = meaning.verb.form("en", 0)
    if order == "infinitive":
        subject, verb = "", f"to {infinitive}"
    elif meaning.tense == "past":
        verb = meaning.verb.form("en", 1)
    elif meaning.tense == "want":
        verb = f"{'wants' if third_singular else 'want'} to {infinitive}"
    else:
        verb = f"{MODALS[meaning.tense]} {infinitive}"
    parts = [
        "" if subject_first else f"{meaning.time['en']},",
        subject,
        verb,
        nominal(meaning.object),
        f"to {nominal(meaning.recipient)}" if meaning.recipient else "",
        meaning.manner["en"] if meaning.manner else "",
        f"with {nominal(meaning.companion)}" if meaning.companion else "",
        _place(meaning.place) if meaning.place else "",
        meaning.time["en"] if meaning.time and subject_first else "",
    ]
    return " ".join(filter(None, parts))


def _place(meaning: Nominal) -> str:
    return f"in {nominal(meaning)}"


def _copula(meaning: Clause) -> str:
    plural = meaning.subject.plural
    if meaning.measure:
        return f"{'cost' if plural else 'costs'} {meaning.measure['en']}"
    past = meaning.tense == "past"
    verb = ("were" if past else "are") if plural else ("was" if past else "is")
    return " ".join(filter(None, [verb, "very" if meaning.very else "", meaning.adjective["en"]]))
