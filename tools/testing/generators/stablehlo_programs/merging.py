"""Draws operations whose regions merge, select, compare or map single elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import BoolAttr, f16, f32, i1, i8, i16, i32
from xdsl.ir import Attribute, Region, SSAValue

from .....dialects import nn, stablehlo
from .....dialects.dtypes import numpy_dtype
from .....ir.support.number_kinds import is_floating
from . import elementwise
from .draft import (
    INTEGERS,
    NUMBERS,
    WIDE_FLOATS,
    Draft,
    Draw,
    Kinds,
    integers,
    number,
    pairs,
    scalar_like,
    tensor_like,
)
from .elementwise import compared

MERGED: Kinds = (*WIDE_FLOATS * 2, *[i32] * 4, *INTEGERS, i1, i1, *NUMBERS)

NUMERIC = ("add", "maximum", "minimum", "multiply")
OF_INTEGERS = (*NUMERIC, "and", "or", "xor")
OF_TRUTHS = ("and", "or", "add", "maximum", "minimum", "multiply", "xor")

Merge = Callable[[Draft, Sequence[SSAValue]], Sequence[SSAValue]]
"""Adds the operations of a region on two elements of each tensor, and returns what it yields."""


def _merges(element: Attribute) -> Sequence[str]:
    """The operations that merge elements of a type in any order."""
    if element == i1:
        return OF_TRUTHS
    return NUMERIC if is_floating(numpy_dtype(element)) else OF_INTEGERS


def neutral(name: str, element: Attribute) -> Any:
    """The number that an operation merges without effect."""
    dtype = numpy_dtype(element)
    if name in ("add", "or", "xor"):
        return 0
    if name == "multiply":
        return 1
    if name == "and" or (name == "minimum" and element == i1):
        return -1 if dtype.kind == "i" else True if element == i1 else ml_dtypes.iinfo(dtype).max
    if element == i1:
        return False
    if is_floating(dtype):
        info = cast("Any", ml_dtypes.finfo(dtype))
        infinite = np.isinf(np.array(np.inf).astype(dtype).astype(np.float64))
        largest = np.inf if infinite else float(info.max)
        return largest if name == "minimum" else -largest
    whole = ml_dtypes.iinfo(dtype)
    return whole.max if name == "minimum" else whole.min


def _merged(draft: Draft, name: str, first: SSAValue, second: SSAValue) -> SSAValue:
    pair = [first, second] if draft.chance(0.7) else [second, first]
    return draft.add(f"stablehlo.{name}", pair, [first.type])[0]


def region_of(draft: Draft, types: Sequence[Attribute], merge: Merge) -> Region:
    """A region on single elements."""
    inner = draft.inside(types, scalars=True)
    inner.end(merge(inner, list(inner.block.args)))
    return inner.region()


def _combining(draft: Draft, elements: Sequence[Attribute]) -> tuple[Region, list[Any]]:
    """A region that merges two elements of each tensor in any order, and what it begins with."""
    types = [nn.tensor((), each) for each in (*elements, *elements)]
    if len(elements) == 2 and len(set(elements)) == 1 and draft.chance(0.3):
        region = region_of(draft, types, _largest_and_next)
        return region, [neutral("maximum", each) for each in elements]
    names, count = [draft.choice(_merges(each)) for each in elements], len(elements)

    def merge(inner: Draft, given: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [_merged(inner, n, given[i], given[count + i]) for i, n in enumerate(names)]

    region = region_of(draft, types, merge)
    return region, [neutral(n, e) for n, e in zip(names, elements, strict=True)]


def _largest_and_next(inner: Draft, given: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """The largest element of the first tensor, and of all others the largest.

    The second result depends on both tensors, so no combiner of one tensor is enough.
    """
    a, b, c, d = given
    high, low = ("or", "and") if nn.element_of(a) == i1 else ("maximum", "minimum")
    loser = _merged(inner, low, a, c)
    return [_merged(inner, high, a, c), _merged(inner, high, loser, _merged(inner, high, b, d))]


def _extreme(draft: Draft, name: str) -> None:
    """The largest or smallest elements along an axis, and their indices."""
    # Which of two NaN is found would depend on the order of merging.
    value = draft.numbers(draft.value((*[f32] * 4, f16, i32, i8), 1))
    shape, element = nn.shape_of(value), nn.element_of(value)
    axis, largest = draft.random.randrange(len(shape)), draft.chance(0.5)
    index, last = draft.choice((i32, i32, i16)), draft.chance(0.3)
    how = {"iota_dimension": number(axis)}
    places = draft.add("stablehlo.iota", [], [nn.tensor(shape, index)], how)[0]

    def better(inner: Draft, given: Sequence[SSAValue]) -> Sequence[SSAValue]:
        a, i, b, j = given
        more = compared(inner, a, b, "GT" if largest else "LT")
        if is_floating(numpy_dtype(element)):
            is_nan = compared(inner, a, a, "NE")
            more = inner.add("stablehlo.or", [more, is_nan], [more.type])[0]
        alike = compared(inner, a, b, "EQ")
        lower = compared(inner, i, j, "GT" if last else "LT")
        tied = inner.add("stablehlo.and", [alike, lower], [alike.type])[0]
        wins = inner.add("stablehlo.or", [more, tied], [more.type])[0]
        found = inner.add("stablehlo.select", [more, a, b], [a.type])[0]
        return [found, inner.add("stablehlo.select", [wins, i, j], [i.type])[0]]

    types = [nn.tensor((), each) for each in (element, index) * 2]
    region = region_of(draft, types, better)
    firsts = [neutral("maximum" if largest else "minimum", element), 0]
    begun = [draft.constant(n, e) for n, e in zip(firsts, (element, index), strict=True)]
    made = [n for a, n in enumerate(shape) if a != axis]
    draft.add(
        name,
        [value, places, *begun],
        [nn.tensor(made, element), nn.tensor(made, index)],
        {"dimensions": integers([axis])},
        [region],
    )


def _beside(draft: Draft, value: SSAValue, kinds: Kinds) -> list[SSAValue]:
    """A value, and sometimes another of its shape."""
    if draft.chance(0.75):
        return [value]
    if draft.chance(0.5):
        return [value, draft.another(value)]
    return [value, draft.of(nn.shape_of(value), draft.choice(kinds))]


def _reduce(draft: Draft, name: str) -> None:
    if draft.chance(0.2):
        _extreme(draft, name)
        return
    values = _beside(draft, draft.value(MERGED), MERGED)
    shape = nn.shape_of(values[0])
    elements = [nn.element_of(each) for each in values]
    region, firsts = _combining(draft, elements)
    axes = draft.some(len(shape), 1)
    begun = [draft.constant(n, e) for n, e in zip(firsts, elements, strict=True)]
    kept = [n for a, n in enumerate(shape) if a not in axes]
    made = [tensor_like(each, kept) for each in values]
    draft.add(name, [*values, *begun], made, {"dimensions": integers(axes)}, [region])


def _reduce_window(draft: Draft, name: str) -> None:
    values = _beside(draft, draft.value(MERGED, 1), MERGED)
    shape, random = nn.shape_of(values[0]), draft.random
    window = [random.randint(1, max(min(n, 3), 1)) for n in shape]
    strides, reach = ([random.choice((1, 1, 2)) for _ in shape] for _ in range(2))
    wide = [random.choice((1, 1, 1, 2)) for _ in shape]
    pads = [(random.randint(0, 2), random.randint(0, 2)) for _ in shape]
    if draft.chance(0.15):
        # Each result merges all elements up to its own.
        axis = random.randrange(len(shape))
        window = [n if a == axis else 1 for a, n in enumerate(shape)]
        strides = reach = wide = [1] * len(shape)
        back = draft.chance(0.5)
        ends = [(0, n - 1) if back else (n - 1, 0) for n in shape]
        pads = [ends[a] if a == axis and shape[a] else (0, 0) for a in range(len(shape))]
        window = [max(n, 1) for n in window]
    ends = zip(shape, window, strides, pads, wide, reach, strict=True)
    sizes = [stablehlo.window_places(n, k, s, p, dilation=w, reach=r) for n, k, s, p, w, r in ends]
    elements = [nn.element_of(each) for each in values]
    region, firsts = _combining(draft, elements)
    begun = [draft.constant(n, e) for n, e in zip(firsts, elements, strict=True)]
    how = {
        "window_dimensions": integers(window),
        "window_strides": integers(strides),
        "base_dilations": integers(wide),
        "window_dilations": integers(reach),
        "padding": pairs(pads),
    }
    made = [tensor_like(each, sizes) for each in values]
    draft.add(name, [*values, *begun], made, how, [region])


def _select_and_scatter(draft: Draft, name: str) -> None:
    value = draft.numbers(draft.value((*WIDE_FLOATS, i32, i8, i1), 1))
    shape, element, random = nn.shape_of(value), nn.element_of(value), draft.random
    window = [random.randint(1, max(min(n, 3), 1)) for n in shape]
    strides = [random.choice((1, 1, 2)) for _ in shape]
    # A window that lies in the padding selects nothing.
    pads = [(random.randint(0, k), random.randint(0, k)) for k in window]
    ends = zip(shape, window, strides, pads, strict=True)
    sizes = [stablehlo.window_places(n, k, s, p) for n, k, s, p in ends]
    direction = draft.choice(("GE", "GT", "LE", "LT"))
    types = [scalar_like(value)] * 2
    select = region_of(draft, types, lambda d, v: [compared(d, v[0], v[1], direction)])
    merge = draft.choice(OF_TRUTHS[:-1] if element == i1 else ("add", *NUMERIC))
    scatter = region_of(draft, types, lambda d, v: [_merged(d, merge, v[0], v[1])])
    first = draft.constant(neutral(merge, element), element)
    how = {
        "window_dimensions": integers(window),
        "window_strides": integers(strides),
        "padding": pairs(pads),
    }
    operands = [value, draft.of(sizes, element), first]
    draft.add(name, operands, [value.type], how, [select, scatter])


def _map(draft: Draft, name: str) -> None:
    values = _beside(draft, draft.value((*WIDE_FLOATS, *[i32] * 4, *INTEGERS, i1)), MERGED)
    inner = draft.inside([scalar_like(each) for each in values], scalars=True)
    for _ in range(draft.random.randint(1, 4)):
        what = draft.choice(tuple(elementwise.TABLE))
        elementwise.TABLE[what](inner, what)
    scalars = [each for each in inner.values if not nn.shape_of(each)]
    made = scalars[-1]
    inner.end([made])
    shape = nn.shape_of(values[0])
    how = {"dimensions": integers(range(len(shape)))}
    draft.add(name, values, [nn.tensor(shape, nn.element_of(made))], how, [inner.region()])


def _sort(draft: Draft, name: str) -> None:
    first = draft.value((*WIDE_FLOATS, *[i32] * 4, *INTEGERS, i1, *NUMBERS), 1)
    values = _beside(draft, first, MERGED)
    shape = nn.shape_of(first)
    axis = draft.random.randrange(-1, len(shape))
    types = [scalar_like(each) for each in values for _ in range(2)]
    region = region_of(draft, types, _order(draft))
    how = {"dimension": number(axis), "is_stable": BoolAttr.from_bool(True)}
    draft.add(name, values, [each.type for each in values], how, [region])


def _order(draft: Draft) -> Merge:
    """A comparison by one key, by several, in total order, or by the size of a number."""
    direction = draft.choice(("LT", "GT"))
    turned, total, by_size, several = (draft.chance(0.25) for _ in range(4))

    def before(inner: Draft, given: Sequence[SSAValue]) -> Sequence[SSAValue]:
        number_of_key = draft.random.randrange(len(given) // 2)
        a, b = given[2 * number_of_key : 2 * number_of_key + 2]
        is_float = is_floating(numpy_dtype(nn.element_of(a)))
        if by_size and (is_float or nn.element_of(a) in (i32, i8)):
            a, b = (inner.add("stablehlo.abs", [each], [each.type])[0] for each in (a, b))
        if turned:
            a, b = b, a
        # NaN has no place in an order that is not total.
        first = compared(inner, a, b, direction, total=is_float)
        if not several or len(given) < 4:
            return [first]
        c, d = given[:2] if number_of_key else given[2:4]
        alike = compared(inner, a, b, "EQ", total=is_float)
        more = compared(inner, c, d, "LT", total=is_floating(numpy_dtype(nn.element_of(c))))
        if total:
            return [inner.add("stablehlo.select", [alike, more, first], [first.type])[0]]
        both = inner.add("stablehlo.and", [alike, more], [first.type])[0]
        return [inner.add("stablehlo.or", [first, both], [first.type])[0]]

    return before


def _top_k(draft: Draft, name: str) -> None:
    value = draft.value((*WIDE_FLOATS, *[i32] * 4, *INTEGERS), 1)
    *outer, size = nn.shape_of(value)
    count = draft.random.randint(0, size)
    made = [tensor_like(value, (*outer, count)), nn.tensor((*outer, count), i32)]
    draft.add(name, [value], made, {"k": number(count)})


TABLE: Mapping[str, Draw] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.map": _map,
    "stablehlo.sort": _sort,
    "chlo.top_k": _top_k,
}
"""What draws each operation, by name."""
