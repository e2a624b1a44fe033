"""Draws operations that move elements, those whose sizes are operands, and constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import f32, i1, i16, i32, i64
from xdsl.ir import Attribute, SSAValue

from .....dialects import nn
from .....dialects.dtypes import ELEMENTS, numpy_dtype
from .....ir.support.number_kinds import bit_width
from .draft import ALL, NUMBERS, Draft, Draw, Properties, integers, number, tensor_like


def _constant(draft: Draft, _: str) -> None:
    shape, element = draft.shape(), draft.choice(ALL)
    draft.values.append(draft.constant(draft.array(shape, element), element))


def _iota(draft: Draft, name: str) -> None:
    shape = draft.shape(1)
    how = {"iota_dimension": number(draft.random.randrange(len(shape)))}
    made = nn.tensor(shape, draft.choice((*[i32] * 20, *NUMBERS)))
    draft.add(name, _sizes(draft, name, shape), [made], how)


def _sizes(draft: Draft, name: str, sizes: Sequence[int]) -> list[SSAValue]:
    """The operand that is the shape of a result, if an operation has one."""
    if not name.startswith("stablehlo.dynamic_"):
        return []
    return [draft.constant(list(sizes), draft.choice((i32, i64)))]


def _reshape(draft: Draft, name: str) -> None:
    value = draft.value(ALL)
    shape = _factors(draft, prod(nn.shape_of(value)))
    draft.add(name, [value, *_sizes(draft, name, shape)], [tensor_like(value, shape)])


def _factors(draft: Draft, size: int) -> list[int]:
    """A shape of so many elements."""
    if size == 1 and draft.chance(0.3):
        return []
    found = [size]
    for _ in range(draft.random.randint(0, 2)):
        last = found.pop()
        divisors = [n for n in range(1, last + 1) if last % n == 0]
        first = draft.choice(divisors or (1, 2, 3))
        found += [first, last // first]
    draft.random.shuffle(found)
    return found


def _transpose(draft: Draft, name: str) -> None:
    value = draft.value(ALL)
    shape = nn.shape_of(value)
    order = draft.random.sample(range(len(shape)), len(shape))
    made = tensor_like(value, [shape[a] for a in order])
    draft.add(name, [value], [made], {"permutation": integers(order)})


def _reverse(draft: Draft, name: str) -> None:
    value = draft.value(ALL, 1)
    axes = draft.some(len(nn.shape_of(value)), 1)
    draft.add(name, [value], [value.type], {"dimensions": integers(axes)})


def _slice(draft: Draft, name: str) -> None:
    value = draft.value(ALL)
    shape, random = nn.shape_of(value), draft.random
    whole = [draft.chance(0.3) for _ in shape]
    starts = [
        0 if w or not n else random.randint(0, n - 1) for n, w in zip(shape, whole, strict=True)
    ]
    limits = [
        n if w else random.randint(a, n) for a, n, w in zip(starts, shape, whole, strict=True)
    ]
    strides = [random.choice((1, 1, 2, 3)) for _ in shape]
    ends = zip(starts, limits, strides, strict=True)
    made = tensor_like(value, [-(-(b - a) // s) for a, b, s in ends])
    lists = {"start_indices": starts, "limit_indices": limits, "strides": strides}
    if name == "stablehlo.slice":
        draft.add(name, [value], [made], {what: integers(each) for what, each in lists.items()})
        return
    if not shape:
        return
    kind = draft.choice((i32, i64))
    draft.add(name, [value, *(draft.constant(each, kind) for each in lists.values())], [made])


def _concatenate(draft: Draft, name: str) -> None:
    first = draft.value(ALL, 1)
    shape = nn.shape_of(first)
    axis, element = draft.random.randrange(len(shape)), nn.element_of(first)
    parts = [first]
    for _ in range(draft.random.randint(0, 2)):
        size = draft.choice((shape[axis], draft.random.randint(1, 3)))
        own = [size if a == axis else n for a, n in enumerate(shape)]
        parts.append(draft.of(own, element))
    draft.random.shuffle(parts)
    total = sum(nn.shape_of(each)[axis] for each in parts)
    made = tensor_like(first, [total if a == axis else n for a, n in enumerate(shape)])
    draft.add(name, parts, [made], {"dimension": number(axis)})


def _broadcast_in_dim(draft: Draft, name: str) -> None:
    value = draft.value(ALL)
    own = nn.shape_of(value)
    wide = [draft.choice(draft.shared.sizes) if n == 1 and draft.chance(0.7) else n for n in own]
    axes = list(range(len(own)))
    for _ in range(draft.random.randint(0, 2)):
        at = draft.random.randint(0, len(wide))
        wide.insert(at, draft.random.randint(1, 3))
        axes = [a + (a >= at) for a in axes]
    if draft.chance(0.3):
        order = draft.random.sample(range(len(wide)), len(wide))
        wide = [wide[a] for a in order]
        axes = [order.index(a) for a in axes]
    how = {"broadcast_dimensions": integers(axes)}
    draft.add(name, [value, *_sizes(draft, name, wide)], [tensor_like(value, wide)], how)


def _broadcast(draft: Draft, name: str) -> None:
    value = draft.value(ALL, 0, 2)
    sizes = [draft.random.randint(1, 3) for _ in range(draft.random.randint(0, 2))]
    made = tensor_like(value, (*sizes, *nn.shape_of(value)))
    draft.add(name, [value], [made], {"broadcast_sizes": integers(sizes)})


def _pad(draft: Draft, name: str) -> None:
    value = draft.value(ALL, int(name != "stablehlo.pad"))
    shape, random = nn.shape_of(value), draft.random
    low = [random.choice((-1, 0, 0, 1, 2)) for _ in shape]
    between = [random.choice((0, 0, 0, 1, 2)) for _ in shape]
    whole = [n + max(n - 1, 0) * b for n, b in zip(shape, between, strict=True)]
    ends = zip(whole, low, strict=True)
    high = [max(random.choice((-1, 0, 0, 1, 2)), -(n + a)) for n, a in ends]
    made = tensor_like(value, [n + a + b for n, a, b in zip(whole, low, high, strict=True)])
    lists = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": between}
    operands, how = [value, draft.of((), nn.element_of(value))], dict[str, Attribute]()
    if name == "stablehlo.pad":
        how = {what: integers(each) for what, each in lists.items()}
    else:
        kind = draft.choice((i32, i64))
        operands += [draft.constant(each, kind) for each in lists.values()]
    draft.add(name, operands, [made], how)


def _bitcast_convert(draft: Draft, name: str) -> None:
    """Elements of another type of as many bits, or of one half or twice the bits."""
    whole = [each for each in ELEMENTS if bit_width(numpy_dtype(each)) % 8 == 0 and each != i1]
    value = draft.value([f32, i32, i16, *whole])
    shape, bits = nn.shape_of(value), bit_width(numpy_dtype(nn.element_of(value)))
    widths = {bits: shape, bits // 2: (*shape, 2)}
    if shape and shape[-1] == 2:
        widths[bits * 2] = shape[:-1]
    fits = [each for each in whole if bit_width(numpy_dtype(each)) in widths]
    element = draft.choice(fits)
    made = nn.tensor(widths[bit_width(numpy_dtype(element))], element)
    draft.add(name, [value], [made])


def _barrier(draft: Draft, name: str) -> None:
    some = [draft.value(ALL) for _ in range(draft.random.randint(1, 2))]
    draft.add(name, some, [each.type for each in some])


def _dimension_size(draft: Draft, name: str) -> None:
    value = draft.value(ALL, 1)
    how: Properties = {"dimension": number(draft.random.randrange(len(nn.shape_of(value))))}
    draft.add(name, [value], [nn.tensor((), i32)], how)


TABLE: Mapping[str, Draw] = {
    "stablehlo.constant": _constant,
    "stablehlo.iota": _iota,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.reshape": _reshape,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.transpose": _transpose,
    "stablehlo.reverse": _reverse,
    "stablehlo.slice": _slice,
    "stablehlo.real_dynamic_slice": _slice,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.broadcast": _broadcast,
    "stablehlo.pad": _pad,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.bitcast_convert": _bitcast_convert,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.get_dimension_size": _dimension_size,
}
"""What draws each operation, by name."""
