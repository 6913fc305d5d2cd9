"""The console command: what it offers, how quickly, and what it says to a name that is none."""

import subprocess
import sys

import pytest

from espnet_ext.bin.espnet_simul import COMMANDS, main
from espnet_ext.cli import ArgumentParser
from espnet_ext.errors import UserError


def test_help_and_version_come_without_torch():
    for options, expected in ((["--help"], "translate "), ([], "translate "), (["--version"], "espnet-ext ")):
        script = (
            "import runpy, sys, atexit\n"
            "atexit.register(lambda: print('heavy:', {'torch', 'numpy', 'espnet2'} & set(sys.modules)))\n"
            "import espnet_ext\n"
            "runpy.run_module('espnet_ext.bin.espnet_simul', run_name='__main__')"
        )
        done = subprocess.run([sys.executable, "-c", script, *options], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and expected in done.stdout and "heavy: set()" in done.stdout, done.stderr


def test_the_help_has_a_line_for_every_command(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = capsys.readouterr().out
    assert all(f"\n  {name} " in printed for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_its_options_under_the_name_that_was_typed(name, capsys, monkeypatch):
    monkeypatch.setattr(ArgumentParser, "called", None)
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0 and capsys.readouterr().out.startswith(f"usage: espnet-simul {name} ")


@pytest.mark.parametrize(
    ("name", "message"),
    [("translat", "did you mean translate?"), ("xyz", "choose from translate, "), ("", "choose from")],
)
def test_an_unknown_command_is_told_the_nearest(name, message):
    with pytest.raises(UserError, match="unknown command") as caught:
        main([name])
    assert message in str(caught.value)


def test_an_unknown_option_is_one_line(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--modell"])
    assert ended.value.code == 2 and capsys.readouterr().err.count("\n") == 1
