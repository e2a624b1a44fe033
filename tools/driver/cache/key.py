"""The key of a compiled program, and the named parts of it: all that decides the program's bytes.

Nothing of the host is among the parts: the bytes do not depend on it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from hashlib import file_digest, sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from numbers import Number
from pathlib import Path
from typing import Any, cast

import numpy as np

from ....backends.target import Target, resolve_target
from ....ir.support.deferred import deferred
from ....ir.support.errors import InputError
from ....ir.support.limits import LIMITS
from ...importers.bounds import GivenSize, size_or_bounds
from ..argument_kinds import SWITCH
from ..extensions.points import extension_points
from ..request import IN_MEMORY, OPTIONS, Request, found_front_end
from .model_digest import DIGITS, model_digest

with deferred(__name__):
    from numpy.typing import ArrayLike

    from ....passes.train import Train
    from ...importers.files_beside import file_inside
    from ...importers.front_end import FrontEnd
    from ...importers.front_ends import Model
    from ..decoding.asked import Decoding
    from ..extensions.loaded import Extensions
    from ..held_homes import Held, as_text

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

Parts = Mapping[str, str]
"""The parts of a key, by name. Long ones are digests."""


def parts_of(request: Request) -> dict[str, str] | None:
    """The parts of a program's key, in order; None for a program that has no key.

    A program has no key if a user's code takes part in compiling it. It has none either if its
    model or another file cannot be read: compiling it then reports why.
    """
    try:
        return _parts(request)
    except _REFUSED:
        return None


def why_no_key(request: Request) -> str:
    """Why a program is never kept, in a few words; "" if it has a key.

    Raises InputError for a request that compiling would refuse, too.
    """
    try:
        _ = _parts(request)
    except NotKept as error:
        return str(error)
    except OSError as error:
        what = "" if error.filename is None else f"{error.filename}: "
        raise InputError(f"{what}cannot be read: {error.strerror or error}") from None
    except _REFUSED as error:
        raise InputError(str(error)) from None
    return ""


class NotKept(ValueError):
    """A user's code, or a model without bytes, takes part in compiling a program."""


_REFUSED = OSError, ValueError, OverflowError, InputError


def _parts(given: Request) -> dict[str, str]:
    if given.constraints is not None:
        # Settling reads them, and a pipe can be read only once.
        _ = _regular(Path(given.constraints))
    request = given.settled()
    for path in request.extensions.load:
        if path.endswith(UNCACHED):
            raise NotKept(f"{path} may import anything")
    name, model = model_parts(request.model)
    found = {**environment_parts(), "name": name, "model": model}
    for field, option in OPTIONS.items():
        if field != "model" and option.part is not None:
            value = getattr(request, field)
            value = bool(value) if option.kind is SWITCH else value
            found[option.part or field.replace("_", " ")] = TEXTS.get(field, _plain)(value)
    return found


def environment_parts(folders: Sequence[str] = DECIDING) -> dict[str, str]:
    """The parts that say with what a program is compiled.

    Args:
        folders: in a checkout, those whose sources count.
    """
    return {
        "abele": abele_version(folders),
        "python": "{}.{}.{}".format(*sys.version_info[:3]),
        "packages": package_versions(),
        "extensions": _installed(),
        "limits": _limits(),
    }


def key_of(parts: Parts) -> str:
    """The SHA-256 digest of the parts: 64 hexadecimal digits."""
    return sha256(json.dumps(dict(parts), sort_keys=True).encode()).hexdigest()


def model_parts(model: Model) -> tuple[str, str]:
    """The name and the digest of a model. Messages and locations contain the name of its file.

    Raises InputError for a model of an unknown kind, and OSError for one that cannot be read.
    """
    front_end = found_front_end(model)
    if isinstance(model, str | os.PathLike):
        path = Path(os.fspath(model))
        digest, files = _digest_and_files(path, front_end)
        found = [f"{name} {digest_of_file(each)}" for name, each in files.items()]
        return path.name, ", ".join([digest, *found])
    if front_end.serialized is None:
        raise NotKept(f"no bytes stand for {front_end.in_memory}")
    return IN_MEMORY, _digest(front_end.serialized(model))


def named_files(path: Path) -> list[Path]:
    """The other files that the file of a model names, such as those of weights.

    Raises as model_parts does.
    """
    return list(_digest_and_files(path, found_front_end(path))[1].values())


def _digest_and_files(path: Path, front_end: FrontEnd) -> tuple[str, dict[str, Path]]:
    """The digest of a file, and the other files that it names, by name."""
    digest, names_files = model_digest(_regular(path))
    if front_end.files is None or not names_files:
        return digest, {}
    names = front_end.files(path)
    return digest, {name: file_inside(path.parent, name, path.name) for name in names}


def _regular(path: Path) -> Path:
    """The path, of a file that can be read twice. Raises OSError for a pipe or a device."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path}: no file")
    return path


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:DIGITS]


def _plain(value: object) -> str:
    """The text of a number, a truth value, text, or one of these for each name, in order."""
    if isinstance(value, Mapping):
        return json.dumps(dict(cast("Mapping[str, object]", value))) if value else str(None)
    if value is not None and not isinstance(value, str | Number):
        raise TypeError(f"{value!r} needs a function in TEXTS")
    return str(value)


def digest_of_file(path: str | os.PathLike[str] | None) -> str:
    """The digest of a file; "" for none. Raises OSError."""
    if path is None:
        return ""
    with open(_regular(Path(path)), "rb") as stream:
        return file_digest(stream, "sha256").hexdigest()[:DIGITS]


def _loaded(extensions: Extensions) -> str:
    """The names and digests of the extensions' files. Passes are named after them."""
    return json.dumps([f"{Path(path).name} {digest_of_file(path)}" for path in extensions.load])


def _sizes(dims: Mapping[str, GivenSize] | None) -> str:
    return _plain({name: str(size_or_bounds(n)) for name, n in sorted((dims or {}).items())})


def _values(values: Mapping[str, ArrayLike] | None) -> str:
    return _plain({name: _value(value) for name, value in sorted((values or {}).items())})


def _value(value: ArrayLike) -> str:
    array = np.asarray(value)
    return f"{array.dtype.str}{list(array.shape)} {_digest(array.tobytes())}"


def _weights(weights: str | os.PathLike[str] | Mapping[str, ArrayLike] | None) -> str:
    """The name and digest of a file, which messages and notes name; or the digests of arrays."""
    if weights is None or isinstance(weights, Mapping):
        return _values(weights)
    return f"{os.fspath(weights)} {digest_of_file(weights)}"


def _beside(held: Held | None) -> str:
    return "" if held is None else _digest(as_text(held).encode())


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


def _decoding(decoding: Decoding | None) -> str:
    return "" if decoding is None else repr(decoding)


TEXTS: Mapping[str, Callable[[Any], str]] = {
    "dims": _sizes,
    "values": _values,
    "weights": _weights,
    "target": _target,
    "constraints": digest_of_file,
    "train": _training,
    "decoding": _decoding,
    "beside": _beside,
    "load": _loaded,
    "stash": ",".join,
    "shard": ";".join,
    "remote": ",".join,
}
"""What stands for a field of a request in the key, where that is not its value as text."""


@cache
def abele_version(folders: Sequence[str] = DECIDING) -> str:
    """The version of abele; in a checkout, also the digest of its sources in some folders."""
    if not (ROOT / CHECKOUT).is_file():
        return version("abele")
    found = sha256()
    for path in _sources(folders):
        data = path.read_bytes()
        found.update(f"{path.relative_to(ROOT)} {len(data)}\n".encode())
        found.update(data)
    return f"{version('abele')}, sources {found.hexdigest()[:DIGITS]}"


def _sources(folders: Sequence[str]) -> Iterator[Path]:
    """The files of some folders, except for those that Python compiles."""
    for folder in folders:
        for path, inner, names in os.walk(ROOT / folder):
            inner[:] = sorted(set(inner) - {"__pycache__"})
            yield from (Path(path, name) for name in sorted(names))


@cache
def package_versions() -> str:
    """The versions of the packages that abele computes with while it compiles."""
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
        found.append(f"{point.name} = {point.value} ({made}) {digest_of_file(place)}")
    return "; ".join(found)
