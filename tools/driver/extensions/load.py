"""Load extensions: those of installed packages, and those of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ....ir.errors import InputError
from .loaded import Extensions, combined
from .packages import extension_points, installed_package
from .python_file import load_python
from .registration import Part
from .rules_pass import load_rules_file, with_rules_pass
from .target_file import load_target

LOADERS: Mapping[str, Callable[[Path, Extensions], Part]] = {
    ".py": load_python,
    ".toml": load_target,
    ".rw": load_rules_file,
}
"""Loaders by suffix, in the order in which files are loaded.

Each takes a path and the extensions loaded before it.
"""


def load_extensions(paths: Sequence[str | os.PathLike[str]] = ()) -> Extensions:
    """Load installed extensions, and extensions from .py, .toml (a target) and .rw (rules) files.

    Functions, dialects, targets and operators stay registered for the life of the process. A file
    that has changed since it was loaded is unregistered and loaded again.
    Raises InputError for a missing file, an error in a file, a name that is taken, and a file
    without definitions.
    """
    files = [Path(os.fspath(path)) for path in paths]
    for path in files:
        if path.suffix not in LOADERS:
            raise InputError(f"{path}: unknown kind of extension; need {', '.join(LOADERS)}")
    # Rules may use dialects that other files define.
    files.sort(key=lambda path: list(LOADERS).index(path.suffix))
    parts: list[Part] = []
    for point in extension_points():
        found = installed_package(point)
        parts.append(with_rules_pass(found, point.name, combined(parts)))
    for path in {path.resolve(): path for path in files}.values():
        found = LOADERS[path.suffix](path, combined(parts))
        parts.append(with_rules_pass(found, path.stem, combined(parts)))
    return combined(parts, [os.fspath(path) for path in paths])
