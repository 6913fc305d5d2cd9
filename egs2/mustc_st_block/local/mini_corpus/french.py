"""The French of a meaning: agreement, passé composé and periphrases, elision and contraction."""

import re

from mini_corpus.lexicon import Entry
from mini_corpus.meaning import Clause, Name, Nominal, NounPhrase, Order, Pronoun, agreement

PRONOUNS = {"I": "je", "he": "il", "she": "elle", "we": "nous", "they": "ils"}
# before the infinitive, for je, il/elle, nous, ils
PERIPHRASES = {
    "can": ("peux", "peut", "pouvons", "peuvent"),
    "must": ("dois", "doit", "devons", "doivent"),
    "want": ("veux", "veut", "voulons", "veulent"),
    "will": ("vais", "va", "allons", "vont"),
}
AVOIR = ("ai", "a", "avons", "ont")
DETERMINERS = {
    "the": ("le", "la", "les"),
    "a": ("un", "une", "des"),
    "this": ("ce", "cette", "ces"),
    "my": ("mon", "ma", "mes"),
    "our": ("notre", "notre", "nos"),
    "his": ("son", "sa", "ses"),
}
VOWEL = "aàâeéèêiîoôuûyhœ"
ELISIONS = re.compile(rf"\b(le|la|je|que|de) (?=[{VOWEL}])", re.IGNORECASE)
CONTRACTIONS = {"à le": "au", "à les": "aux", "de le": "du", "de les": "des"}


def plural_form(word: str) -> str:
    if word.endswith(("s", "x")):
        return word
    if word.endswith(("eau", "al")):
        return word[:-1] + "ux" if word.endswith("al") else word + "x"
    return word + "s"


def vowel(word: str) -> bool:
    return word[0].lower() in VOWEL


def adjective(entry: Entry, feminine: bool, plural: bool, following: str = "") -> str:
    """The adjective in agreement with its noun; a third form stands before a masculine noun with a vowel."""
    if not feminine and not plural and entry.has("fr", 2) and following and vowel(following):
        return entry.form("fr", 2)
    word = entry.form("fr", int(feminine))
    return plural_form(word) if plural else word


def nominal(meaning: Nominal) -> str:
    if isinstance(meaning, Name):
        return meaning.entry["fr"]
    if isinstance(meaning, Pronoun):
        return PRONOUNS[meaning.word]
    feminine = meaning.noun["fr_gender"] == "f"
    word = plural_form(meaning.noun["fr"]) if meaning.plural else meaning.noun["fr"]
    words = [word]
    if meaning.adjective:
        before = meaning.adjective["fr_place"] == "pre"
        quality = adjective(meaning.adjective, feminine, meaning.plural, word if before else "")
        words = [quality, word] if before else [word, quality]
    return " ".join([_determiner(meaning, feminine, words[0]), *words])


def _determiner(meaning: NounPhrase, feminine: bool, following: str) -> str:
    match meaning.determiner:
        case "number":
            return meaning.quantity["fr"]
        case "percent":
            return f"{meaning.quantity['fr']} pour cent des"
        case "a" if meaning.plural and meaning.adjective and meaning.adjective["fr_place"] == "pre":
            return "de"
        case "this" if not meaning.plural and not feminine and vowel(following):
            return "cet"
        case "my" | "his" as word if not meaning.plural and feminine and vowel(following):
            return {"my": "mon", "his": "son"}[word]
        case word:
            return DETERMINERS[word][2 if meaning.plural else int(feminine)]


def clause(meaning: Clause, order: Order) -> str:
    """The clause's words, elided and contracted."""
    subject = nominal(meaning.subject)
    if meaning.verb is None:
        return elide(f"{subject} {_copula(meaning)}")
    row = agreement(meaning.subject)
    infinitive = meaning.verb["fr"]
    if order == "infinitive":
        subject, verb = "", infinitive
    elif meaning.tense == "past":
        verb = f"{AVOIR[row]} {meaning.verb['fr_participle']}"
    else:
        verb = f"{PERIPHRASES[meaning.tense][row]} {infinitive}"
    time = meaning.time["fr"] if meaning.time else ""
    parts = [
        f"{time}," if meaning.time_first else "",
        subject,
        verb,
        meaning.verb["fr_governs"],
        nominal(meaning.object),
        f"à {nominal(meaning.recipient)}" if meaning.recipient else "",
        meaning.manner["fr"] if meaning.manner else "",
        f"avec {nominal(meaning.companion)}" if meaning.companion else "",
        _place(meaning.place) if meaning.place else "",
        "" if meaning.time_first else time,
    ]
    return elide(" ".join(filter(None, parts)))


def _place(meaning: Nominal) -> str:
    return f"{'à' if isinstance(meaning, Name) else 'dans'} {nominal(meaning)}"


def elide(text: str) -> str:
    """que elle -> qu'elle, le hôpital -> l'hôpital, si il -> s'il, de des -> de; then à le -> au, de les -> des."""
    text = re.sub(r"\bde des\b", "de", text)
    text = re.sub(r"\bsi (?=ils?\b)", "s'", text)
    text = ELISIONS.sub(lambda match: match[1][:-1] + "'", text)
    return re.sub(r"(?<![\w'])(à|de) les?\b(?!')", lambda match: CONTRACTIONS[match[0]], text)


def _copula(meaning: Clause) -> str:
    plural = meaning.subject.plural
    if meaning.measure:
        return f"{'coûtent' if plural else 'coûte'} {meaning.measure['fr']}"
    past = meaning.tense == "past"
    verb = ("étaient" if past else "sont") if plural else ("était" if past else "est")
    feminine = isinstance(meaning.subject, NounPhrase) and meaning.subject.noun["fr_gender"] == "f"
    quality = adjective(meaning.adjective, feminine, plural)
    return " ".join(filter(None, [verb, "très" if meaning.very else "", quality]))
