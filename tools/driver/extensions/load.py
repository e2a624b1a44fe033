"""Load extensions: those of installed packages, and those of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ....ir.support.errors import InputError
from ....ir.support.turns import COMPILING
from .loaded import Extensions, combined
from .part import Part
from .points import extension_points

# Rules and definitions take a third of a command's start-up, and most commands load no extension.
LOADERS: Mapping[str, str] = {
    ".py": "python_file:load_python",
    ".toml": "target_file:load_target",
    ".rw": "rules_pass:load_rules_file",
}
"""Loaders by suffix, in the order in which files are loaded, each as "module:function".

Each takes a path and the extensions loaded before it, and is imported on first use.
"""

PACKAGE_LOADER = "packages:installed_package"
WITH_RULES = "rules_pass:with_rules_pass"
SETTLE_WAYS = "added_level:settle_ways"
FORGET_UNSETTLED = "registration:forget_unsettled"


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
    points = extension_points()
    if not points and not files:
        return combined(parts)
    # Nobody compiles with half of an extension.
    with COMPILING:
        try:
            for point in points:
                found = cast(Part, _imported(PACKAGE_LOADER)(point))
                parts.append(_with_rules_pass(found, point.name, parts))
            for path in {path.resolve(): path for path in files}.values():
                found = cast(Part, _imported(LOADERS[path.suffix])(path, combined(parts)))
                parts.append(_with_rules_pass(found, path.stem, parts))
            return _with_levels(parts, combined(parts, [os.fspath(path) for path in paths]))
        except BaseException:
            # No pipeline goes through such a level, so nothing must find it.
            _imported(FORGET_UNSETTLED)()
            raise


def _with_levels(parts: Sequence[Part], whole: Extensions) -> Extensions:
    """The extensions, once the default pipeline goes through their levels."""
    levels = [(each, part.owner) for part in parts for each in part.extension.levels]
    if levels:
        _imported(SETTLE_WAYS)(levels, whole.passes, whole.levels)
    return whole


def _with_rules_pass(part: Part, name: str, so_far: Sequence[Part]) -> Part:
    if not part.extension.rules:
        return part
    return _imported(WITH_RULES)(part, name, combined(so_far))


def _imported(home: str) -> Callable[..., Any]:
    module, function = home.split(":")
    return getattr(import_module(f".{module}", __package__), function)
