"""The mini corpus: one meaning, four grammatical sentences."""

import re
import sys
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "egs2/mustc_st_block/local"))

from mini_corpus import french, german, spanish
from mini_corpus.grammar import CLAUSE, Sampler, join, mark, say, words
from mini_corpus.lexicon import LANGUAGES, phrases, table
from mini_corpus.meaning import Clause, Name, NounPhrase, Pronoun


def row(name, en):
    return next(entry for entry in table(name) if entry.form("en", 0) == en)


def phrase(kind, en):
    return next(entry for entry in phrases(kind) if entry["en"] == en)


def np(noun, determiner="the", adjective=None, plural=False, quantity=None):
    return NounPhrase(row("nouns", noun), determiner, plural, adjective and row("adjectives", adjective), quantity)


GIVE = Clause(
    np("teacher", "the", "young"),
    "past",
    row("verbs", "give"),
    np("letter", "a", "important"),
    recipient=np("student", "my", "old"),
    time=phrase("past", "last week"),
)
WAIT = Clause(Pronoun("he"), "must", row("verbs", "wait for"), np("doctor"), place=np("garden"))
FLY = Clause(Pronoun("they"), "past", row("verbs", "fly to"), Name(phrase("city", "Vienna")))


def test_the_german_verb_is_second_first_or_last():
    assert german.clause(GIVE, "main") == (
        "der junge Lehrer hat letzte Woche meinem alten Studenten einen wichtigen Brief gegeben"
    )
    assert german.clause(GIVE, "inverted").startswith("hat der junge Lehrer letzte Woche")
    assert german.clause(GIVE, "subordinate").endswith("einen wichtigen Brief gegeben hat")
    assert german.clause(GIVE, "infinitive").endswith("einen wichtigen Brief zu geben")
    assert german.clause(WAIT, "subordinate") == "er im Garten auf den Arzt warten muss"
    assert german.clause(FLY, "main") == "sie sind nach Wien geflogen"


def test_the_other_languages_say_the_same():
    assert CLAUSE["en"](GIVE, "subordinate") == (
        "the young teacher gave an important letter to my old student last week"
    )
    assert CLAUSE["es"](GIVE, "main") == (
        "el maestro joven dio una carta importante a mi estudiante viejo la semana pasada"
    )
    assert CLAUSE["fr"](GIVE, "main") == (
        "le jeune professeur a donné une lettre importante à mon vieil étudiant la semaine dernière"
    )
    assert CLAUSE["es"](WAIT, "main") == "él tiene que esperar al médico en el jardín"
    assert CLAUSE["fr"](WAIT, "main") == "il doit attendre le médecin dans le jardin"


@pytest.mark.parametrize(
    ("meaning", "case", "expected"),
    [
        (np("book", "a", "new"), "nom", "ein neues Buch"),
        (np("car", "the", "old"), "dat", "dem alten Auto"),
        (np("camera", "our", "small"), "acc", "unsere kleine Kamera"),
        (np("child", "his", "young"), "dat", "seinem jungen Kind"),
        (np("president", "this"), "acc", "diesen Präsidenten"),
        (np("colleague", "a", "friendly"), "nom", "ein freundlicher Kollege"),
        (np("child", "number", "clever", True, phrase("number", "three")), "dat", "drei klugen Kindern"),
        (np("car", "the", "expensive", True), "dat", "den teuren Autos"),
        (np("lawyer", "percent", None, True, phrase("percent", "20")), "nom", "20 Prozent der Anwälte"),
        (np("report", "a", "simple", True), "acc", "einfache Berichte"),
    ],
)
def test_german_declension(meaning, case, expected):
    assert german.nominal(meaning, case) == expected


@pytest.mark.parametrize(
    ("meaning", "in_spanish", "in_french"),
    [
        (np("key", "this", "old"), "esta llave vieja", "cette vieille clé"),
        (np("child", "this", "young", True), "estos niños jóvenes", "ces jeunes enfants"),
        (np("computer", "this", "modern"), "este ordenador moderno", "cet ordinateur moderne"),
        (np("hospital", "a", "beautiful"), "un hospital hermoso", "un bel hôpital"),
        (np("idea", "my"), "mi idea", "mon idée"),
        (np("newspaper", "a", "new", True), "periódicos nuevos", "de nouveaux journaux"),
        (np("question", "our", "difficult", True), "nuestras preguntas difíciles", "nos questions difficiles"),
        (np("idea", "his"), "su idea", "son idée"),
    ],
)
def test_spanish_and_french_agreement(meaning, in_spanish, in_french):
    assert (spanish.nominal(meaning), french.nominal(meaning)) == (in_spanish, in_french)


@pytest.mark.parametrize(
    ("infinitive", "first", "third"),
    [
        ("explicar", "expliqué", "explicó"),
        ("llegar", "llegué", "llegó"),
        ("abrir", "abrí", "abrió"),
        ("dar", "di", "dio"),
    ],
)
def test_spanish_preterite(infinitive, first, third):
    assert (spanish.preterite(infinitive, 0), spanish.preterite(infinitive, 1)) == (first, third)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("si il parle de le plan", "s'il parle du plan"),
        ("je ai donné la clé à les amis", "j'ai donné la clé aux amis"),
        ("que elle parle à le hôpital", "qu'elle parle à l'hôpital"),
        ("parler de des plans", "parler de plans"),
        ("jusqu'à Paris avec les amis", "jusqu'à Paris avec les amis"),
    ],
)
def test_french_elision_and_contraction(text, expected):
    assert french.elide(text) == expected


def test_pieces_join_with_elision_and_french_spaces_its_marks():
    piece = join(words("whether", "ob", "si", "si"), say(WAIT, "subordinate"))
    assert piece["fr"].startswith("s'il doit")
    assert mark(piece, "?")["fr"].endswith("jardin ?") and mark(piece, ".")["fr"].endswith("jardin.")


@pytest.fixture(scope="module")
def drawn():
    sampler = Sampler(Random(3))
    return [sampler.sentence() for _ in range(2000)]


def test_sentences_are_clean_text(drawn):
    for sentence in drawn:
        for language in LANGUAGES:
            text = " ".join(piece[language] for piece in sentence)
            assert text == " ".join(text.split()) and text[-1] in ".?"
            assert text.lstrip("¿")[0].isupper() or text[0].isdigit()
            assert not re.search(r"[/_|]|None| [.,]", text), text


def test_no_contraction_or_elision_is_missed(drawn):
    for sentence in drawn:
        spanish_text, french_text = (
            " ".join(piece[language] for piece in sentence).lower() for language in ("es", "fr")
        )
        assert not re.search(r"\b(a|de) el\b", spanish_text), spanish_text
        assert not re.search(r"(?<!')\b(à|de) les?\b(?!')|\b(je|que|le|la|de) [aeéèêiouhœ]", french_text), french_text


def test_german_subordinate_clauses_end_in_a_finite_verb(drawn):
    modals = "kann|können|muss|müssen|will|wollen|werde|wird|werden"
    finite = re.compile(rf" ({modals}|habe|hat|haben|bin|ist|sind|war|waren|kostet|kosten)[.,]$")
    clauses = [
        piece["de"] for sentence in drawn for piece in sentence if re.match(r"(dass|weil|ob|obwohl) ", piece["de"])
    ]
    assert len(clauses) > 1000
    assert all(finite.search(clause) for clause in clauses)


def test_every_word_of_the_lexicon_is_used(drawn):
    said = " ".join(piece["de"] for sentence in drawn for piece in sentence)
    for entry in table("verbs"):
        assert entry["de_participle"] in said
    for entry in table("nouns"):
        assert entry.form("de", 0) in said
    for entry in table("phrases"):
        assert entry["de"].lower() in said.lower()
