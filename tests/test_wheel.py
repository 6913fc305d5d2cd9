"""The wheel and the source distribution hold the package, all of it, and work where there is no checkout."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest
import soundfile

ROOT = Path(__file__).parents[1]


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the tracked files."""
    copy = tmp_path_factory.mktemp("source")
    for name in run("git", "-C", ROOT, "ls-files", "-z").rstrip("\0").split("\0"):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def package_files(source):
    return {str(path.relative_to(source)) for path in (source / "espnet_ext").rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_wheel_translates_from_another_directory(source, package_files, tmp_path, tiny_paths, speech):
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
    run(*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path / "dist", source)
    (wheel,) = (tmp_path / "dist").iterdir()
    assert {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name} == package_files
    run(*pip, "install", "-q", "--no-deps", "--target", tmp_path / "site", wheel)
    directory = Path(tiny_paths["st_train_config"]).parent
    with ZipFile(tmp_path / "model.zip", "w") as archive:
        for path in directory.iterdir():
            archive.write(path, path.name)
    (tmp_path / "elsewhere").mkdir()
    soundfile.write(tmp_path / "elsewhere" / "talk.wav", speech(4), 16000)
    there = {"cwd": tmp_path / "elsewhere", "env": os.environ | {"PYTHONPATH": str(tmp_path / "site")}}
    command = (sys.executable, tmp_path / "site" / "bin" / "espnet-simul")
    assert "translate" in run(*command, "--help", **there)
    assert run(*command, "translate", "talk.wav", "--model", tmp_path / "model.zip", **there).strip()
    where = run(sys.executable, "-c", "import espnet_ext; print(espnet_ext.__file__)", **there)
    assert where.startswith(str(tmp_path / "site"))


@pytest.mark.slow
def test_the_source_distribution_is_the_package_and_how_to_build_it(source, package_files, tmp_path):
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    run(sys.executable, "-c", build, cwd=source)
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames() if not content.getmember(name).isdir()}
    generated = {name for name in names if ".egg-info/" in name} | {"PKG-INFO", "setup.cfg"}
    assert names - generated == package_files | {"LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"}
