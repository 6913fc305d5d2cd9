"""Say in one line which requirement of pyproject.toml this Python does not meet; silent, exit 0, when it meets all."""

import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

EXTRAS = ("serve", "mini", "distill", "dev")


def unmet() -> str | None:
    """The first requirement that is not met, as a sentence."""
    if sys.version_info < (3, 12):  # noqa: UP036 - any active Python may run this
        return f"Python {sys.version.split()[0]} is older than 3.12"
    import tomllib

    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return "packaging is not installed"
    extras = [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    for line in (*project["dependencies"], *extras):
        requirement = Requirement(line)
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            return f"{requirement.name} is not installed"
        if not requirement.specifier.contains(found, prereleases=True):
            return f"{requirement.name} {found} is installed, {requirement.specifier} is needed"
    return None


if __name__ == "__main__":
    problem = unmet()
    if problem:
        print(problem)
    sys.exit(1 if problem else 0)
