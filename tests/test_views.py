"""The growing text on a terminal: what stands on the screen after each update, in narrow and low ones too."""

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from espnet_ext.views import TerminalLines


def screen(output):
    """All lines of a terminal, those scrolled away too, after it was sent `output`: text, \\n, \\r, erase and up."""
    lines, row, column = [""], 0, 0
    for sequence, char in re.findall(r"\x1b\[([\d;?]*[A-Za-z])|(.)", output, re.DOTALL):
        if sequence == "2K":
            lines[row] = ""
        elif sequence.endswith("A"):
            row -= int(sequence[:-1] or 1)
        elif char == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif char == "\r":
            column = 0
        elif char:
            lines[row] = lines[row][:column].ljust(column) + char
            column += 1
    return [line.rstrip() for line in lines]


@pytest.fixture
def shown():
    """Sends updates (released so far, unstable) to a terminal of a size; the screen after each and after the end."""

    def call(updates, width, height, tgt_lang="de"):
        file = io.StringIO()
        console = Console(file=file, force_terminal=True, width=width, height=height, legacy_windows=False)
        view = TerminalLines(console)
        screens, released = [], 0
        session = SimpleNamespace(config=SimpleNamespace(tgt_lang=tgt_lang))
        for units, unstable in updates:
            view.update(session, SimpleNamespace(units=units[released:], unstable=unstable))
            released = len(units)
            screens.append("\n".join(screen(file.getvalue())).rstrip())
        view.end()
        return screens, "\n".join(screen(file.getvalue())).rstrip()

    return call


def grown(text, ahead):
    """Updates that release `text` word by word with `ahead` unstable words."""
    words = text.split()
    return [(words[:end], " ".join(words[end : end + ahead])) for end in range(len(words) + 1)]


TEXT = "Er sieht, dass Daniel kommt. " + "Sie sagt nichts und geht dann wieder fort, " * 6 + "sehr spät. Ende"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (20, 5), (9, 2)])
@pytest.mark.parametrize("ahead", [0, 3, 40])
def test_what_is_released_stays_and_a_sentence_begins_a_line(shown, width, height, ahead):
    screens, final = shown(grown(TEXT, ahead), width, height)
    assert final.split() == TEXT.split()
    assert "kommt.\nSie" in final and "spät.\nEnde" in final
    assert all(len(line) <= width for line in final.splitlines())
    for (units, unstable), text in zip(grown(TEXT, ahead), screens, strict=True):
        expected = [*units, *unstable.split()]
        assert text.split()[-1:] == expected[-1:]
        if len(unstable) < width * (height - 3):
            assert text.split() == expected


def test_the_rest_is_replaced_in_place(shown):
    screens, final = shown([([], "eins zwei drei vier fünf"), (["ein"], "zwei"), (["ein", "Wort"], "")], 12, 10)
    assert screens == ["eins zwei\ndrei vier\nfünf", "ein zwei", "ein Wort"] and final == "ein Wort"


def test_characters_stand_without_blanks_and_fill_the_width(shown):
    text = "字" * 25
    _, final = shown([(list(text[:end]), text[end:]) for end in range(26)], 20, 5, "zh")
    assert final.splitlines() == ["字" * 10, "字" * 10, "字" * 5]
