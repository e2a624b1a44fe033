"""List passes with their options."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from ...ir.pass_levels import declared_levels
from ...ir.pass_manager import PassEntry, load_pass
from ...ir.pass_options import pass_options
from ...ir.upstream import ModulePass
from ...passes.pipelines import SHORTHAND


def listing(passes: Mapping[str, PassEntry]) -> str:
    """Every pass with the first line of its docstring and its options; then the levels."""
    width = max(map(len, passes)) + 2
    lines: list[str] = []
    for name in passes:
        each = load_pass(name, passes)
        lines.append(f"{name:{width}}{_document(each).partition(chr(10))[0]}".rstrip())
        lines += [f"{'':{width}}  {option}" for option in pass_options(each)]
    lines += ["", "In a pipeline, a level stands for the passes that end there:"]
    lines += [f"{level:{width}}{','.join(names)}" for level, names in SHORTHAND.items()]
    return "\n".join(lines) + "\n"


def description(name: str, passes: Mapping[str, PassEntry]) -> str:
    """The whole docstring of a pass, and its options. Raises InputError for an unknown pass."""
    each = load_pass(name, passes)
    options = [f"  {option}" for option in pass_options(each)]
    text = [name, "", _document(each), "", "options:", *(options or ["  none"])]
    declared = declared_levels(each)
    if declared is not None:
        text += ["", f"levels: {declared}"]
    return "\n".join(text) + "\n"


def _document(each: type[ModulePass]) -> str:
    """The docstring of a pass, or "". Without one, a dataclass has its signature as docstring."""
    text = inspect.cleandoc(vars(each).get("__doc__") or "")
    return "" if text.startswith(f"{each.__name__}(") else text
