"""What is done to every line of text, and the words in which the report says so."""

import re
import unicodedata

JOINERS = "\u200c\u200d"  # zero-width, but they change how their neighbours are written
LOST = "\ufffd"  # stands for a character that some program before could not read


class _Hygiene(dict):
    """For `str.translate`: white space of any kind to a blank; control and format characters but joiners to nothing."""

    def __missing__(self, code: int) -> int | str | None:
        char = chr(code)
        if char.isspace():
            kept = " "
        elif unicodedata.category(char) in ("Cc", "Cf") and char not in JOINERS:
            kept = None
        else:
            kept = code
        return self.setdefault(code, kept)


class _Letters(dict):
    """For `str.translate`: all but letters, marks, digits and the apostrophe to a blank."""

    def __missing__(self, code: int) -> int | str:
        char = chr(code)
        return self.setdefault(code, code if char == "'" or unicodedata.category(char)[0] in "LMN" else " ")


_HYGIENE, _LETTERS = _Hygiene(), _Letters()


def clean(text: str) -> str:
    """Unicode NFC, every run of white space one blank, none at the ends, no invisible characters."""
    return " ".join(unicodedata.normalize("NFC", text.translate(_HYGIENE)).split())


def changes(text: str) -> list[str]:
    """What `clean` changes in a line, for example `U+00A0 to blank`, and what in it needs a look."""
    found = []
    for char in sorted(set(text)):
        kept = _HYGIENE[ord(char)]
        if kept != ord(char) and char != " ":
            found.append(f"U+{ord(char):04X} {'removed' if kept is None else 'to blank'}")
    if not unicodedata.is_normalized("NFC", text):
        found.append("to NFC")
    translated = text.translate(_HYGIENE)
    if " ".join(translated.split()) != translated:
        found.append("double, leading or trailing blanks")
    if LOST in text:
        found.append("U+FFFD kept: a lost character")
    return found


def lower_without_punctuation(text: str) -> str:
    """`lc.rm`: lower case; only letters, marks, digits and apostrophes inside words stay."""
    text = unicodedata.normalize("NFC", text).lower().replace("’", "'").translate(_LETTERS)
    return " ".join(re.sub(r"(?<!\w)'|'(?!\w)", " ", text).split())
