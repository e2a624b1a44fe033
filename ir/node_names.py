"""Finds operations by the names of the framework's nodes they came from, or by a pattern.

A name is the whole path of a node ("bn1/scale"). A fused operation has the name of each node in it,
and their combination ("conv1+relu1"). In a pattern, * stands for any text. Where no operation has
a name, the names that the model's file gives its nodes count as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from xdsl.ir import Operation

from .provenance import file_names, origin_names
from .support.suggestions import suggestion

EVERY = "*"
"""The pattern that matches every operation, even one without a name."""

MOST_STEPS = 6
"""How many steps of a node's lowering a message lists at most."""


def node_names(op: Operation) -> tuple[str, ...]:
    """All names of an operation; () if it has none."""
    return _and_joined(origin_names(op))


def _and_joined(names: tuple[str, ...]) -> tuple[str, ...]:
    return (*names, "+".join(names)) if len(names) > 1 else names


def operations_named(name: str, ops: Iterable[Operation]) -> list[Operation]:
    """The operations that have exactly this name, in order."""
    return _having(lambda names: name in names, ops)


def operations_matching(pattern: str, ops: Iterable[Operation]) -> list[Operation]:
    """The operations with a name that matches a pattern, in order."""
    return _having(lambda names: any(fnmatchcase(n, pattern) for n in names or ("",)), ops)


def _having(fits: Callable[[tuple[str, ...]], bool], ops: Iterable[Operation]) -> list[Operation]:
    every = list(ops)
    found = [op for op in every if fits(node_names(op))]
    return found or [op for op in every if (own := _and_joined(file_names(op))) and fits(own)]


def no_such_operator(
    name: str, ops: Sequence[Operation], others: Iterable[Operation], reason: str
) -> str:
    """The end of a message about a name or pattern that no eligible operation matches.

    Args:
        ops: the eligible operations.
        others: more operations, which may have the name without being eligible.
        reason: why such an operation is not eligible, such as "needs no plan".
    """
    names = list(dict.fromkeys(n for op in ops for n in node_names(op)))
    steps = [op for op in ops if any(n.startswith(f"{name}/") for n in file_names(op))]
    below = [each for each in names if each.startswith(f"{name}/")]
    below = below or list(dict.fromkeys(n for op in steps for n in origin_names(op)))
    if below:
        return f"became {', '.join(below[:MOST_STEPS])}; name one of them, or all as '{name}/*'"
    other = next((op for op in others if name in (*origin_names(op), *file_names(op))), None)
    if other is not None:
        return f"{other.name} {reason}"
    return f"no operator of that name{suggestion(name, names, 'abele plan lists them')}"
