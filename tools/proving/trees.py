"""Elements of results at any index, as expressions of elements of the operands.

A tree differs from a term in three ways: an element has an index that depends on sizes and
dimensions, a sum runs over dimensions of any size, and a choice depends on an index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ...ir.support.hash_once import hash_once
from .indices import Poly
from .terms import Const


@hash_once
@dataclass(frozen=True)
class Element:
    """An element of a value that nothing computes."""

    leaf: str
    index: tuple[Poly, ...]
    dtype: str

    @property
    def name(self) -> str:
        """The element as people write it, such as "x[i, j + 1]"."""
        return f"{self.leaf}[{', '.join(map(str, self.index))}]"


@hash_once
@dataclass(frozen=True)
class Place:
    """A number that a body reads from the place of a point."""

    value: Poly
    dtype: str


@hash_once
@dataclass(frozen=True)
class Call:
    """A scalar function of trees."""

    function: str
    args: tuple[Tree, ...]
    dtype: str
    parameters: tuple[float, ...] = ()


@hash_once
@dataclass(frozen=True)
class Reduce:
    """Points that a combiner merges.

    Attributes:
        dims: each dimension by name, with its size: it takes the values 0 to size - 1.
        body: what is merged, at each point.
    """

    combiner: str
    dims: tuple[tuple[str, Poly], ...]
    body: Tree
    dtype: str


@hash_once
@dataclass(frozen=True)
class Case:
    """One tree where all conditions are at least 0, and another elsewhere."""

    conditions: tuple[Poly, ...]
    then: Tree
    other: Tree

    @property
    def dtype(self) -> str:
        """The type of both trees."""
        return self.then.dtype


Tree: TypeAlias = "Element | Place | Const | Call | Reduce | Case"


def below(tree: Tree) -> tuple[Tree, ...]:
    """The trees directly below a tree."""
    if isinstance(tree, Call):
        return tree.args
    if isinstance(tree, Reduce):
        return (tree.body,)
    return (tree.then, tree.other) if isinstance(tree, Case) else ()


def rebuilt(tree: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """The tree with a function applied to each tree directly below it."""
    if isinstance(tree, Call):
        return replace(tree, args=tuple(map(change, tree.args)))
    if isinstance(tree, Reduce):
        return replace(tree, body=change(tree.body))
    if isinstance(tree, Case):
        return replace(tree, then=change(tree.then), other=change(tree.other))
    return tree


def at(tree: Tree, values: Mapping[str, Poly]) -> Tree:
    """The tree with polynomials in the place of dimensions."""
    if isinstance(tree, Element):
        return replace(tree, index=tuple(each.replaced(values) for each in tree.index))
    if isinstance(tree, Place):
        return replace(tree, value=tree.value.replaced(values))
    inner = rebuilt(tree, lambda each: at(each, values))
    if isinstance(inner, Reduce):
        return replace(inner, dims=tuple((n, size.replaced(values)) for n, size in inner.dims))
    if isinstance(inner, Case):
        return replace(inner, conditions=tuple(each.replaced(values) for each in inner.conditions))
    return inner


def names_in(tree: Tree) -> frozenset[str]:
    """The sizes and dimensions that a tree depends on, those of its own sums left out."""
    return frozenset(_names(tree))


def _names(tree: Tree) -> Iterator[str]:
    if isinstance(tree, Element):
        for each in tree.index:
            yield from each.names
    elif isinstance(tree, Place):
        yield from tree.value.names
    elif isinstance(tree, Case):
        for each in tree.conditions:
            yield from each.names
    inner = (name for each in below(tree) for name in _names(each))
    if isinstance(tree, Reduce):
        own = {name for name, _ in tree.dims}
        for _, size in tree.dims:
            yield from size.names
        yield from (name for name in inner if name not in own)
    else:
        yield from inner


def shown(tree: Tree) -> str:
    """A tree as people read it."""
    if isinstance(tree, Element):
        return tree.name
    if isinstance(tree, Place):
        return f"({tree.value})"
    if isinstance(tree, Const):
        return f"{tree.value}"
    if isinstance(tree, Case):
        conditions = " and ".join(f"{each} >= 0" for each in tree.conditions)
        return f"({shown(tree.then)} if {conditions} else {shown(tree.other)})"
    inner = ", ".join(map(shown, below(tree)))
    if isinstance(tree, Reduce):
        dims = ", ".join(f"{name} < {size}" for name, size in tree.dims)
        return f"{tree.combiner}({inner} for {dims})"
    name = f"as {tree.dtype}" if tree.function == "identity" else tree.function
    parameters = "".join(f", {each:g}" for each in tree.parameters)
    return f"{name}({inner}{parameters})"
