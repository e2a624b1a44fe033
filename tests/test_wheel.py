import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from test_packages import NOT_IN_THE_WHEEL, is_in_the_wheel

from abele.backends.host.load import SHARES

ROOT = Path(__file__).parent.parent
ROOMS = ("ir", "dialects", "backends", "passes", "tools")

IMPORT_EVERYTHING = """
import importlib, importlib.util, sys
from pathlib import Path
_, folder, not_run, *names = sys.argv
for name in names:
    spec = importlib.util.find_spec(name)
    assert spec and Path(spec.origin).is_relative_to(folder), (name, spec)
    if name not in not_run.split():
        importlib.import_module(name)
"""

KERNELS = [
    f"abele.backends.host.kernels.{task}"
    for share in SHARES
    for task in share
    if task != "equality"
]
"""Modules that compile their kernels when they are imported, all of them in half a minute. One that
takes a second stands for them: what they import is imported anyway."""


def modules() -> list[str]:
    """Every module of the checkout by its installed name; a __main__ runs when it is imported."""
    names = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            parts = ["abele", *path.relative_to(ROOT).with_suffix("").parts]
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return [name for name in names if not name.endswith(".__main__")]


ASK = """
import sys
from abele.tools.cli import main
sys.argv[0] = "abele"
main()
"""

NEEDS_A_CHECKOUT = (
    (("bench", "kit"), "bench kit"),
    (("bench", "comparator"), "bench comparator"),
    (("fuzz", "--hostile"), "--hostile"),
    (("fuzz", "--interrupt", "1"), "--interrupt"),
    (("fuzz", "--replay", "."), "--replay"),
)
"""Arguments for what the wheel leaves out, and what messages call it."""


@pytest.mark.slow
@pytest.mark.large
def test_the_wheel_holds_every_module_that_users_run(tmp_path: Path):
    source, target = tmp_path / "source", tmp_path / "target"
    # A copy: setuptools leaves a build folder in the tree, and reads one that it finds.
    for room in ROOMS:
        shutil.copytree(ROOT / room, source / room, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    run(source, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path))
    (wheel,) = tmp_path.glob("*.whl")
    run(
        tmp_path,
        "-m",
        "pip",
        "install",
        "--no-compile",
        "--no-deps",
        "--no-index",
        "--target",
        str(target),
        wheel,
    )
    # -S leaves out the site packages, and so the editable install of the checkout itself.
    search = os.pathsep.join((str(target), sysconfig.get_path("purelib")))
    arguments = ("-c", IMPORT_EVERYTHING, str(target), " ".join(KERNELS))
    run(tmp_path, "-S", *arguments, *filter(is_in_the_wheel, modules()), PYTHONPATH=search)
    for data in data_files():
        assert (target / "abele" / data).exists(), f"{data} is not in the wheel"
    for package in NOT_IN_THE_WHEEL:
        assert not (target / Path(*package.split("."))).exists(), f"{package} is in the wheel"
    for words, what in NEEDS_A_CHECKOUT:
        told = refused(tmp_path, "-S", "-c", ASK, *words, PYTHONPATH=search)
        assert told.startswith(f"error: {what} measures or tests abele itself")
        assert "make install" in told
        assert told.count("\n") == 1


def data_files() -> list[Path]:
    """The files in packages of the wheel that are no modules."""
    return [
        path.relative_to(ROOT)
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts
        if is_in_the_wheel(".".join(("abele", *path.relative_to(ROOT).parent.parts)))
    ]


def run(directory: Path, *arguments: str | Path, **environment: str) -> None:
    done = ended(directory, *arguments, **environment)
    assert done.returncode == 0, done.stdout + done.stderr


def refused(directory: Path, *arguments: str | Path, **environment: str) -> str:
    """What a program prints that ends with 2."""
    done = ended(directory, *arguments, **environment)
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


def ended(
    directory: Path, *arguments: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=directory,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
