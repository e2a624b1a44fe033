"""Register what extensions define in abele's tables, and remove it again."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from xdsl.ir import Dialect

from ....backends.codelets.scalar import register_scalar_function
from ....backends.codelets.users import register_users_codelet
from ....backends.codelets.users_checks import check_codelet
from ....backends.fabrics.table import register_fabric
from ....backends.prices.contractions.methods import register_method
from ....backends.target import register_target
from ....dialects.levels import register_dialect
from ....dialects.model_calls import register_model_call
from ....ir.rules import library
from ....ir.support.user_entries import remove_entries
from ....ir.upstream import ModulePass
from ....passes.pipelines import USERS_WAYS, users_passes
from ...importers.front_ends import register_front_end
from ..files import PROGRAM_FILE
from .added_level import dialects_of, register_added_level
from .checks import check_operations, check_pass
from .extension import Extension
from .part import Part
from .rules_pass import OF_PYTHON, passes_of_rules

REGISTERED: dict[str, Part] = {}
"""The parts that are registered, by resolved path or entry point."""


def registered(key: str) -> Part | None:
    """The part with a key, if it is registered."""
    return REGISTERED.get(key)


def install(key: str, part: Part) -> Part:
    """Register a part, in place of an earlier one with the same key.

    Raises InputError for a definition that abele cannot use; nothing of the part is left then.
    """
    uninstall(key)
    part = replace(part, extension=_with_dialects(part.extension))
    try:
        _register(part.extension, part.owner)
    except BaseException:
        remove_entries(part.owner)
        raise
    REGISTERED[key] = part
    return part


def uninstall(key: str) -> None:
    """Remove everything that a part has registered. Does nothing for an unknown key."""
    OF_PYTHON.pop(Path(key), None)
    old = REGISTERED.pop(key, None)
    if old is not None:
        remove_entries(old.owner)


def forget_unsettled() -> None:
    """Remove the parts with levels that no pipeline goes through, so that they are loaded anew."""
    for key, part in list(REGISTERED.items()):
        if any(each.level.name not in USERS_WAYS for each in part.extension.levels):
            uninstall(key)
            for name, module in list(sys.modules.items()):
                if getattr(module, "__file__", None) == key:
                    library.forget(name)
                    del sys.modules[name]


def files_to_load(passes: Collection[type[ModulePass]]) -> list[str]:
    """The files that another process has to load to run some passes on any program.

    These are the files of some of the passes or of the pipeline's, and those that define more than
    passes, because a program or its target may name that.
    """
    wanted = {*passes, *users_passes().values()}
    chosen = [key for key, part in REGISTERED.items() if _defines_more(part.extension)]
    chosen += [key for key, found in _passes() if wanted.intersection(found)]
    return [key for key in dict.fromkeys(chosen) if Path(key).is_file()]


def _defines_more(each: Extension) -> bool:
    """Whether an extension has something that a program or its target may name."""
    of_targets = each.targets or each.fabrics or each.methods
    return bool(each.levels or each.dialects or each.functions or each.codelets or of_targets)


def is_from_a_file(cls: type[ModulePass]) -> bool:
    """Whether a file that is loaded defines a pass."""
    return any(cls in found for key, found in _passes() if Path(key).is_file())


def _passes() -> list[tuple[str, Sequence[type[ModulePass]]]]:
    """The passes of all parts, by path or entry point."""
    parts = [(key, part.extension.passes) for key, part in REGISTERED.items()]
    return [*parts, *passes_of_rules()]


def _with_dialects(extension: Extension) -> Extension:
    """The extension with a dialect for each file of codelets."""
    names = dict.fromkeys(each.name.partition(".")[0] for each in extension.codelets)
    made = [
        Dialect(name, [c.op for c in extension.codelets if c.name.startswith(f"{name}.")], [])
        for name in names
    ]
    return replace(extension, dialects=(*extension.dialects, *made))


def _register(extension: Extension, owner: str) -> None:
    for function in extension.functions:
        register_scalar_function(function, owner)
    for codelet in extension.codelets:
        register_users_codelet(codelet, owner)
    of_levels = dialects_of(extension.levels, extension.dialects)
    for dialect in extension.dialects:
        register_dialect(dialect, owner, of_level=dialect.name in of_levels)
        check_operations(dialect, owner)
    for codelet in extension.codelets:
        check_codelet(codelet, owner)
    for level in extension.levels:
        register_added_level(level, owner)
    for fabric in extension.fabrics:
        register_fabric(fabric, owner)
    for method in extension.methods:
        register_method(method, owner)
    for target in extension.targets:
        register_target(target, owner)
    for each in extension.passes:
        check_pass(each, owner)
    for front_end in extension.front_ends:
        register_front_end(front_end, owner, (PROGRAM_FILE,))
    for call in extension.calls:
        register_model_call(call, owner)
    if extension.operators:
        # Programs that are not .onnx files run where onnx is not installed.
        from ...importers.onnx.reader import register_operator  # noqa: PLC0415

        for operator in extension.operators:
            register_operator(operator.domain, operator.name, operator.importer, owner)
