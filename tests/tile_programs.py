"""Single structured operators with random legal plans at three levels, and their dense results.

The dense result is computed by brute force over index arrays: every point reads by the arithmetic
of the access map, and results are merged one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import hypothesis.strategies as st
import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, Builtin, ModuleOp, StringAttr, TensorType
from xdsl.ir import Block, Region
from xdsl.parser import Parser

from abele.dialects import abele, control, exchange, partition, tile
from abele.dialects.abele import Plan
from abele.dialects.dtypes import element_type
from abele.dialects.partition import access_layout, laid_out
from abele.dialects.structured import Body, Structure
from abele.ir.context import AbeleContext
from abele.ir.geometry.blocks import fill_of
from abele.ir.geometry.layout import Layout, linear_layout
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

FUNCTIONS = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "square": lambda x: x * x,
    "abs": np.abs,
    "neg": lambda x: -x,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "max": np.maximum,
    "less": lambda x, y: x < y,
    "select": lambda c, x, y: np.where(c != 0, x, y),
}
MERGE = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


@dataclass(frozen=True)
class Case:
    """An operator, its plan, the dtypes of its operands and result, and a seed for values."""

    structure: Structure
    plan: Plan
    dtypes: tuple[np.dtype, ...]
    tiles: int
    seed: int

    def operands(self) -> list[np.ndarray]:
        """Small integers, so that sums are exact in any order."""
        rng = np.random.default_rng(self.seed)
        return [
            rng.integers(-3, 4, access.shape).astype(dtype)
            for access, dtype in zip(self.structure.space.operands, self.dtypes, strict=False)
        ]

    def layouts(self) -> list[Layout]:
        space = self.structure.space
        return [access_layout(space, a, self.plan) for a in (*space.operands, *space.results)]


def dense(structure: Structure, operands: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """The operator's result, point by point, in float64 or int64, rounded at the end."""
    space, body = structure.space, structure.body
    points = np.indices(space.sizes).reshape(len(space.dims), space.points)

    def index(access: AccessMap) -> list[np.ndarray]:
        return [
            axis.resolve(
                np.full(points.shape[1], axis.offset) + sum(a * points[d] for d, a in axis.terms)
            )
            for axis in access.axes
        ]

    values = []
    for operand, access in zip(operands, space.operands, strict=True):
        at = index(access)
        missing = np.zeros(points.shape[1], bool)
        for i in at:
            missing |= i < 0
        taken = operand[tuple(np.where(missing, 0, i) for i in at)]
        taken = np.where(missing, fill_of(access.fill, operand.dtype), taken)
        values.append(taken.astype(np.int64 if operand.dtype.kind in "iu" else np.float64))
    with np.errstate(all="ignore"):
        value = np.asarray(FUNCTIONS[body.function](*values))
        (access,) = space.results
        at = np.zeros(space.points, np.int64)
        for i, axis in zip(index(access), access.axes, strict=True):
            at = at * axis.size + i
        if body.combiner is None:
            result = np.zeros(prod(access.shape), value.dtype)
            result[at] = value
        else:
            kind = value.dtype if value.dtype != bool else np.dtype(np.int64)
            result = np.full(prod(access.shape), fill_of(body.identity, kind), kind)
            MERGE[body.combiner].at(result, at, value)
        return result.astype(dtype).reshape(access.shape)


def _axis(size: int, *terms: tuple[int, int], **kw: object) -> AxisMap:
    return AxisMap(size, tuple(terms), **kw)


@st.composite
def convolutions(draw: st.DrawFn) -> Structure:
    """Groups, strides, dilations, paddings; weights [g, out, in, k...]."""
    rank = draw(st.integers(1, 2))
    n, g = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    out, channels = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    spatial = [
        (
            draw(st.integers(1, 6)),
            draw(st.integers(1, 3)),
            draw(st.integers(1, 3)),
            draw(st.integers(1, 2)),
            draw(st.integers(0, 2)),
        )
        for _ in range(rank)
    ]
    dims = [Dim("n", n), Dim("g", g), Dim("o", out)]
    dims += [Dim(f"y{i}", s[0]) for i, s in enumerate(spatial)]
    dims += [Dim("c", channels, "reduction")]
    dims += [Dim(f"k{i}", s[1], "reduction") for i, s in enumerate(spatial)]
    c = 3 + rank
    x = [_axis(n, (0, 1)), _axis(g, (1, 1)), _axis(channels, (c, 1))]
    for i, (y, k, stride, dilation, pad) in enumerate(spatial):
        extent = (y - 1) * stride + (k - 1) * dilation + 1
        size = max(1, extent - pad - draw(st.integers(0, 1)))
        terms = ((3 + i, stride), (c + 1 + i, dilation))
        x.append(_axis(size, *terms, offset=-pad, outside="fill"))
    w = [_axis(g, (1, 1)), _axis(out, (2, 1)), _axis(channels, (c, 1))]
    w += [_axis(s[1], (c + 1 + i, 1)) for i, s in enumerate(spatial)]
    result = identity_map(tuple(range(c)), (n, g, out, *(s[0] for s in spatial)))
    operands = (AccessMap(tuple(x)), AccessMap(tuple(w)))
    return Structure(Space(tuple(dims), operands, (result,)), Body("mul", "sum"))


@st.composite
def transposed_convolutions(draw: st.DrawFn) -> Structure:
    """y + pad = stride * x + k, so x = (y + pad - k) / stride where the division is exact."""
    stride, k, pad = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(0, 2))
    size, channels, out = (
        draw(st.integers(1, 5)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
    )
    y = max(1, stride * (size - 1) + k - pad)
    dims = (Dim("o", out), Dim("y", y), Dim("c", channels, "reduction"), Dim("k", k, "reduction"))
    x = AccessMap(
        (
            _axis(channels, (2, 1)),
            AxisMap(size, ((1, 1), (3, -1)), pad, stride, "exact", "fill"),
        )
    )
    w = AccessMap((_axis(channels, (2, 1)), _axis(out, (0, 1)), _axis(k, (3, 1))))
    result = identity_map((0, 1), (out, y))
    return Structure(Space(dims, (x, w), (result,)), Body("mul", "sum"))


@st.composite
def poolings(draw: st.DrawFn) -> Structure:
    """Windows that are padded with the combiner's identity or the nearest edge."""
    combiner, fill = draw(st.sampled_from([("max", float("-inf")), ("sum", 0.0), ("min", np.inf)]))
    channels, y, x = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 6))
    ky, kx, stride = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    pad = draw(st.integers(0, 2))
    outside = draw(st.sampled_from(["fill", "fill", "edge", "wrap", "reflect"]))
    dims = (
        Dim("c", channels),
        Dim("y", y),
        Dim("x", x),
        Dim("ky", ky, "reduction"),
        Dim("kx", kx, "reduction"),
    )

    def window(n: int, d: int, k: int) -> AxisMap:
        size = max(2, (n - 1) * stride + k - pad)
        return _axis(size, (d, stride), (d + 2, 1), offset=-pad, outside=outside)

    access = AccessMap((_axis(channels, (0, 1)), window(y, 1, ky), window(x, 2, kx)), fill)
    result = identity_map((0, 1, 2), (channels, y, x))
    return Structure(Space(dims, (access,), (result,)), Body("identity", combiner))


@st.composite
def elementwises(draw: st.DrawFn) -> Structure:
    """Any function of operands that broadcast against each other."""
    name = draw(st.sampled_from(["identity", "relu", "neg", "add", "sub", "mul", "max", "select"]))
    arity = {"identity": 1, "relu": 1, "neg": 1, "select": 3}.get(name, 2)
    shape = draw(st.lists(st.integers(1, 6), min_size=0, max_size=3))
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(shape))

    def operand() -> AccessMap:
        order = draw(st.permutations(range(len(shape))))
        kept = [d for d in order if draw(st.integers(0, 3))]
        return AccessMap(tuple(_axis(shape[d], (d, 1)) for d in kept))

    result = identity_map(tuple(range(len(shape))), tuple(shape))
    operands = tuple(operand() for _ in range(arity))
    return Structure(Space(dims, operands, (result,)), Body(name))


@st.composite
def matmuls(draw: st.DrawFn) -> Structure:
    """[b, m, k] by [b, k, n], with either transposed, and the batch in one or both."""
    b, m, n, k = (draw(st.integers(1, 5)) for _ in range(4))
    dims = (Dim("b", b), Dim("m", m), Dim("n", n), Dim("k", k, "reduction"))
    sizes = (b, m, n, k)

    def operand(axes: tuple[int, ...]) -> AccessMap:
        order = draw(st.permutations(axes))
        return AccessMap(tuple(_axis(sizes[d], (d, 1)) for d in order))

    left = operand(draw(st.sampled_from([(0, 1, 3), (1, 3)])))
    right = operand(draw(st.sampled_from([(0, 2, 3), (2, 3)])))
    order = tuple(draw(st.permutations((0, 1, 2))))
    result = identity_map(order, tuple(sizes[d] for d in order))
    return Structure(Space(dims, (left, right), (result,)), Body("mul", "sum"))


@st.composite
def reductions(draw: st.DrawFn) -> Structure:
    """Sums, products and extremes over some axes of one or two operands."""
    name, arity = draw(st.sampled_from([("identity", 1), ("square", 1), ("abs", 1), ("sub", 2)]))
    combiner = draw(st.sampled_from(["sum", "max", "min", "prod"]))
    limit = 2 if combiner == "prod" else 6
    kinds = draw(st.lists(st.booleans(), min_size=1, max_size=4))
    dims = tuple(
        Dim(f"d{i}", draw(st.integers(1, limit if merged else 6)))
        if not merged
        else Dim(f"d{i}", draw(st.integers(1, limit)), "reduction")
        for i, merged in enumerate(kinds)
    )
    kept = tuple(i for i, merged in enumerate(kinds) if not merged)
    access = identity_map(tuple(range(len(dims))), tuple(d.size for d in dims))
    result = identity_map(kept, tuple(dims[d].size for d in kept))
    return Structure(Space(dims, (access,) * arity, (result,)), Body(name, combiner))


def structures() -> st.SearchStrategy[Structure]:
    return st.one_of(
        convolutions(),
        transposed_convolutions(),
        poolings(),
        elementwises(),
        matmuls(),
        reductions(),
    )


@st.composite
def cases(
    draw: st.DrawFn,
    among: st.SearchStrategy[Structure] | None = None,
    dtypes: tuple[str, ...] = ("float32", "float32", "float16", "int32", "float64"),
) -> Case:
    """A structure and a random legal plan on 4 to 16 tiles."""
    structure = draw(structures() if among is None else among)
    dims = structure.space.dims
    tiles = draw(st.integers(4, 16))
    left = tiles
    split = [1] * len(dims)
    for d in draw(st.permutations(range(len(dims)))):
        if dims[d].kind == "parallel":
            split[d] = draw(st.integers(1, min(dims[d].size, left)))
            left //= split[d]
    order = tuple(draw(st.permutations(range(len(dims)))))
    order = order[: draw(st.integers(0, len(dims)))]
    first = draw(st.integers(0, tiles - prod(split)))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    plan = Plan(tuple(split), order, first)
    same = (dtype,) * (len(structure.space.operands) + 1)
    return Case(structure, plan, same, tiles, draw(st.integers(0, 1 << 16)))


def matmul_case() -> Case:
    """A plain product, split unevenly over 6 tiles from the third on."""
    dims = (Dim("m", 5), Dim("n", 4), Dim("k", 3, "reduction"))
    left = AccessMap((_axis(5, (0, 1)), _axis(3, (2, 1))))
    right = AccessMap((_axis(3, (2, 1)), _axis(4, (1, 1))))
    space = Space(dims, (left, right), (identity_map((0, 1), (5, 4)),))
    dtypes = (np.dtype(np.float32),) * 3
    return Case(Structure(space, Body("mul", "sum")), Plan((2, 3, 1), (), 2), dtypes, 8, 1)


def context() -> AbeleContext:
    made = AbeleContext()
    for dialect in (
        Builtin,
        func.Func,
        abele.Abele,
        control.Control,
        partition.Partition,
        tile.Tile,
        exchange.Exchange,
    ):
        made.load_dialect(dialect)
    return made


def parse(text: str, ctx: AbeleContext | None = None) -> ModuleOp:
    """A module from text, verified."""
    module = Parser(ctx or context(), text).parse_module()
    module.verify()
    return module


def _tensors(case: Case) -> list[TensorType]:
    space = case.structure.space
    return [
        TensorType(element_type(dtype), access.shape)
        for access, dtype in zip((*space.operands, *space.results), case.dtypes, strict=True)
    ]


def _host_layout(tensor: TensorType, case: Case) -> Layout:
    return linear_layout(tensor.get_shape(), 4, case.tiles, 8)


def partition_module(case: Case) -> ModuleOp:
    """Host inputs x0, x1, ... in linear layouts, relayouts, the operator, and a linear result."""
    *tensors, last = _tensors(case)
    *layouts, _ = case.layouts()
    block = Block(arg_types=[laid_out(t, _host_layout(t, case)) for t in tensors])
    moved = [
        partition.RelayoutOp([value], None, laid_out(t, layout))
        for value, t, layout in zip(block.args, tensors, layouts, strict=True)
    ]
    compute = partition.ComputeOp([m.result for m in moved], case.structure, case.plan, last)
    back = partition.RelayoutOp([compute.result], None, laid_out(last, _host_layout(last, case)))
    block.add_ops([*moved, compute, back, func.ReturnOp(back.result)])
    types = (tuple(a.type for a in block.args), (back.result.type,))
    main = func.FuncOp("main", types, Region(block))
    main.attributes["arg_names"] = ArrayAttr(StringAttr(f"x{i}") for i in range(len(tensors)))
    main.attributes["result_names"] = ArrayAttr([StringAttr("y")])
    return ModuleOp([main])


def tile_module(case: Case) -> ModuleOp:
    """The same program on variables."""
    *tensors, last = _tensors(case)
    *layouts, result = case.layouts()
    names = [f"x{i}" for i in range(len(tensors))]
    ops = [tile.VariableOp(n, t, _host_layout(t, case)) for n, t in zip(names, tensors)]
    ops += [tile.VariableOp(f"{n}.in", t, lay) for n, t, lay in zip(names, tensors, layouts)]
    ops.append(tile.VariableOp("y", last, result))
    ops.append(tile.VariableOp("y.out", last, _host_layout(last, case)))
    body = [tile.InputOp(n, n, t) for n, t in zip(names, tensors)]
    body += [tile.CopyOp([n], f"{n}.in") for n in names]
    reads = [f"{n}.in" for n in names]
    body.append(tile.ComputeSetOp("set", [tile.VerticesOp(case.structure, case.plan, reads, "y")]))
    body += [tile.CopyOp(["y"], "y.out"), tile.OutputOp("y.out", "y", last), func.ReturnOp()]
    return ModuleOp([*ops, func.FuncOp("main", ((), ()), Region(Block(body)))])


def exchange_module(case: Case) -> ModuleOp:
    """The same program at addresses: inputs, moves, compute, result, outputs."""
    ops = []
    address = 0
    layouts = {}
    body = tile_module(case)
    for op in body.ops:
        if isinstance(op, tile.VariableOp):
            ops.append(exchange.VariableOp(op.symbol, address, op.tensor, op.placed))
            layouts[op.symbol] = op.placed
            address += op.bytes_per_tile
    *tensors, last = _tensors(case)
    names = [f"x{i}" for i in range(len(tensors))]
    reads = [f"{n}.in" for n in names]
    steps = [
        exchange.SuperstepOp(
            "inputs",
            [exchange.SyncOp("external")]
            + [exchange.InputOp(n, n, t) for n, t in zip(names, tensors)],
        ),
        exchange.SuperstepOp(
            "moves",
            [exchange.SyncOp("internal")] + [exchange.MoveOp([n], f"{n}.in") for n in names],
        ),
        exchange.SuperstepOp(
            "compute",
            [
                exchange.SyncOp("internal"),
                exchange.ComputeOp(case.structure, case.plan, reads, "y"),
            ],
        ),
        exchange.SuperstepOp(
            "result", [exchange.SyncOp("internal"), exchange.MoveOp(["y"], "y.out")]
        ),
        exchange.SuperstepOp(
            "outputs", [exchange.SyncOp("external"), exchange.OutputOp("y.out", "y", last)]
        ),
    ]
    main = func.FuncOp("main", ((), ()), Region(Block([*steps, func.ReturnOp()])))
    return ModuleOp([*ops, main])
