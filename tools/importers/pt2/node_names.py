"""The names of nodes, from the modules of PyTorch and the lines of Python that made them."""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.provenance import named, source_line
from ....ir.upstream import LocationAttr
from ..building import Names
from ..modules_and_lines import SourceLine, module_path, names_by_module, users_line
from .schema import Call

SEPARATOR = ";"


def module_of(call: Call) -> str:
    """The path of the innermost module around a node, such as "blocks.3.attn.qkv".

    "" for the outermost module. torch writes an entry for each module: a key, the path, and the
    class.
    """
    parts = call.modules.rpartition(SEPARATOR)[2].split(",")
    path = parts[1].strip() if len(parts) > 2 else ""
    return module_path(path) or ""


def class_of(call: Call) -> str:
    """The class of the innermost module around a node; "" if the file does not name it."""
    return call.modules.rpartition(SEPARATOR)[2].rpartition(",")[2].strip()


def node_names(calls: Sequence[Call], taken: Names | None = None) -> list[str]:
    """A name for each node: the path of its module, and the operator if a module has several.

    Args:
        taken: names that other nodes have; the new ones are added.
    """
    taken = Names() if taken is None else taken
    steps = [(module_of(call), _short_name(call.target)) for call in calls]
    return [taken.unique(name) for name in names_by_module(steps)]


def _short_name(target: str) -> str:
    """The name of an operator without its namespace and overload: "torch.ops.aten.add_.Tensor" is
    add.
    """
    words = target.removeprefix("torch.ops.").split(".")
    name = words[1] if len(words) > 1 else words[0]
    return name.strip("_") or name or "node"


def line_of(call: Call) -> SourceLine | None:
    """The user's line of Python that made a node; None if the file does not name it."""
    return users_line(call.stack) if call.stack else None


def location_of(call: Call) -> LocationAttr:
    """The name that the file gives a node, and the user's line of Python that made it."""
    line = line_of(call)
    return named(call.name, None if line is None else source_line(line.file, line.line))
