import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omnisteval.data import Instance as OmniInstance

from espnet_ext.log.units import clean_text, split_units

BLANKS = "".join(char for char in map(chr, range(0x3001)) if char.isspace())
texts = st.text(st.sampled_from("ab.你好ü" + BLANKS) | st.characters(exclude_categories=["Cs"]), max_size=30)


@pytest.mark.parametrize(
    ("lang", "text", "units"),
    [
        ("de", "with" + "out", ["without"]),
        ("de", "5\u00a0% mehr", ["5", "%", "mehr"]),
        ("de", "a\nb\u2028c\u3000d  e ", ["a", "b", "c", "d", "e"]),
        ("zh", "我 喜欢你\n", list("我喜欢你")),
        ("ja_JP", "あ\u3000い", ["あ", "い"]),
        ("de", " \u00a0 ", []),
    ],
)
def test_units(lang, text, units):
    assert split_units(text, lang) == units


@given(texts, st.sampled_from(["de", "zh"]))
def test_clean_text_keeps_the_units(text, lang):
    assert split_units(clean_text(text, lang), lang) == split_units(text, lang)


@given(texts, st.sampled_from(["de", "zh"]))
def test_simuleval_and_omnisteval_count_the_units_of_a_clean_text(text, lang):
    """SimulEval splits words at the plain blank; OmniSTEval does so in references and at any white space elsewhere."""
    clean = clean_text(text, lang)
    units = len(split_units(text, lang))
    if lang == "zh":
        assert len(list(clean)) == units
        assert OmniInstance.string_to_len(clean, "char") == units
    else:
        assert len(clean.split()) == units
        assert OmniInstance.string_to_len(clean, "word") == max(units, 1)  # "" counts as one word there


def test_clean_text_leaves_composed_characters_alone():
    text = unicodedata.normalize("NFD", "Wörter")
    assert clean_text(text, "de") == text
