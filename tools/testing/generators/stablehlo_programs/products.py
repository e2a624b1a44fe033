"""Draws products: contractions and convolutions with all their attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import bf16, f16, f32, f64, i8, i32
from xdsl.ir import Attribute

from .....dialects import nn, stablehlo
from .draft import NARROW_FLOATS, Draft, Draw, Kinds, flags, integers, number, pairs

FACTORS: Kinds = (*[f32] * 8, *[f16] * 2, bf16, f64, *[i32] * 2, i8, NARROW_FLOATS[0])
"""The element types of factors."""

SUMS: Mapping[Attribute, Kinds] = {f16: (f16, f32), bf16: (bf16, f32), i8: (i8, i32)}
"""The element types of sums of products, where they need not be those of the factors."""


def _sums(draft: Draft, element: Attribute) -> Attribute:
    return f32 if element in NARROW_FLOATS else draft.choice(SUMS.get(element, (element,)))


def _dot_general(draft: Draft, name: str) -> None:
    lhs = draft.value(FACTORS)
    shape, element = nn.shape_of(lhs), nn.element_of(lhs)
    order = draft.random.sample(range(len(shape)), len(shape))
    count = draft.random.randint(0, len(shape))
    batches, terms = order[:count][: draft.random.randint(0, 2)], order[:count]
    terms = [a for a in terms if a not in batches]
    kept = [a for a in range(len(shape)) if a not in (*batches, *terms)]
    free = draft.shape(0, 1 + (len(kept) == 0))
    # The axes of the second factor, in any order: common ones, summed ones, and its own.
    own = [
        *(("b", a) for a in batches),
        *(("t", a) for a in terms),
        *(("f", i) for i in range(len(free))),
    ]
    draft.random.shuffle(own)
    mine = [each for each in own if each[0] == "f"]
    sizes = [free[mine.index(each)] if each[0] == "f" else shape[each[1]] for each in own]
    rhs = draft.of(sizes, element, lhs)
    axes = stablehlo.DotAxes(
        tuple(batches),
        tuple(own.index(("b", a)) for a in batches),
        tuple(terms),
        tuple(own.index(("t", a)) for a in terms),
    )
    others = [n for each, n in zip(own, sizes, strict=True) if each[0] == "f"]
    made = [*(shape[a] for a in batches), *(shape[a] for a in kept), *others]
    how = {"dot_dimension_numbers": stablehlo.DotAttr(axes)}
    draft.add(name, [lhs, rhs], [nn.tensor(made, _sums(draft, element))], how)


def _dot(draft: Draft, name: str) -> None:
    lhs = draft.value(FACTORS, 1, 2)
    shape, element = nn.shape_of(lhs), nn.element_of(lhs)
    free = draft.shape(0, 1)
    rhs = draft.of((shape[-1], *free), element, lhs)
    draft.add(name, [lhs, rhs], [nn.tensor((*shape[:-1], *free), _sums(draft, element))])


def _convolution(draft: Draft, name: str) -> None:
    random = draft.random
    rank = random.randint(name != "stablehlo.convolution", 2)
    groups = random.choice((1, 1, 2))
    batches = random.choice((1, 1, 2)) if groups == 1 else 1
    n, c, o = random.choice((1, 2)) * batches, random.randint(1, 3), random.randint(1, 2)
    outputs, usual = o * groups * batches, random.random() < 0.4
    image = [random.randint(1, 6) for _ in range(rank)]
    kernel = [random.randint(1, 3) for _ in range(rank)]
    strides, wide, reach = ([random.choice((1, 1, 2)) for _ in range(rank)] for _ in range(3))
    pads = [(random.randint(-1, 2), random.randint(0, 2)) for _ in range(rank)]
    turned = [random.random() < 0.3 for _ in range(rank)]
    if usual:
        wide, turned = [1] * rank, [False] * rank
    ends = zip(image, kernel, strides, pads, wide, reach, strict=True)
    sizes = [stablehlo.window_places(m, k, s, p, dilation=w, reach=r) for m, k, s, p, w, r in ends]
    element = draft.choice(FACTORS)
    image_axes, shape = _ordered(draft, (n, c * groups, *image), usual=usual)
    # The axes of a kernel are listed as those that it takes, those that it makes, and spatial ones.
    kernel_axes, under = _ordered(draft, (c, outputs, *kernel), usual=usual, swapped=True)
    made_axes, made = _ordered(draft, (n // batches, outputs, *sizes), usual=usual)
    operands = [draft.of(shape, element), draft.of(under, element)]
    how: dict[str, Attribute] = {
        "dimension_numbers": stablehlo.ConvAttr(
            stablehlo.ConvAxes(image_axes, kernel_axes, made_axes)
        ),
        "feature_group_count": number(groups),
        "batch_group_count": number(batches),
    }
    lists = {"window_strides": strides, "lhs_dilation": wide, "rhs_dilation": reach}
    for what, values in lists.items():
        if set(values) != {1} or draft.chance(0.5):
            how[what] = integers(values)
    if any(turned) or draft.chance(0.5):
        how["window_reversal"] = flags(turned)
    if name == "stablehlo.convolution":
        how["padding"] = pairs(pads)
    else:
        operands.append(draft.constant([list(each) for each in pads], i32))
    draft.add(name, operands, [nn.tensor(made, _sums(draft, element))], how)


def _ordered(
    draft: Draft, sizes: Sequence[int], *, usual: bool, swapped: bool = False
) -> tuple[tuple[int, int, tuple[int, ...]], list[int]]:
    """Where each axis lies in a tensor, and the tensor's shape.

    Args:
        usual: whether they lie in the order of most networks.
        swapped: whether that order begins with the second axis.
    """
    order = list(range(len(sizes)))
    if swapped:
        order[:2] = [1, 0]
    if not usual:
        draft.random.shuffle(order)
    at = [order.index(a) for a in range(len(sizes))]
    return (at[0], at[1], tuple(at[2:])), [sizes[a] for a in order]


TABLE: Mapping[str, Draw] = {
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dot": _dot,
    "stablehlo.convolution": _convolution,
    "stablehlo.dynamic_conv": _convolution,
}
"""What draws each product, by name."""
