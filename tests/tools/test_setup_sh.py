import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("bash", "env", "dirname", "sha256sum", "cut", "tr", "cat", "flock", "grep", "rm", "mv", "tee", "awk", "sh")


def stub(path, code):
    path.write_text(f"#!/bin/sh\n{code}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path):
    """A copy of the set-up in a directory without an environment, and a PATH without any Python."""
    (tmp_path / "tools").mkdir()
    for name in ("tools/setup.sh", "tools/requirements.lock", "tools/check_environment.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    for name in NEEDED:
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    return tmp_path


def set_up(checkout, **variables):
    environment = {"PATH": str(checkout / "bin"), "HOME": str(checkout)} | variables
    return subprocess.run(
        [checkout / "tools" / "setup.sh"], env=environment, capture_output=True, text=True, check=False
    )


def make_ready(checkout):
    """What a finished set-up leaves, with a stub for its python."""
    (checkout / ".venv" / "bin").mkdir(parents=True)
    stub(checkout / ".venv" / "bin" / "python", "exit 0")
    digest = "".join(
        subprocess.run(["sha256sum", checkout / name], capture_output=True, text=True, check=True).stdout.split()[0]
        for name in ("tools/requirements.lock", "pyproject.toml")
    )
    (checkout / ".venv" / ".requirements.sha256").write_text(digest + "\n", encoding="utf-8")


def test_without_a_python_it_says_in_one_line_what_to_install(checkout):
    stub(checkout / "bin" / "python3.12", "echo 'pyenv: python3.12: command not found' >&2; exit 127")
    stub(checkout / "bin" / "python3", "exit 1")
    result = set_up(checkout)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("setup: error: no Python 3.12 or 3.13") and result.stderr.count("\n") == 1


def test_a_finished_environment_is_used_at_once(checkout):
    make_ready(checkout)
    begin = time.monotonic()
    result = set_up(checkout)
    assert time.monotonic() - begin < 1
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{checkout}/.venv/bin/python\n", "")


def test_a_changed_lock_is_not_taken_for_finished(checkout):
    make_ready(checkout)
    with open(checkout / "tools" / "requirements.lock", "a", encoding="utf-8") as stream:
        stream.write("# changed\n")
    result = set_up(checkout)
    assert "setup: installing" in result.stderr
    assert result.returncode == 0


def test_an_interrupted_set_up_leaves_no_stamp(checkout):
    make_ready(checkout)
    (checkout / ".venv" / ".requirements.sha256").unlink()
    stub(checkout / ".venv" / "bin" / "python", '[ "$1" = -c ] || { echo "no network" >&2; exit 1; }')
    result = set_up(checkout)
    assert result.returncode == 2 and "setup: error: installing failed" in result.stderr
    assert not (checkout / ".venv" / ".requirements.sha256").exists()


def test_an_active_environment_is_used_if_it_has_the_versions_and_named_if_not(checkout):
    make_ready(checkout)
    (checkout / "active" / "bin").mkdir(parents=True)
    python = checkout / "active" / "bin" / "python"
    stub(python, "exit 0")
    assert set_up(checkout, VIRTUAL_ENV=str(checkout / "active")).stdout == f"{python}\n"
    stub(python, "echo 'torch 1.0 is installed, ==2 is needed'; exit 1")
    result = set_up(checkout, CONDA_PREFIX=str(checkout / "active"))
    assert result.stdout == f"{checkout}/.venv/bin/python\n"
    assert "is not used: torch 1.0 is installed" in result.stderr


def test_this_python_has_the_versions_of_pyproject():
    command = [sys.executable, ROOT / "tools" / "check_environment.py"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")


def test_the_lock_pins_every_requirement_with_hashes_and_names_no_host():
    text = (ROOT / "tools" / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text and "--index" not in text and "--find-links" not in text
    pins = [line for line in text.split("\n") if line and line[0] not in " #"]
    assert len(pins) > 100
    assert all("==" in line and line.endswith("\\") for line in pins)
