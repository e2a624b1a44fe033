"""Operations by what users call them: the framework's node, or a pattern of names.

A name is the whole path of a node ("bn1/scale"), of one of those that were fused, or of all of them
("conv1+relu1"). In what is no operation's name, * stands for any letters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from xdsl.ir import Operation

from .provenance import origin_names
from .suggestions import suggestion

EVERY = "*"
"""The pattern that every operation fits, one without a name too."""

MOST_STEPS = 6
"""Of how many steps of a node's lowering all are said."""


def node_names(op: Operation) -> tuple[str, ...]:
    """What an operation may be called; () if nobody named it."""
    names = origin_names(op)
    return (*names, "+".join(names)) if len(names) > 1 else names


def called(name: str, ops: Iterable[Operation]) -> list[Operation]:
    """The operations of that very name, in their order."""
    return [op for op in ops if name in node_names(op)]


def fitting(pattern: str, ops: Iterable[Operation]) -> list[Operation]:
    """The operations with a name that fits a pattern, in their order."""
    return [op for op in ops if any(fnmatchcase(n, pattern) for n in node_names(op) or ("",))]


def nobody(name: str, ops: Sequence[Operation], others: Iterable[Operation], lack: str) -> str:
    """What to say of a name that no operation of a choice has, nor fits if it is a pattern.

    others: the operations that were not to choose from, too. lack: why one of these was not.
    """
    names = list(dict.fromkeys(n for op in ops for n in node_names(op)))
    below = [each for each in names if each.startswith(f"{name}/")]
    if below:
        return f"became {', '.join(below[:MOST_STEPS])}; name one of them, or all as '{name}/*'"
    other = next((op for op in others if name in origin_names(op)), None)
    if other is not None:
        return f"{other.name} {lack}"
    return f"no operator of that name{suggestion(name, names)}"
