"""Latency units: words, or characters for languages written without spaces.

One text must have the same number of units here, in SimulEval and in OmniSTEval. They split at the plain blank, at any
white space or into single characters depending on the tool and the text's side, so a logged text holds no blank on
which they could differ: `clean_text` sees to it.
"""

from collections.abc import Sequence

CHARACTER_LANGUAGES = frozenset({"zh", "ja"})


def uses_characters(tgt_lang: str) -> bool:
    """Whether the latency unit of the language (`zh`, `zh-TW`, `ja_JP`, ...) is the character, not the word."""
    return tgt_lang.lower().replace("_", "-").partition("-")[0] in CHARACTER_LANGUAGES


def split_units(text: str, tgt_lang: str) -> list[str]:
    """The units of `text` that have one delay each: words split at any Unicode white space, or characters.

    White space itself is never a unit.
    """
    words = text.split()
    return list("".join(words)) if uses_characters(tgt_lang) else words


def join_units(units: Sequence[str], tgt_lang: str) -> str:
    """The text of units."""
    return ("" if uses_characters(tgt_lang) else " ").join(units)


def clean_text(text: str, tgt_lang: str) -> str:
    """`text` as it is logged: words joined by single plain blanks; no blank at all where the unit is the character.

    Any other white space (no-break space, line and paragraph separators, tabs, new lines) separates words too, as for
    `split_units`, so `len(split_units(t, lang)) == len(split_units(clean_text(t, lang), lang))`.
    """
    return join_units(text.split(), tgt_lang)
