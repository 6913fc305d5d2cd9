import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_hygiene import changes, clean, lower_without_punctuation

BLANKS = "\t\v\f\r\x1c\x85\xa0\u1680\u2000\u2009\u2028\u2029\u202f\u205f\u3000"
UNSEEN = "\ufeff\u200b\u200e\u202e\u2060\xad\0\a\x7f\x9f"


@pytest.mark.parametrize("blank", BLANKS)
def test_every_kind_of_white_space_becomes_one_blank(blank):
    assert clean(f"{blank}ein{blank}{blank}Wort ") == "ein Wort"


@pytest.mark.parametrize("char", UNSEEN)
def test_what_cannot_be_seen_is_removed(char):
    assert clean(f"{char}Wo{char}rt{char}") == "Wort"
    assert changes(f"Wo{char}rt") == [f"U+{ord(char):04X} removed"]


def test_letters_that_meet_when_an_invisible_one_goes_are_composed():
    assert clean("e\xad\u0301") == "é"


def test_what_has_a_meaning_stays():
    for text in ("naïve – “Größe” … 50 % ♫ (Gelächter)", "می\u200cخواهم", "中文，标点。", "Ș ț Ş ţ ё й"):
        assert clean(text) == unicodedata.normalize("NFC", text) == text
        assert changes(text) == []


@given(st.text())
def test_clean_is_stable_and_every_change_is_named(text):
    once = clean(text)
    assert clean(once) == once
    assert "  " not in once and "\n" not in once and once == once.strip()
    assert (once != text) <= bool(changes(text))
    if once == text and "\ufffd" not in text:
        assert changes(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It’s “fine” — isn't it?", "it's fine isn't it"),
        ("'Tis the boys' well-known café…", "tis the boys well known café"),
        ("(Applause)", "applause"),
        ("♫ ♫", ""),
    ],
)
def test_punctuation(text, expected):
    assert lower_without_punctuation(text) == expected
