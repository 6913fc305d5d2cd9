"""The pages of docs/ for users: links, tables and every block of code, on tiny models under the names that they use."""

import contextlib
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import pytest
import soundfile
import yaml

from espnet_ext.bin import espnet_simul
from espnet_ext.cli import ArgumentParser
from espnet_ext.config import POLICIES, SEARCHES
from espnet_ext.evaluation.latency import latency
from espnet_ext.log.clocks import Step, finish_times

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = ("terminal", "policies", "metrics", "own_model", "own_policy", "troubleshooting")
MODEL = "st_block40.en-de"


def read(page):
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", read(page), re.M | re.DOTALL)


def tables(page, head):
    """The rows below each line of the page that begins with `head`, as lists of cells."""
    for part in re.findall(rf"^{re.escape(head)}.*\n\|[-:| ]+\n((?:\|.*\n)+)", read(page), re.M):
        yield [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()]


def table(page, head):
    """The rows of the page's one such table."""
    (rows,) = tables(page, head)
    return rows


@pytest.fixture(scope="module")
def recipe(tmp_path_factory, tiny_paths, speech):
    """What the pages expect in the recipe's directory, small."""
    place = tmp_path_factory.mktemp("recipe")
    trained = Path(tiny_paths["st_train_config"]).parent
    (place / "exp" / "packed").mkdir(parents=True)
    (place / "data").mkdir()
    shutil.copytree(trained, place / "exp" / MODEL)  # check_attention writes into it
    with ZipFile(place / "exp" / "packed" / f"{MODEL}.zip", "w") as archive:
        for path in trained.iterdir():
            archive.write(path, path.name)
    for name in ("dev", "tst-COMMON"):
        data = place / "data" / f"{name}.en-de"
        data.mkdir()
        soundfile.write(data / "a.wav", speech(5), 16000)
        (data / "wav.scp").write_text(f"a {data}/a.wav\n")
        (data / "segments").write_text("a1 a 0 2.5\na2 a 2.5 5\n")
        (data / "text.tc.de").write_text("a1 ein kleines Haus\na2 der Hund schläft\n")
    soundfile.write(place / "talk.wav", speech(4), 16000)
    (place / "hold6.yaml").write_text(blocks("policies", "yaml")[0])
    (place / "my_policy.py").write_text(blocks("own_policy", "python")[0])
    return place


def commands(block):
    """Each command of a block of bash as words; of `cat FILE | COMMAND` also the file."""
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        source = None
        if words[:1] == ["cat"]:
            source, words = words[1], words[words.index("|") + 1 :]
        if words:
            yield words, source


@contextlib.contextmanager
def standard_input(path):
    if path is None:
        yield
        return
    before = os.dup(0)
    with open(path, "rb") as file:
        os.dup2(file.fileno(), 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_bash_run(page, recipe, monkeypatch, capfd):
    monkeypatch.chdir(recipe)
    monkeypatch.setattr(sys, "path", [str(recipe), *sys.path])
    monkeypatch.setattr(ArgumentParser, "called", None)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: False))
    modules = {f"espnet_ext.bin.{module}": name for name, (module, _) in espnet_simul.COMMANDS.items()}
    for block in blocks(page, "bash"):
        for words, source in commands(block):
            if words[:2] == ["python", "-m"]:
                words = ["espnet-simul", modules[words[2]], *words[3:]]
            assert words[0] == "espnet-simul", words
            with standard_input(source):
                assert not espnet_simul.main(words[1:]), words
            assert any(capfd.readouterr()), words


@pytest.mark.parametrize("page", ["metrics", "own_model", "own_policy"])
def test_the_blocks_of_python_run_and_print_what_they_say(page, recipe, monkeypatch, capsys):
    monkeypatch.chdir(recipe)
    monkeypatch.setattr(sys, "path", [str(recipe), *sys.path])
    for block in blocks(page, "python"):
        exec(block, {})
        expected = re.findall(r"print\(.*# (.*)$", block, re.M)
        assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page):
    def anchors(path):
        titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.M)
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

    for target in re.findall(r"\]\(([^):]+)\)", read(page)):
        name, _, anchor = target.partition("#")
        path = (DOCS / name).resolve() if name else DOCS / f"{page}.md"
        assert path.exists() and (not anchor or anchor in anchors(path)), target


def number(cell):
    return None if cell == "undefined" else float(cell)


def test_the_golden_values_are_the_codes():
    names = ("AL", "LAAL", "AP", "DAL", "YAAL")
    rows = table("metrics", "| X | R | delays")
    assert len(rows) == 6
    for source, reference, delays, *values in rows:
        computed = latency([float(delay) for delay in delays.split(",") if delay], float(source), int(reference))
        expected = dict(zip(names, map(number, values), strict=True))
        assert computed == pytest.approx(expected, abs=0.005)


def test_the_clocks_and_the_inversion_are_the_codes():
    steps = [Step(1000, 1500, 0), Step(2000, 200, 0), Step(3000, 100, 0)]
    for clock, ready in table("metrics", "| clock | ready at"):
        assert finish_times(steps, clock) == [float(time) for time in ready.split(",")]
    plain, late = ([100] * 5 + [end] * 5 for end in (999, 1001))
    assert [round(latency(times, 1000, 10)["LAAL"], 2) for times in (plain, late)] == [99.5, 0.17]
    assert "LAAL is 99.5 and LAAL_CA 0.17" in " ".join(read("metrics").split())


def test_the_tables_name_every_search_and_policy():
    searches, policies = (
        {name for row in table("policies", head) for name in re.findall(r"^`(\w+)`", row[0])}
        for head in ("| value | what it does", "| value | stable is")
    )
    assert searches == set(SEARCHES) and policies == set(POLICIES)


def test_the_figures_of_policies_are_those_of_the_results():
    results = (ROOT / "egs2" / "mustc_st_block" / "RESULTS.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in results.splitlines() if "|" in line]
    (header,) = [cells for cells in lines if cells[:4] == ["set", "model", "search", "policy"]]
    found = {}
    for cells in lines:
        row = dict(zip(header, cells, strict=False))
        if (row["set"], row.get("model")) == ("tst-COMMON.en-de", "st_block40.en-de"):
            found[row["search"], row["policy"]] = (row["BLEU"], row["LAAL"], row["words at end (%)"])
    for search, policy, *figures in table("policies", "| search | policy | BLEU"):
        assert found[search, policy] == tuple(figures)


def test_the_terminal_page_names_every_command():
    rows = {tuple(re.findall(r"`(.*?)`", cell)[0] for cell in row) for row in table("terminal", "| `espnet-simul` |")}
    assert rows == {(name, module) for name, (module, _) in espnet_simul.COMMANDS.items()}


def test_an_example_is_a_config_that_can_be():
    from espnet_ext.config import make_config

    for block in blocks("policies", "yaml"):
        make_config(yaml.safe_load(block))


def test_the_lines_of_troubleshooting_are_lines_that_commands_say():
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "espnet_ext").rglob("*.py"))
    source = re.sub(r'"\s*f?"', "", source)
    lines = [row[0] for rows in tables("troubleshooting", "| the line says") for row in rows]
    lines += re.findall(r"^- \*{0,2}`(.*?)`", read("troubleshooting"), re.M)
    assert len(lines) > 25
    for line in lines:
        for said in re.findall(r"`(.*?)`", line) or [line]:
            for piece in re.split(r"\.\.\.|MODULE:CLASS|\b[NM]\b|\d+|meta.yaml|st_train_config", said):
                assert piece.strip(" :;") in source, said
