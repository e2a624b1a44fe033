"""Extensions in Python files: run the file, and register its definitions."""

from __future__ import annotations

import sys
from hashlib import sha256
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from types import ModuleType

from ....ir.rules import library
from ....ir.support.errors import InputError
from .definitions import definitions
from .loaded import Extensions
from .part import Part
from .registration import install, registered, uninstall
from .source import read_source


def load_python(path: Path, _: Extensions) -> Part:
    """The extension of a .py file, registered; the earlier one if the file has not changed.

    Raises InputError for an error in the file.
    """
    text = read_source(path)
    key, digest = str(path.resolve()), sha256(text).hexdigest()
    known = registered(key)
    if known is not None and known.digest == digest:
        return known
    place = path.resolve()

    def installed(module: ModuleType) -> Part:
        found = definitions(module, text, str(path))
        return install(key, Part(str(path), place.parent, found, digest))

    imported = sys.modules.get(path.stem)
    if getattr(imported, "__file__", None) == key and known is None:
        assert imported is not None
        # Another user's file has imported it: a second copy would have classes of its own.
        return installed(imported)
    _forget_namesakes(place.parent)
    name = _module_name(path.stem, place)
    uninstall(key)
    library.forget(name)
    try:
        return installed(_run(path, text, name))
    except BaseException:
        # The next attempt must find neither half a module nor the names that it has registered.
        library.forget(name)
        sys.modules.pop(name, None)
        raise


def _run(path: Path, text: bytes, name: str) -> ModuleType:
    """Run a file as a module. Raises InputError with the line of the file for an error in it."""
    place = path.resolve()
    module = ModuleType(name)
    module.__file__ = str(place)
    folder = str(place.parent)
    # Compiled here, not by an importer, which would leave a __pycache__ beside the user's file.
    try:
        code = compile(text, str(place), "exec", dont_inherit=True)
        # Dataclasses look up their module. Installed packages come before files beside this one.
        sys.modules[name] = module
        sys.path.append(folder)
        try:
            exec(code, vars(module))
        finally:
            sys.path.remove(folder)
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise InputError(f"{path}{line}: not Python: {error.msg}") from None
    except (Exception, SystemExit) as error:
        lines = [n for f, n in walk_tb(error.__traceback__) if f.f_code.co_filename == str(place)]
        line = f":{lines[-1]}" if lines else ""
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        raise InputError(f"{path}{line}: {kind}{error}") from error
    return module


def _forget_namesakes(folder: Path) -> None:
    """Drop imported modules of other users' folders that share names with files of this folder.

    A module that `sys.path` does not lead to came from such a folder, which was on the path only
    while its file was loaded.
    """
    for file in folder.glob("*.py"):
        known = getattr(sys.modules.get(file.stem), "__file__", None)
        elsewhere = known is not None and Path(known).parent != folder
        if elsewhere and PathFinder.find_spec(file.stem) is None:
            del sys.modules[file.stem]


def _module_name(stem: str, place: Path) -> str:
    """The name of a file's module: its stem, as files beside it import it, or a unique name."""
    known = sys.modules.get(stem)
    own = getattr(known, "__file__", None) == str(place)
    try:
        free = known is None and find_spec(stem) is None
    except (ImportError, ValueError):
        free = False
    unique = f"abele_extension_{stem}_{sha256(str(place).encode()).hexdigest()[:8]}"
    return stem if own or free else unique
