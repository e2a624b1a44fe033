"""List passes with their options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from textwrap import wrap

from ...ir.pass_levels import declared_levels
from ...ir.pass_manager import ABELE, XDSL, PassEntry, load_pass
from ...ir.pass_options import pass_options
from ...ir.upstream import ModulePass
from ...passes.names import XDSL_PASSES
from ...passes.pipelines import passes_down
from ..driver.extensions.loaded import Extensions


def listing(extensions: Extensions) -> str:
    """Each pass with its summary and options, the shorthand, and the names of xDSL's passes."""
    passes, down = extensions.passes, passes_down(extensions.levels)
    width = max(map(len, passes)) + 2
    lines: list[str] = []
    for name in passes:
        each = load_pass(name, passes)
        lines.append(f"{name:{width}}{_document(each).partition(chr(10))[0]}".rstrip())
        lines += [f"{'':{width}}  {option}" for option in pass_options(each)]
    lines += ["", "In a pipeline, a level stands for the passes that end there:"]
    lines += [f"{level.name:{width}}{','.join(names)}" for level, names in down.items()]
    others = [name for name in XDSL_PASSES if name not in passes]
    lines += ["", "Any other name is that of a pass of xDSL's:"]
    lines += wrap(
        ", ".join(others), 96, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
    lines += ["", f"{ABELE}NAME is always abele's pass, and {XDSL}NAME always xDSL's."]
    return "\n".join(lines) + "\n"


ATTRIBUTES = re.compile(r"^Attributes:\n(?:[ \t]+.*\n?)+", re.MULTILINE)
"""The section of a docstring that describes the options, which are listed with their types."""


def description(name: str, passes: Mapping[str, PassEntry]) -> str:
    """The docstring of a pass, and its options. Raises InputError for an unknown pass."""
    each = load_pass(name, passes)
    options = [f"  {option}" for option in pass_options(each)]
    text = [name, "", _document(each), "", "options:", *(options or ["  none"])]
    declared = declared_levels(each)
    if declared is not None:
        text += ["", f"levels: {declared}"]
    return "\n".join(text) + "\n"


def first_sentence(each: type[ModulePass]) -> str:
    """The first sentence of a pass's docstring; "" for a pass without a docstring."""
    paragraph = " ".join(_document(each).partition("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", paragraph)[0]


def _document(each: type[ModulePass]) -> str:
    """The docstring of a pass without its section of attributes, or "".

    Without a docstring, a dataclass has its signature as one.
    """
    text = inspect.cleandoc(vars(each).get("__doc__") or "")
    return "" if text.startswith(f"{each.__name__}(") else ATTRIBUTES.sub("", text).rstrip()
