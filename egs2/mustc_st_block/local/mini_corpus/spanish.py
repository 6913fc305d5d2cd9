"""The Spanish of a meaning: agreement, preterite and periphrases, the personal a."""

import re

from mini_corpus.lexicon import Entry
from mini_corpus.meaning import Clause, Name, Nominal, NounPhrase, Order, Pronoun, agreement

PRONOUNS = {"I": "", "he": "él", "she": "ella", "we": "", "they": "ellos"}
# before the infinitive, for yo, él/ella, nosotros, ellos
PERIPHRASES = {
    "can": ("puedo", "puede", "podemos", "pueden"),
    "must": ("tengo que", "tiene que", "tenemos que", "tienen que"),
    "want": ("quiero", "quiere", "queremos", "quieren"),
    "will": ("voy a", "va a", "vamos a", "van a"),
}
PRETERITE = {"ar": ("é", "ó", "amos", "aron"), "er": ("í", "ió", "imos", "ieron"), "ir": ("í", "ió", "imos", "ieron")}
IRREGULAR = {
    "dar": ("di", "dio", "dimos", "dieron"),
    "construir": ("construí", "construyó", "construimos", "construyeron"),
    "traducir": ("traduje", "tradujo", "tradujimos", "tradujeron"),
    "conducir": ("conduje", "condujo", "condujimos", "condujeron"),
}
DETERMINERS = {
    "the": ("el", "la", "los", "las"),
    "a": ("un", "una", "", ""),
    "this": ("este", "esta", "estos", "estas"),
    "my": ("mi", "mi", "mis", "mis"),
    "our": ("nuestro", "nuestra", "nuestros", "nuestras"),
    "his": ("su", "su", "sus", "sus"),
}


def plural_form(word: str) -> str:
    if word[-1] in "aeiouéó":
        return word + "s"
    if word.endswith("z"):
        return word[:-1] + "ces"
    if word.endswith("ón"):
        return word[:-2] + "ones"
    return word + "es"


def noun(entry: Entry, plural: bool) -> str:
    singular = entry.form("es", 0)
    if not plural:
        return singular
    return entry.form("es", 1) if entry.has("es", 1) else plural_form(singular)


def adjective(entry: Entry, feminine: bool, plural: bool) -> str:
    """The adjective in agreement with its noun; a cell lists masculine/feminine/plural where the rule fails."""
    word = entry.form("es", 0)
    if plural and entry.has("es", 2):
        return entry.form("es", 2)
    if feminine and word.endswith("o"):
        word = word[:-1] + "a"
    return plural_form(word) if plural else word


def nominal(meaning: Nominal) -> str:
    if isinstance(meaning, Name):
        return meaning.entry["es"]
    if isinstance(meaning, Pronoun):
        return PRONOUNS[meaning.word]
    feminine = meaning.noun["es_gender"] == "f"
    word = noun(meaning.noun, meaning.plural)
    quality = adjective(meaning.adjective, feminine, meaning.plural) if meaning.adjective else ""
    return " ".join(filter(None, [_determiner(meaning, feminine), word, quality]))


def _determiner(meaning: NounPhrase, feminine: bool) -> str:
    match meaning.determiner:
        case "number":
            return meaning.quantity["es"]
        case "percent":
            return f"el {meaning.quantity['es']} por ciento de {'las' if feminine else 'los'}"
        case word:
            return DETERMINERS[word][2 * meaning.plural + feminine]


def preterite(infinitive: str, row: int) -> str:
    if infinitive in IRREGULAR:
        return IRREGULAR[infinitive][row]
    stem, ending = infinitive[:-2], PRETERITE[infinitive[-2:]][row]
    if ending == "é":
        stem = re.sub("z$", "c", re.sub("g$", "gu", re.sub("c$", "qu", stem)))
    return stem + ending


def clause(meaning: Clause, order: Order) -> str:
    """The clause's words; a subject that is I or we shows in the verb alone."""
    subject = nominal(meaning.subject)
    if meaning.verb is None:
        return f"{subject} {_copula(meaning)}"
    row = agreement(meaning.subject)
    infinitive = meaning.verb["es"]
    if order == "infinitive":
        subject, verb = "", infinitive
    elif meaning.tense == "past":
        verb = preterite(infinitive, row)
    else:
        verb = f"{PERIPHRASES[meaning.tense][row]} {infinitive}"
    time = meaning.time["es"] if meaning.time else ""
    preposition = meaning.verb["es_governs"] or ("a" if meaning.object.human else "")
    parts = [
        time if meaning.time_first else "",
        subject,
        verb,
        preposition,
        nominal(meaning.object),
        f"a {nominal(meaning.recipient)}" if meaning.recipient else "",
        meaning.manner["es"] if meaning.manner else "",
        f"con {nominal(meaning.companion)}" if meaning.companion else "",
        f"en {nominal(meaning.place)}" if meaning.place else "",
        "" if meaning.time_first else time,
    ]
    return contract(" ".join(filter(None, parts)))


def contract(text: str) -> str:
    """a el -> al, de el -> del."""
    return re.sub(r"\b(a|de) el\b", lambda match: {"a": "al", "de": "del"}[match[1]], text)


def _copula(meaning: Clause) -> str:
    plural = meaning.subject.plural
    if meaning.measure:
        return f"{'cuestan' if plural else 'cuesta'} {meaning.measure['es']}"
    past = meaning.tense == "past"
    verb = ("eran" if past else "son") if plural else ("era" if past else "es")
    feminine = isinstance(meaning.subject, NounPhrase) and meaning.subject.noun["es_gender"] == "f"
    quality = adjective(meaning.adjective, feminine, plural)
    return " ".join(filter(None, [verb, "muy" if meaning.very else "", quality]))
