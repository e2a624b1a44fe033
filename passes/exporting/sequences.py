"""Scans and sorts in dialects that have no operations for them, as loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Attribute, SSAValue

from ...backends.reference.identities import identity_of
from ...dialects.along import Along
from .functions import merge_of
from .loops import Counted, Export, Gathered, Loops
from .reads import Shown
from .terms import Algebra, Term


def running(new: Export, value: SSAValue, element: Attribute, axis: int, along: Along) -> SSAValue:
    """A scan along an axis.

    Each element is merged with the one before it, each of the results with the one two places
    before, then four, and so on. So n elements take log2(n) passes.
    """
    shape = _shape(value)
    fill = identity_of(along.name, element)

    def merged(to: Algebra, given: Sequence[Term]) -> Term:
        return to.primitive(merge_of(along.name, element), *given)

    def moved(by: int) -> SSAValue:
        """The elements some places further along, after the combiner's identity."""
        none, ones = [0] * len(shape), [1] * len(shape)
        more = [by if i == axis else 0 for i in range(len(shape))]
        low, high = (none, more) if along.reverse else (more, none)
        return new.cut(new.padded(value, low, high, fill), high, ones, shape)

    if along.exclusive:
        value = moved(1)
    distance = 1
    while distance < shape[axis]:
        reads = tuple(_along(each, shape, element) for each in (moved(distance), value))
        value = new.loops(Loops(shape, reads, merged, tuple(range(len(shape))), element))
        distance *= 2
    return value


def ordered(new: Export, value: SSAValue, element: Attribute, axis: int, along: Along) -> SSAValue:
    """A sort along an axis: the elements, or their indices as i32.

    The place of an element is the number of those that come before it. So all pairs are compared: n
    elements take n * n comparisons.
    """
    shape = _shape(value)
    axes = tuple(range(len(shape)))
    rank, n = len(shape), shape[axis]

    def before(to: Algebra, given: Sequence[Term]) -> Term:
        """Whether the second element comes before the first; NaN counts as the largest."""
        here, there, place, other = given
        low, high = (here, there) if along.reverse else (there, here)
        less, equal = to.compare("less", low, high), to.compare("equal", here, there)
        if here.is_float:
            less = to.primitive("or", less, _alone(to, high, low))
            lost = to.primitive("and", to.is_nan(here), to.is_nan(there))
            equal = to.primitive("or", equal, lost)
        earlier = to.primitive("and", equal, to.compare("less", other, place))
        return to.cast(to.primitive("or", less, earlier), i32)

    def place_of(to: Algebra, given: Sequence[Term]) -> Term:
        """The index of an element, if it goes to this place; 0 otherwise."""
        goes_to, index, place = given
        return to.select(to.compare("equal", goes_to, place), index, to.like(0, index))

    here, there = Counted(((axis, 1),), 0, i32), Counted(((rank, 1),), 0, i32)
    elsewhere = tuple(rank if d == axis else d for d in axes)
    sizes = (*shape, n)
    pairs = (_along(value, shape, element), _along(value, shape, element, elsewhere), here, there)
    places = new.loops(Loops(sizes, pairs, before, axes, i32, "sum"))
    found = (_along(places, shape, i32, elsewhere), there, here)
    indices = new.loops(Loops(sizes, found, place_of, axes, i32, "sum"))
    if along.name == "sort_indices":
        return indices
    table, index = _along(value, shape, element, elsewhere), _along(indices, shape, i32)
    made = new.gathered(Gathered(sizes, table, rank, index, axes, from_front=True))
    assert made is not None
    return made


def _alone(to: Algebra, lost: Term, other: Term) -> Term:
    """Whether the first of two numbers is NaN, and the second is not."""
    return to.primitive("and", to.is_nan(lost), to.invert(to.is_nan(other)))


def _along(
    value: SSAValue,
    shape: tuple[int, ...],
    element: Attribute,
    loops: tuple[int, ...] | None = None,
) -> Shown:
    """A tensor, read along one loop for each axis; the first ones by default."""
    axes = range(len(shape)) if loops is None else loops
    return Shown(value, shape, tuple(((d, 1),) for d in axes), (0,) * len(shape), element)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tuple(cast("TensorType[Attribute]", value.type).get_shape())
