"""The key of a compiled program, and the named parts of it: all that decides the program's bytes.

Nothing of the host is among the parts: the bytes do not depend on it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from hashlib import file_digest, sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....backends.target import Target, resolve_target
from ....ir.support.deferred import deferred
from ....ir.support.errors import InputError
from ....ir.support.limits import LIMITS
from ...importers.external_files import external_files, file_inside
from ..extensions.points import extension_points
from .model_digest import DIGITS, model_digest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ....passes.train import Train
    from ..beside import Held, as_text
    from ..extensions.loaded import Extensions
    from ..program import Model
else:
    as_text = deferred("..beside", "as_text", __package__)

ROOT = Path(__file__).parents[3]
"""The folder of abele's packages."""

CHECKOUT = "pyproject.toml"
"""A file that is beside abele's packages in a checkout, and nowhere else."""

DECIDING = ("ir", "dialects", "backends", "passes", "tools/driver", "tools/importers")
"""The folders whose sources decide the bytes of a program."""

PACKAGES = ("xdsl", "numpy", "ml_dtypes", "onnx")
"""The packages that abele computes with while it compiles."""

UNCACHED = ".py"
"""Extensions in files of this kind may import anything, so no key can stand for what they do."""

MEMORY = "<model>"
"""The name of a model in memory."""


@dataclass(frozen=True)
class Request:
    """A model to compile, and all options that decide what it is compiled to.

    The fields are parameters of compile_model.
    """

    model: Model
    target: str | Target | None
    dims: Mapping[str, int]
    values: Mapping[str, ArrayLike]
    batch: int | None
    keep: Mapping[str, str]
    passes: str
    constraints: str | os.PathLike[str] | None
    memory_proportion: float | None
    vertices_per_tile: int | None
    lenient: bool
    train: Train | None
    beside: Held | None = None

    @property
    def file(self) -> str:
        """The path of the model; "" for a model in memory."""
        return os.fspath(self.model) if isinstance(self.model, str | os.PathLike) else ""

    @property
    def path(self) -> str:
        """The model's name in messages."""
        return self.file or MEMORY


Parts = Mapping[str, str]
"""The parts of a key, by name. Long ones are digests."""


def parts_of(request: Request, extensions: Extensions) -> dict[str, str] | None:
    """The parts of a program's key, in order; None for a program that has no key.

    A program has no key if a user's code takes part in compiling it. It has none either if its
    model or another file cannot be read: compiling it then reports why.
    """
    try:
        return _parts(request, extensions)
    except _REFUSED:
        return None


def why_no_key(request: Request, extensions: Extensions) -> str:
    """Why a program has no key, in a few words; "" if it has one."""
    try:
        _ = _parts(request, extensions)
    except _REFUSED as error:
        return str(error)
    return ""


_REFUSED = OSError, ValueError, OverflowError, InputError


def _parts(request: Request, extensions: Extensions) -> dict[str, str]:
    for path in extensions.load:
        if path.endswith(UNCACHED):
            raise ValueError(f"{path} may import anything")
    name, model = _model(request.model)
    return {
        "abele": _abele(),
        "python": "{}.{}.{}".format(*sys.version_info[:3]),
        "packages": _packages(),
        "extensions": _installed(),
        "name": name,
        "model": model,
        "dims": json.dumps(dict(request.dims), sort_keys=True),
        "values": json.dumps({k: _value(v) for k, v in sorted(request.values.items())}),
        "batch": str(request.batch),
        "keep": json.dumps(dict(request.keep)),
        "target": _target(request.target),
        "passes": request.passes,
        "constraints": _file(request.constraints),
        "memory proportion": repr(request.memory_proportion),
        "vertices per tile": repr(request.vertices_per_tile),
        "lenient": str(request.lenient),
        "limits": _limits(),
        "training": _training(request.train),
        "beside": "" if request.beside is None else _digest(as_text(request.beside).encode()),
        "loaded": json.dumps([_loaded(path) for path in extensions.load]),
    }


def key_of(parts: Parts) -> str:
    """The SHA-256 digest of the parts: 64 hexadecimal digits."""
    return sha256(json.dumps(dict(parts), sort_keys=True).encode()).hexdigest()


def _model(model: Model) -> tuple[str, str]:
    """The name and the digest of a model. Messages and locations contain the name of its file."""
    if isinstance(model, str | os.PathLike):
        path = Path(os.fspath(model))
        digest, names_files = model_digest(_regular(path))
        found = [digest]
        if path.suffix == ".onnx" and names_files:
            names = external_files(path.read_bytes())
            files = [file_inside(path.parent, name, path.name) for name in names]
            found += [f"{n} {_file(each)}" for n, each in zip(names, files, strict=True)]
        return path.name, ", ".join(found)
    data = model.SerializeToString(deterministic=True)
    if external_files(data):
        raise ValueError("a model in memory has no folder for external data")
    return MEMORY, _digest(data)


def _regular(path: Path) -> Path:
    """The path, of a file that can be read twice. Raises OSError for a pipe or a device."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path}: no file")
    return path


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:DIGITS]


def _file(path: str | os.PathLike[str] | None) -> str:
    """The digest of a file; "" for none. Raises OSError."""
    if path is None:
        return ""
    with open(_regular(Path(path)), "rb") as stream:
        return file_digest(stream, "sha256").hexdigest()[:DIGITS]


def _loaded(path: str) -> str:
    """The name and digest of an extension's file. Passes are named after it."""
    return f"{Path(path).name} {_file(path)}"


def _value(value: ArrayLike) -> str:
    array = np.asarray(value)
    return f"{array.dtype.str}{list(array.shape)} {_digest(array.tobytes())}"


def _target(given: str | Target | None) -> str:
    """The name of a target, and the digest of all its numbers. A model may name its own."""
    if given is None:
        return "default"
    target = resolve_target(given) if isinstance(given, str) else given
    return f"{target.spelling()} {_digest(target.to_toml().encode())}"


def _limits() -> str:
    """The limits that the environment changes. They decide what is refused, and some figures."""
    return json.dumps({each.name: each.most for each in LIMITS if each.most != each.default})


def _training(train: Train | None) -> str:
    """The options of training that differ from their defaults, which depend on abele's version."""
    if train is None:
        return ""
    given = {f.name: getattr(train, f.name) for f in fields(train) if f.init}
    defaults = {f.name: f.default for f in fields(train)}
    return json.dumps({name: repr(v) for name, v in given.items() if v != defaults[name]})


@cache
def _abele() -> str:
    """The version of abele; in a checkout, also the digest of its sources."""
    if not (ROOT / CHECKOUT).is_file():
        return version("abele")
    found = sha256()
    for path in _sources():
        data = path.read_bytes()
        found.update(f"{path.relative_to(ROOT)} {len(data)}\n".encode())
        found.update(data)
    return f"{version('abele')}, sources {found.hexdigest()[:DIGITS]}"


def _sources() -> Iterator[Path]:
    """The files of the folders in DECIDING, except for those that Python compiles."""
    for folder in DECIDING:
        for path, folders, names in os.walk(ROOT / folder):
            folders[:] = sorted(set(folders) - {"__pycache__"})
            yield from (Path(path, name) for name in sorted(names))


@cache
def _packages() -> str:
    return ", ".join(f"{name} {_version(name)}" for name in PACKAGES)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


@cache
def _installed() -> str:
    """The installed extensions: name, version, and the digest of the module that defines each."""
    found: list[str] = []
    for point in extension_points():
        made = "" if point.dist is None else f"{point.dist.name} {point.dist.version}"
        place = import_module(point.module).__file__
        found.append(f"{point.name} = {point.value} ({made}) {_file(place)}")
    return "; ".join(found)
