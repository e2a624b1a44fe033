"""Rules of extensions: the rules of a .rw file, or of a Python module, become one pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from ....ir.rules import RuleSet, Vocabulary, bind_python_rules, library, rules_pass
from ....ir.support.errors import InputError
from ....ir.upstream import ModulePass
from ....passes.rules import nn_library as nn_library  # registers functions for rules
from ....passes.rules import onnx_library as onnx_library
from ..context import new_context
from .checks import PASS_NAME, check_pass
from .extension import Extension
from .loaded import Extensions
from .part import Part
from .source import read_source

LOADED: dict[Path, tuple[object, Part]] = {}
"""The parts of .rw files, by resolved path, each with everything that it was made from."""

OF_PYTHON: dict[Path, tuple[object, type[ModulePass]]] = {}
"""The passes of rules in Python files, by resolved path, each with all that it was made from."""


def load_rules_file(path: Path, so_far: Extensions) -> Part:
    """The pass of a .rw file; the earlier one if nothing that it depends on has changed.

    Raises InputError.

    Args:
        so_far: the extensions loaded before this file.
    """
    text = read_source(path)
    calls = (*library.FUNCTIONS.items(), *library.CLASSES.items())
    made_from = (str(path), sha256(text).hexdigest(), so_far.dialects, calls)
    known, part = LOADED.get(path.resolve(), (None, None))
    if part is None or known != made_from:
        part = _checked_rules(path, so_far)
        LOADED[path.resolve()] = made_from, part
    return part


def _checked_rules(path: Path, so_far: Extensions) -> Part:
    """The pass of a .rw file. Checking its rules takes seconds if there are many."""
    # Importing the checks is a tenth of abele's start-up, and most programs bring no rules.
    from ....ir.rules.load import load_rules  # noqa: PLC0415

    rules = load_rules(path, so_far.context())
    if not rules.bound:
        raise InputError(f"{path}: no definitions for abele; looked for rules")
    made = _pass_of_rules(path.stem, rules, str(path))
    folder = path.resolve().parent
    return Part(str(path), folder, Extension(passes=(made,)), warnings=rules.warnings)


def with_rules_pass(part: Part, name: str, so_far: Extensions) -> Part:
    """The part with a pass for its Python rules; the part itself if it has none.

    Raises InputError.

    The rules may refer to all operations known by now.

    Args:
        name: the pass's.
    """
    if not part.extension.rules:
        return part
    place, made_from = Path(part.owner).resolve(), (part, so_far.dialects)
    known, made = OF_PYTHON.get(place, (None, None))
    if made is None or known != made_from:
        context = new_context((*so_far.dialects, *part.extension.dialects))
        rules = bind_python_rules(part.extension.rules, Vocabulary(context))
        made = _pass_of_rules(name, rules, part.owner)
        OF_PYTHON[place] = made_from, made
    return replace(part, extension=part.extension + Extension(passes=(made,)))


def passes_of_rules() -> list[tuple[str, Sequence[type[ModulePass]]]]:
    """The passes that rules of files have become, by path."""
    of_files = [(str(path), part.extension.passes) for path, (_, part) in LOADED.items()]
    return [*of_files, *((str(path), (made,)) for path, (_, made) in OF_PYTHON.items())]


def _pass_of_rules(name: str, rules: RuleSet, owner: str) -> type[ModulePass]:
    named = name.replace("_", "-")
    if not PASS_NAME.fullmatch(named):
        raise InputError(
            f"{owner}: its rules become a pass named after it, and {named!r} cannot name a pass; "
            "rename it to lower-case letters, digits and dashes, such as "
            f"{_similar_pass_name(named)!r}"
        )
    made = rules_pass(named, rules)
    check_pass(made, owner)
    return made


def _similar_pass_name(name: str) -> str:
    """A valid pass name made from the words of another name."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    similar = "-".join(words).lstrip("0123456789-")
    return similar or "my-rules"
