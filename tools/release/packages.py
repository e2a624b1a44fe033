"""Builds the packages of a release, and tries the wheel in empty environments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from ...ir.support.errors import InputError

SMOKE: tuple[tuple[str, ...], ...] = (
    ("abele", "compile", "small.onnx", "-o", "small.abele", "--target", "tiny:8"),
    ("abele", "run", "small.abele", "--check"),
    ("abele", "doctor"),
)
"""The commands that a fresh install has to run."""

MODEL = """
from onnx import TensorProto, helper, save
sizes = {"x": [4, 8], "w": [8, 16], "y": [4, 16]}
x, w, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in sizes.items())
nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Relu", ["s"], ["y"])]
graph = helper.make_graph(nodes, "small", [x, w], [y])
opsets = [helper.make_opsetid("", 17)]
save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "small.onnx")
"""
"""A program that writes the model of the smoke test."""

_ASK = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
_SECONDS = 1800


class Failed(Exception):
    """A command that failed. Its text is the command, and the end of what it printed."""


def build(root: Path, folder: Path) -> tuple[Path, Path]:
    """The sdist of a checkout, and the wheel made from it, in a folder. Raises Failed.

    Only files that git tracks take part: setuptools leaves a build folder in the tree, and reads
    one that it finds.
    """
    listed = _run(root, "git", "ls-files", "-z").split("\0")
    with TemporaryDirectory() as made:
        source, out = Path(made, "source"), Path(made, "out")
        for name in filter(None, listed):
            if (root / name).exists():
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, source / name)
        _run(source, sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out))
        folder.mkdir(parents=True, exist_ok=True)
        ((sdist,), (wheel,)) = out.glob("*.tar.gz"), out.glob("*.whl")
        return Path(shutil.copy(sdist, folder)), Path(shutil.copy(wheel, folder))


def find_python(version: str) -> Path | None:
    """A Python of a version that can make environments: on the path, else one of pyenv's."""
    return next((each for each in _candidates(version) if _says(each) == version), None)


def try_wheel(python: Path, wheel: Path, version: str) -> None:
    """Install a wheel into an empty environment, and run the smoke test there. Raises Failed."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        _run(folder, str(python), "-m", "venv", "env")
        bin = folder / "env" / "bin"
        _run(folder, str(bin / "python"), "-m", "pip", "install", "--quiet", str(wheel))
        told = _run(folder, str(bin / "abele"), "--version").strip()
        if told != f"abele {version}":
            raise Failed(f"abele --version says {told!r}")
        _run(folder, str(bin / "python"), "-c", MODEL)
        for program, *arguments in SMOKE:
            _run(folder, str(bin / program), *arguments)


def _candidates(version: str) -> Iterator[Path]:
    found = shutil.which(f"python{version}")
    if found:
        yield Path(found)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from _newest(pyenv.glob(f"versions/{version}.*/bin/python"))


def _newest(paths: Iterable[Path]) -> list[Path]:
    """The paths by their patch versions, the newest first. Others than plain releases are last."""

    def patch(path: Path) -> int:
        last = path.parts[-3].rpartition(".")[2]
        return int(last) if last.isdigit() else -1

    return sorted(paths, key=patch, reverse=True)


def _says(python: Path) -> str:
    """The version that a Python says it has; "" if it cannot make environments."""
    try:
        return _run(python.parent, str(python), "-c", _ASK).strip()
    except (Failed, InputError):
        return ""


def _run(folder: Path, *command: str) -> str:
    """What a command prints. Nothing of this process's packages or caches reaches it.

    Raises Failed, and InputError if there is no such program.
    """
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    outside = {name: value for name, value in os.environ.items() if name not in hidden}
    cache = {"ABELE_CACHE": str(folder / "cache"), "XDG_CACHE_HOME": str(folder / "cache")}
    pip = {"PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))}
    shown = " ".join((Path(command[0]).name, *command[1:]))
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=outside | cache | pip,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{shown[:200]}: no end after {_SECONDS} s") from None
    except OSError as error:
        raise InputError(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise Failed(f"{shown[:200]}: exit code {done.returncode}\n{said}")
    return done.stdout
