"""Load the extensions of installed packages."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import cast

from ....ir.rules import library
from ....ir.support.errors import InputError
from .definitions import definitions
from .extension import Extension
from .part import Part
from .registration import install, registered


def installed_package(point: EntryPoint) -> Part:
    """The extension of an entry point, registered. Raises InputError if it cannot be loaded."""
    key = f"{point.name} = {point.value}"
    known = registered(key)
    if known is not None:
        return known
    owner = f"installed extension {point.name} ({point.value})"
    try:
        found = cast(object, point.load())
    except (Exception, SystemExit) as error:
        library.forget(point.module)
        raise InputError(
            f"{owner}: cannot be loaded: {type(error).__name__}: {error}; fix it or uninstall it"
        ) from error
    module = import_module(point.module)
    folder = Path(module.__file__ or ".").resolve().parent
    if isinstance(found, Extension):
        return install(key, Part(owner, folder, found))
    if not isinstance(found, ModuleType):
        raise InputError(f"{owner}: a {type(found).__name__}; need a module or an Extension")
    return install(key, Part(owner, folder, definitions(found, _source(found), owner)))


def _source(module: ModuleType) -> bytes:
    return Path(module.__file__).read_bytes() if module.__file__ else b""
