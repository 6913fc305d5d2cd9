"""The wheel and the source distribution hold the package, all of it, and work where there is no checkout."""

import ast
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import pytest
import soundfile
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
CLEAN = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}


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


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    place = tmp_path_factory.mktemp("dist")
    run(*PIP, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", place, source)
    (wheel,) = place.iterdir()
    return wheel


def required(lines, extra=""):
    """Requirements of Requires-Dist that hold here, with an extra or without."""
    found = map(Requirement, lines or ())
    return [one for one in found if one.marker is None or one.marker.evaluate({"extra": extra})]


def with_theirs(requirements):
    """The installed distributions that requirements name, and those that these require, and so on."""
    distributions, left = {}, list(requirements)
    while left:
        one = left.pop()
        for extra in ("", *one.extras):
            key = canonicalize_name(one.name), extra
            if key not in distributions:
                distributions[key] = metadata.distribution(one.name)
                left += required(distributions[key].requires, extra)
    return {name: found for (name, _), found in distributions.items()}.values()


def clean_environment(place, wheel):
    """An environment with the wheel and, as links to those of this one, the packages that it says it needs."""
    run(sys.executable, "-m", "venv", "--without-pip", place)
    run(*PIP, "--python", place / "bin" / "python", "install", "-q", "--no-deps", wheel, env=CLEAN)
    (site,) = place.glob("lib/python*/site-packages")
    (own,) = metadata.distributions(name="espnet-ext", path=[str(site)])
    for found in with_theirs(required(own.requires)):
        for name in {file.parts[0] for file in found.files} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(found.locate_file(name))
    return place / "bin"


@pytest.mark.slow
def test_a_wheel_with_what_it_requires_translates_from_another_directory(
    wheel, package_files, tmp_path, tiny_paths, speech
):
    assert {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name} == package_files
    bin_dir = clean_environment(tmp_path / "clean", wheel)
    directory = Path(tiny_paths["st_train_config"]).parent
    with ZipFile(tmp_path / "model.zip", "w") as archive:
        for path in directory.iterdir():
            archive.write(path, path.name)
    (tmp_path / "elsewhere").mkdir()
    soundfile.write(tmp_path / "elsewhere" / "talk.wav", speech(4), 16000)
    there = {"cwd": tmp_path / "elsewhere", "env": CLEAN}
    command = bin_dir / "espnet-simul"
    assert "translate" in run(command, "--help", **there)
    assert run(command, "translate", "talk.wav", "--model", tmp_path / "model.zip", **there).strip()
    where = run(bin_dir / "python", "-c", "import espnet_ext, sys; print(espnet_ext.__file__, *sys.path)", **there)
    assert where.startswith(str(tmp_path / "clean")) and str(ROOT) not in where
    assert subprocess.run([bin_dir / "python", "-c", "import pytest"], check=False, **there).returncode


def imported(tree):
    """Top-level names that a module imports, at its top or later."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module":
            yield from (argument.value for argument in node.args if isinstance(argument, ast.Constant))


def test_every_package_that_is_imported_is_required():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    names = {canonicalize_name(Requirement(line).name) for line in lines}
    modules = {name for path in (ROOT / "espnet_ext").rglob("*.py") for name in imported(ast.parse(path.read_text()))}
    foreign = modules - sys.stdlib_module_names - {"espnet_ext", "comet"}  # COMET pins versions of its own
    owners = metadata.packages_distributions()
    unknown = {name for name in foreign if not names & {canonicalize_name(owner) for owner in owners.get(name, [name])}}
    assert not unknown and {"torch", "yaml", "sounddevice", "simuleval"} < foreign


@pytest.mark.slow
def test_the_source_distribution_is_the_package_and_how_to_build_it(source, package_files, tmp_path):
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    run(sys.executable, "-c", build, cwd=source)
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames() if not content.getmember(name).isdir()}
    generated = {name for name in names if ".egg-info/" in name} | {"PKG-INFO", "setup.cfg"}
    assert names - generated == package_files | {"LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"}
