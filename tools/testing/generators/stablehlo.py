"""Random programs of stablehlo: one operation of any kind, on tensors of random shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

FLOATS = ("f32", "f32", "f16", "bf16")
INTEGERS = ("i32", "i32", "ui32", "i8")
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, "i1")

UNARY: Sequence[tuple[str, Sequence[str]]] = (
    ("abs sign", ("f32", "f16", "i32")),
    ("negate", ("f32", "f16", "i32", "ui32")),
    ("cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one", FLOATS),
    ("logistic round_nearest_afz round_nearest_even rsqrt sine sqrt tan tanh", FLOATS),
    ("not", ("i32", "ui32", "i1")),
    ("popcnt count_leading_zeros", ("i32", "ui32", "i8")),
)
"""Functions of one element, and the element types that they take."""

BINARY: Sequence[tuple[str, Sequence[str]]] = (
    ("add maximum minimum multiply", ALL),
    ("divide remainder subtract", NUMBERS),
    ("and or xor", (*INTEGERS, "i1")),
    ("atan2 power", ("f32",)),
    ("shift_left shift_right_arithmetic shift_right_logical", INTEGERS),
)
"""Functions of two elements, and the element types that they take."""

COMPARISONS = ("EQ", "NE", "GE", "GT", "LE", "LT")

MERGES = ("add", "maximum", "minimum", "multiply")


@dataclass(frozen=True)
class Drawn:
    """An operation of a program.

    Attributes:
        name: without its dialect.
        operands: the types of its operands, which are the arguments of the program.
        results: the types of its results.
        properties: the text of its properties.
        regions: the texts of its regions.
        firsts: the operations that merge with the last operands, which must change nothing: how
            often they are merged is not defined.
    """

    name: str
    operands: Sequence[str]
    results: Sequence[str]
    properties: str = ""
    regions: Sequence[str] = ()
    firsts: Sequence[str] = ()

    def text(self) -> str:
        """The program."""
        arguments = ", ".join(f"%a{i}: {each}" for i, each in enumerate(self.operands))
        names = ", ".join(f"%a{i}" for i in range(len(self.operands)))
        made = ", ".join(f"%r{i}" for i in range(len(self.results)))
        regions = f" ({', '.join(self.regions)})" if self.regions else ""
        properties = f" <{{{self.properties}}}>" if self.properties else ""
        types = f"({', '.join(self.operands)}) -> ({', '.join(self.results)})"
        return (
            f"builtin.module {{ func.func @main({arguments}) -> ({', '.join(self.results)}) {{\n"
            f'{made} = "stablehlo.{self.name}"({names}){properties}{regions} : {types}\n'
            f"func.return {made} : {', '.join(self.results)} }} }}"
        )


def tensor(shape: Sequence[int], kind: str) -> str:
    """The text of a type."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{kind}>"


def integers(name: str, values: Sequence[int]) -> str:
    """The text of a property that is a list of integers."""
    listed = ", ".join(map(str, values))
    return f"{name} = array<i64: {listed}>" if values else f"{name} = array<i64>"


def pairs(name: str, values: Sequence[tuple[int, int]]) -> str:
    """The text of a property that is a list of pairs."""
    rows = ", ".join(f"[{low}, {high}]" for low, high in values)
    return f"{name} = dense<[{rows}]> : tensor<{len(values)}x2xi64>"


def merging(name: str, kind: str) -> str:
    """The text of a region that merges two elements."""
    one = tensor((), kind)
    return (
        f'{{ ^bb0(%x: {one}, %y: {one}): %z = "stablehlo.{name}"(%x, %y) : ({one}, {one}) -> {one}'
        f' "stablehlo.return"(%z) : ({one}) -> () }}'
    )


def comparing(direction: str, kind: str) -> str:
    """The text of a region that compares two elements."""
    one, truth = tensor((), kind), tensor((), "i1")
    how = f"comparison_direction = #stablehlo<comparison_direction {direction}>"
    return (
        f'{{ ^bb0(%x: {one}, %y: {one}): %z = "stablehlo.compare"(%x, %y) <{{{how}}}> : '
        f'({one}, {one}) -> {truth} "stablehlo.return"(%z) : ({truth}) -> () }}'
    )


def _shape(random: Random, least: int = 0, most: int = 3) -> list[int]:
    return [random.choice((1, 2, 3, 4, 5)) for _ in range(random.randint(least, most))]


def _unary(random: Random) -> Drawn:
    names, kinds = random.choice(UNARY)
    name, type_ = random.choice(names.split()), tensor(_shape(random), random.choice(kinds))
    return Drawn(name, [type_], [type_])


def _binary(random: Random) -> Drawn:
    names, kinds = random.choice(BINARY)
    name, type_ = random.choice(names.split()), tensor(_shape(random), random.choice(kinds))
    return Drawn(name, [type_, type_], [type_])


def _compare(random: Random) -> Drawn:
    shape, kind = _shape(random), random.choice(ALL)
    how = f"comparison_direction = #stablehlo<comparison_direction {random.choice(COMPARISONS)}>"
    if kind in FLOATS and random.random() < 0.3:
        how += ", compare_type = #stablehlo<comparison_type TOTALORDER>"
    return Drawn("compare", [tensor(shape, kind)] * 2, [tensor(shape, "i1")], how)


def _choice(random: Random) -> Drawn:
    shape, kind = _shape(random), random.choice(NUMBERS)
    type_, one = tensor(shape, kind), tensor((), kind)
    if random.random() < 0.5:
        pred = tensor(random.choice((shape, ())), "i1")
        return Drawn("select", [pred, type_, type_], [type_])
    low, high = random.choice((type_, one)), random.choice((type_, one))
    return Drawn("clamp", [low, type_, high], [type_])


def _convert(random: Random) -> Drawn:
    shape = _shape(random)
    if random.random() < 0.3:
        name, bits = "reduce_precision", (random.randint(4, 8), random.randint(2, 23))
        type_ = tensor(shape, "f32")
        how = f"exponent_bits = {bits[0]} : i32, mantissa_bits = {bits[1]} : i32"
        return Drawn(name, [type_], [type_], how)
    kinds = [random.choice(ALL), random.choice(ALL)]
    return Drawn("convert", [tensor(shape, kinds[0])], [tensor(shape, kinds[1])])


def _moved(random: Random) -> Drawn:
    shape, kind = _shape(random, 1), random.choice(ALL)
    given, rank = tensor(shape, kind), len(shape)
    order = random.sample(range(rank), rank)
    if random.random() < 0.3:
        made = tensor([shape[a] for a in order], kind)
        return Drawn("transpose", [given], [made], integers("permutation", order))
    if random.random() < 0.3:
        axes = sorted(random.sample(range(rank), random.randint(0, rank)))
        return Drawn("reverse", [given], [given], integers("dimensions", axes))
    if random.random() < 0.4:
        starts = [random.randint(0, n - 1) for n in shape]
        limits = [random.randint(a, n) for a, n in zip(starts, shape, strict=True)]
        steps = [random.randint(1, 2) for _ in shape]
        sizes = [-(-(b - a) // s) for a, b, s in zip(starts, limits, steps, strict=True)]
        lists = ("start_indices", starts), ("limit_indices", limits), ("strides", steps)
        how = ", ".join(integers(*each) for each in lists)
        return Drawn("slice", [given], [tensor(sizes, kind)], how)
    if random.random() < 0.4:
        axis = random.randrange(rank)
        sizes = [random.randint(1, 3) for _ in range(random.randint(1, 3))]
        parts = [tensor([n if a == axis else m for a, m in enumerate(shape)], kind) for n in sizes]
        made = tensor([sum(sizes) if a == axis else m for a, m in enumerate(shape)], kind)
        return Drawn("concatenate", parts, [made], f"dimension = {axis} : i64")
    wide = [*shape, *_shape(random, 0, 1)]
    random.shuffle(wide)
    axes = _places(random, shape, wide)
    own = [random.choice((n, n, 1)) for n in shape]
    how = integers("broadcast_dimensions", axes)
    return Drawn("broadcast_in_dim", [tensor(own, kind)], [tensor(wide, kind)], how)


def _places(random: Random, shape: Sequence[int], wide: Sequence[int]) -> list[int]:
    """An axis of as many elements for each axis of a shape, each once."""
    axes: list[int] = []
    for n in shape:
        axes.append(random.choice([a for a, m in enumerate(wide) if m == n and a not in axes]))
    return axes


def _pad(random: Random) -> Drawn:
    shape, kind = _shape(random, 1), random.choice(ALL)
    low = [random.randint(-1, 2) for _ in shape]
    between = [random.choice((0, 0, 1, 2)) for _ in shape]
    whole = [n + (n - 1) * b for n, b in zip(shape, between, strict=True)]
    high = [max(random.randint(-1, 2), -(n + a)) for n, a in zip(whole, low, strict=True)]
    sizes = [n + a + b for n, a, b in zip(whole, low, high, strict=True)]
    lists = ("edge_padding_low", low), ("edge_padding_high", high), ("interior_padding", between)
    how = ", ".join(integers(*each) for each in lists)
    return Drawn("pad", [tensor(shape, kind), tensor((), kind)], [tensor(sizes, kind)], how)


def _iota(random: Random) -> Drawn:
    shape = _shape(random, 1)
    how = f"iota_dimension = {random.randrange(len(shape))} : i64"
    return Drawn("iota", [], [tensor(shape, random.choice(NUMBERS))], how)


def _dot(random: Random) -> Drawn:
    batch, terms = _shape(random, 0, 2), _shape(random, 0, 2)
    rows, columns = _shape(random, 0, 2), _shape(random, 0, 2)
    sides: list[list[tuple[int, str, int]]] = []
    for free in (rows, columns):
        axes = [(n, "b", i) for i, n in enumerate(batch)]
        axes += [(n, "t", i) for i, n in enumerate(terms)]
        axes += [(n, "f", i) for i, n in enumerate(free)]
        kept = [each for each in axes if each[1] == "f"]
        random.shuffle(axes)
        order = iter(kept)
        sides.append([next(order) if each[1] == "f" else each for each in axes])
    kind = random.choice(("f32", "f32", "f16", "i32"))
    named: list[str] = []
    for what, tag, count in (("batching", "b", len(batch)), ("contracting", "t", len(terms))):
        for side, axes in zip(("lhs", "rhs"), sides, strict=True):
            found = [next(a for a, e in enumerate(axes) if e[1:] == (tag, i)) for i in range(count)]
            named.append(f"{side}_{what}_dimensions = {found}")
    types = [tensor([n for n, _, _ in axes], kind) for axes in sides]
    how = f"dot_dimension_numbers = #stablehlo.dot<{', '.join(named)}>"
    return Drawn("dot_general", types, [tensor([*batch, *rows, *columns], kind)], how)


def _moves(held: Sequence[int], under: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The number of places of a window along each axis."""
    each = zip(held, under, strides, strict=True)
    return [(h - u) // s + 1 if h >= u else 0 for h, u, s in each]


def _lists(axes: Sequence[str]) -> str:
    return f"[{', '.join(axes)}]"


def _convolution(random: Random) -> Drawn:
    rank = random.randint(0, 2)
    groups = random.choice((1, 1, 2))
    batches = random.choice((1, 2)) if groups == 1 else 1
    n, c, o = random.choice((1, 2)) * batches, random.randint(1, 3), random.randint(1, 2)
    outputs, spatial = o * groups * batches, [str(i) for i in range(rank)]
    image = [random.randint(2, 6) for _ in range(rank)]
    kernel = [random.randint(1, 3) for _ in range(rank)]
    strides, wide, reach = ([random.choice((1, 1, 2)) for _ in range(rank)] for _ in range(3))
    pads = [(random.randint(-1, 2), random.randint(0, 2)) for _ in range(rank)]
    turned = [random.random() < 0.3 for _ in range(rank)]
    held = [(m - 1) * w + 1 + sum(p) for m, w, p in zip(image, wide, pads, strict=True)]
    under = [(k - 1) * r + 1 for k, r in zip(kernel, reach, strict=True)]
    sizes = _moves(held, under, strides)
    named = [
        dict(zip(("b", "f", *spatial), (n, c * groups, *image), strict=True)),
        dict(zip(("o", "i", *spatial), (outputs, c, *kernel), strict=True)),
        dict(zip(("b", "f", *spatial), (n // batches, outputs, *sizes), strict=True)),
    ]
    usual = random.random() < 0.4
    orders = [list(each) if usual else random.sample(list(each), len(each)) for each in named]
    kind = random.choice(("f32", "f32", "f16"))
    both = zip(named, orders, strict=True)
    types = [tensor([each[a] for a in order], kind) for each, order in both]
    image_axes, kernel_axes, made_axes = map(_lists, orders)
    flags = ", ".join(str(each).lower() for each in turned)
    parts = [
        f"dimension_numbers = #stablehlo.conv<{image_axes}x{kernel_axes}->{made_axes}>",
        f"feature_group_count = {groups} : i64, batch_group_count = {batches} : i64",
    ]
    if rank:
        parts += [
            integers("window_strides", strides),
            integers("lhs_dilation", wide),
            integers("rhs_dilation", reach),
            pairs("padding", pads),
            f"window_reversal = array<i1: {flags}>",
        ]
    return Drawn("convolution", types[:2], types[2:], ", ".join(parts))


def _reduce(random: Random) -> Drawn:
    shape, count = _shape(random, 1), random.choice((1, 1, 2))
    axes = sorted(random.sample(range(len(shape)), random.randint(0, len(shape))))
    kept = [n for a, n in enumerate(shape) if a not in axes]
    kind = random.choice(("f32", "f32", "f16", "i32", "i1"))
    name = random.choice(MERGES)
    if count == 1:
        region = merging(name, kind)
    else:
        one = tensor((), kind)
        # Each result depends on all four elements, so that nothing but halves merges them.
        region = (
            f"{{ ^bb0(%x: {one}, %i: {one}, %y: {one}, %j: {one}): "
            f'%p = "stablehlo.maximum"(%x, %y) : ({one}, {one}) -> {one} '
            f'%q = "stablehlo.{name}"(%i, %j) : ({one}, {one}) -> {one} '
            f'"stablehlo.return"(%p, %q) : ({one}, {one}) -> () }}'
        )
    given = [*[tensor(shape, kind)] * count, *[tensor((), kind)] * count]
    made = [tensor(kept, kind)] * count
    firsts = [name] if count == 1 else ["maximum", name]
    return Drawn("reduce", given, made, integers("dimensions", axes), [region], firsts)


def _window(random: Random) -> Drawn:
    shape = _shape(random, 1)
    window = [random.randint(1, min(n, 3)) for n in shape]
    strides, reach = ([random.choice((1, 1, 2)) for _ in shape] for _ in range(2))
    wide = [random.choice((1, 1, 1, 2)) for _ in shape]
    pads = [(random.randint(0, 2), random.randint(0, 2)) for _ in shape]
    held = [(n - 1) * w + 1 + sum(p) for n, w, p in zip(shape, wide, pads, strict=True)]
    under = [(k - 1) * r + 1 for k, r in zip(window, reach, strict=True)]
    sizes = _moves(held, under, strides)
    kind = random.choice(("f32", "f32", "f16", "i32"))
    lists = ("window_dimensions", window), ("window_strides", strides)
    more = ("base_dilations", wide), ("window_dilations", reach)
    how = ", ".join([*(integers(*each) for each in (*lists, *more)), pairs("padding", pads)])
    name = random.choice(MERGES)
    region = merging(name, kind)
    return Drawn(
        "reduce_window",
        [tensor(shape, kind), tensor((), kind)],
        [tensor(sizes, kind)],
        how,
        [region],
        [name],
    )


def _scatter_selected(random: Random) -> Drawn:
    shape = _shape(random, 1)
    window = [random.randint(1, min(n, 3)) for n in shape]
    strides = [random.choice((1, 1, 2)) for _ in shape]
    # A window that lies in the padding selects nothing.
    pads = [(random.randint(0, k), random.randint(0, k)) for k in window]
    sizes = [
        (n + sum(p) - k) // s + 1 for n, p, k, s in zip(shape, pads, window, strides, strict=True)
    ]
    kind = random.choice(("f32", "f16", "i32", "i8", "i1"))
    how = ", ".join(
        [
            integers("window_dimensions", window),
            integers("window_strides", strides),
            pairs("padding", pads),
        ]
    )
    select = comparing(random.choice(("GE", "GT", "LE", "LT")), kind)
    regions = [select, merging(random.choice(("add", *MERGES)), kind)]
    types = [tensor(shape, kind), tensor(sizes, kind), tensor((), kind)]
    return Drawn("select_and_scatter", types, types[:1], how, regions)


def _sort(random: Random) -> Drawn:
    shape, kind = _shape(random, 1), random.choice(("f32", "i32"))
    how = f"dimension = {random.randrange(len(shape))} : i64, is_stable = true"
    type_, region = tensor(shape, kind), comparing(random.choice(("LT", "GT")), kind)
    return Drawn("sort", [type_], [type_], how, [region])


def _slice_at(random: Random) -> Drawn:
    shape, kind = _shape(random, 1), random.choice(NUMBERS)
    sizes = [random.randint(1, n) for n in shape]
    given, part = tensor(shape, kind), tensor(sizes, kind)
    starts = [tensor((), "i32")] * len(shape)
    if random.random() < 0.5:
        how = integers("slice_sizes", sizes)
        return Drawn("dynamic_slice", [given, *starts], [part], how)
    return Drawn("dynamic_update_slice", [given, part, *starts], [given])


def _batch_norm(random: Random) -> Drawn:
    shape = [random.randint(2, 4) for _ in range(random.randint(2, 3))]
    axis = random.randrange(len(shape))
    whole, each = tensor(shape, "f32"), tensor([shape[axis]], "f32")
    how = f"epsilon = 1.0e-03 : f32, feature_index = {axis} : i64"
    which = random.choice(("inference", "training", "grad"))
    if which == "inference":
        given, made = [whole, *[each] * 4], [whole]
    elif which == "training":
        given, made = [whole, each, each], [whole, each, each]
    else:
        given, made = [whole, each, each, each, whole], [whole, each, each]
    return Drawn(f"batch_norm_{which}", given, made, how)


KINDS: Sequence[Callable[[Random], Drawn]] = (
    *(_unary, _binary, _compare, _choice, _convert, _moved, _pad, _iota, _dot, _convolution),
    *(_reduce, _window, _scatter_selected, _sort, _slice_at, _batch_norm),
)
"""What draws the operations of each kind."""


def random_program(random: Random) -> Drawn:
    """A random operation, as a program."""
    return random.choice(KINDS)(random)
