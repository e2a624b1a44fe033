"""`make release`: whether this checkout can be released, in one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..views.script import run_script
from ..views.user_errors import CHECK_FAILED
from .packages import Failed, build, find_python, try_wheel
from .statements import problems, read_statements

TRIED = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python that the wheel is tried with, where they are found."""


def release(
    root: Annotated[Path, typer.Argument(metavar="CHECKOUT", help="The checkout.")] = Path(),
    folder: Annotated[
        Path, typer.Option("-o", metavar="DIR", help="The folder for the packages.")
    ] = Path("dist"),
) -> None:
    """Check the version and CHANGELOG.md, build sdist and wheel, and try the wheel.

    The wheel is installed into an empty environment of each Python that is found, and runs a smoke
    test there. Exits with 1 if something is missing for a release.
    """
    said = read_statements(root)
    missing = list(problems(said))
    for each in missing:
        print(each)
    tried: list[str] = []
    try:
        packages = build(root.resolve(), folder)
    except Failed as failed:
        print(failed)
        missing.append("the packages cannot be built")
    else:
        for package in packages:
            print(f"{package}: {package.stat().st_size:,} bytes")
        for python in sorted({*TRIED, *said.pythons}, key=_order):
            found = _tried(python, packages[-1].resolve(), said.version)
            is_promised = python in said.pythons
            promise = "" if is_promised else ", which pyproject.toml does not promise"
            tried.append(f"{python} {found}{promise}")
            if is_promised and found != PASSED:
                missing.append(f"Python {python} is promised, and {found}")
    print(verdict(said.version, missing, tried))
    if missing:
        raise typer.Exit(CHECK_FAILED)


PASSED, FAILED, ABSENT = "passed", "failed", "was not found"


def _tried(python: str, wheel: Path, version: str) -> str:
    """What becomes of a wheel with a version of Python. Prints why it fails."""
    path = find_python(python)
    if path is None:
        return ABSENT
    try:
        try_wheel(path, wheel, version)
    except Failed as failed:
        print(f"Python {python}: {failed}")
        return FAILED
    print(f"Python {python}: smoke test passed ({path})")
    return PASSED


def verdict(version: str, missing: Sequence[str], tried: Sequence[str]) -> str:
    """The last line: whether a version can be released, and the Python versions it was tried with.

    Args:
        missing: what stands against it.
        tried: what became of the wheel with each Python.
    """
    pythons = f" (Python {'; '.join(tried)})" if tried else ""
    if missing:
        return f"abele {version}: NOT READY: {'; '.join(missing)}{pythons}"
    return f"abele {version}: READY{pythons}"


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


if __name__ == "__main__":
    run_script(release)
