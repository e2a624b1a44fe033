"""Strategies for programs of nn with random legal decisions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod

import hypothesis.strategies as st
import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import Builtin, Float32Type, ModuleOp, StringAttr, TensorType, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from abele.dialects import abele, control, exchange, nn, partition, tile
from abele.dialects.abele import Plan, PlanAttr
from abele.dialects.structured import Movement, Stage, Structure, Structured
from abele.ir.context import AbeleContext
from abele.ir.geometry.space import Dim
from abele.ir.provenance import named
from abele.ir.text import print_module
from abele.passes.plans.derive import combine_structure
from abele.passes.plans.padding import can_pad

F32 = Float32Type()


def context() -> AbeleContext:
    """A context that knows every dialect."""
    made = AbeleContext()
    for dialect in (
        Builtin,
        func.Func,
        abele.Abele,
        control.Control,
        nn.NN,
        partition.Partition,
        tile.Tile,
        exchange.Exchange,
    ):
        made.load_dialect(dialect)
    return made


def at_exchange(text: str) -> str:
    """A text with operations of tile as the same text with those of exchange."""

    def name(match: re.Match[str]) -> str:
        return "exchange." + {"copy": "move", "vertices": "compute"}.get(match[1], match[1])

    return re.sub(r"\btile\.([a-z]+)\b", name, text)


class Program:
    """A module of nn with its context and one set of inputs.

    Not a dataclass, because Hypothesis would print its fields, including the whole context.
    """

    def __init__(
        self, module: ModuleOp, ctx: AbeleContext, inputs: dict[str, np.ndarray], tiles: int
    ):
        self.module = module
        self.context = ctx
        self.inputs = inputs
        self.tiles = tiles

    def __repr__(self) -> str:
        return f"{self.tiles} tiles:\n{print_module(self.module)}"

    @property
    def target(self) -> str:
        return f"tiny:{self.tiles}"


def arrays(draw: st.DrawFn, shape: Sequence[int]) -> np.ndarray:
    """Small integers. Their sums of products are exact, so tests need no tolerance."""
    seed = draw(st.integers(0, 1000))
    return np.random.default_rng(seed).integers(-3, 4, tuple(shape)).astype(np.float32)


class _Builder:
    def __init__(self, draw: st.DrawFn):
        self.draw = draw
        self.context = context()
        self.states: list[Operation] = []
        self.ops: list[Operation] = []

    def add(self, op: Operation) -> SSAValue:
        op.location = named(f"node{len(self.ops)}")
        self.ops.append(op)
        return op.results[0]

    def weight(self, *shape: int) -> SSAValue:
        return self._state(arrays(self.draw, shape), F32)

    def indices(self, shape: Sequence[int], size: int) -> SSAValue:
        """Indices of an axis, some of them counted from its end."""
        rng = np.random.default_rng(self.draw(st.integers(0, 1000)))
        element, dtype = self.draw(st.sampled_from([(i32, np.int32), (i64, np.int64)]))
        return self._state(rng.integers(-size, size, tuple(shape)).astype(dtype), element)

    def _state(self, array: np.ndarray, element: Attribute) -> SSAValue:
        name = f"w{len(self.states)}"
        self.states.append(nn.StateOp(name, self.context.blobs.add(array)))
        return self.add(nn.LoadOp(name, TensorType(element, array.shape)))


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, TensorType)
    return tuple(value.type.get_shape())


def _conv(b: _Builder, x: SSAValue) -> SSAValue | None:
    shape = _shape(x)
    if len(shape) < 3 or prod(shape) > 4000:
        return None
    draw, channels = b.draw, shape[1]
    groups = draw(st.sampled_from([g for g in (1, 1, 2, 3, channels) if channels % g == 0]))
    kernel = [draw(st.integers(1, min(3, n))) for n in shape[2:]]
    options = {
        "stride": [draw(st.integers(1, 2)) for _ in kernel],
        "dilation": [draw(st.integers(1, 2)) for _ in kernel],
        "pad_low": [k for k in (draw(st.integers(0, 2)) for _ in kernel)],
        "pad_high": [k + 1 for k in kernel],
    }
    out = groups * draw(st.integers(1, 3))
    weight = b.weight(out, channels // groups, *kernel)
    return b.add(nn.ConvOp(x, weight, groups=groups, **options))


def _pool(b: _Builder, x: SSAValue) -> SSAValue | None:
    shape = _shape(x)
    if len(shape) < 3:
        return None
    window = [b.draw(st.integers(1, min(3, n))) for n in shape[2:]]
    return b.add(
        nn.PoolOp(
            x,
            b.draw(st.sampled_from(["max", "sum"])),
            window,
            stride=[b.draw(st.integers(1, 2)) for _ in window],
            pad_low=[b.draw(st.integers(0, w - 1)) for w in window],
            pad_high=[b.draw(st.integers(0, w - 1)) for w in window],
        )
    )


def _binary(b: _Builder, x: SSAValue) -> SSAValue:
    shape = _shape(x)
    other = b.weight(*(n if b.draw(st.booleans()) else 1 for n in shape))
    return b.add(b.draw(st.sampled_from([nn.AddOp, nn.SubOp, nn.MulOp, nn.MaxOp]))(x, other))


def _unary(b: _Builder, x: SSAValue) -> SSAValue:
    return b.add(b.draw(st.sampled_from([nn.ReluOp, nn.NegOp, nn.AbsOp]))(x))


def _matmul(b: _Builder, x: SSAValue) -> SSAValue | None:
    shape = _shape(x)
    if len(shape) < 2:
        return None
    return b.add(nn.MatMulOp(x, b.weight(shape[-1], b.draw(st.integers(1, 5)))))


def _reduce(b: _Builder, x: SSAValue) -> SSAValue | None:
    shape = _shape(x)
    if not shape:
        return None
    axes = b.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    return b.add(
        nn.ReduceOp(x, b.draw(st.sampled_from(["sum", "max", "min"])), sorted(axes), keep_dims=True)
    )


def _transpose(b: _Builder, x: SSAValue) -> SSAValue:
    return b.add(nn.TransposeOp(x, b.draw(st.permutations(range(len(_shape(x)))))))


def _concat(b: _Builder, x: SSAValue) -> SSAValue | None:
    shape = _shape(x)
    if not shape:
        return None
    axis = b.draw(st.integers(0, len(shape) - 1))
    other = b.weight(*(b.draw(st.integers(1, 3)) if i == axis else n for i, n in enumerate(shape)))
    return b.add(nn.ConcatOp([x, other, x], axis))


def _slice(b: _Builder, x: SSAValue) -> SSAValue:
    shape = _shape(x)
    starts, steps, sizes = [], [], []
    for n in shape:
        size = b.draw(st.integers(1, n))
        backward = b.draw(st.booleans())
        start = b.draw(st.integers(0, n - size))
        starts.append(start + size - 1 if backward else start)
        steps.append(-1 if backward else 1)
        sizes.append(size)
    return b.add(nn.SliceOp(x, starts, steps, sizes))


def _pad(b: _Builder, x: SSAValue) -> SSAValue | None:
    shape = _shape(x)
    mode = b.draw(st.sampled_from(["constant", "edge", "reflect", "wrap"]))
    if mode == "reflect" and min(shape, default=1) < 2:
        return None
    amounts = [b.draw(st.integers(0, 1)) for _ in shape]
    return b.add(nn.PadOp(x, amounts, amounts, mode=mode, value=2.0))


def _reshape(b: _Builder, x: SSAValue) -> SSAValue:
    n = prod(_shape(x))
    rows = b.draw(st.sampled_from([k for k in range(1, n + 1) if n % k == 0]))
    return b.add(nn.ReshapeOp(x, [rows, n // rows]))


def _image(b: _Builder, x: SSAValue) -> SSAValue:
    """The value reshaped to an image, so that convolutions can follow."""
    n = prod(_shape(x))
    rows = b.draw(st.sampled_from([k for k in (1, 2, 3, 4, 5) if n % k == 0]))
    return b.add(nn.ReshapeOp(x, [1, rows, n // rows]))


def _gather(b: _Builder, x: SSAValue) -> SSAValue | None:
    shape = _shape(x)
    if not shape:
        return None
    axis = b.draw(st.integers(0, len(shape) - 1))
    if b.draw(st.booleans()):
        fewer = [b.draw(st.integers(1, n)) for n in shape]
        fewer[axis] = b.draw(st.integers(1, 4))
        return b.add(nn.GatherAlongOp(x, b.indices(fewer, shape[axis]), axis))
    indices = b.draw(st.lists(st.integers(1, 4), max_size=2))
    return b.add(nn.GatherOp(x, b.indices(indices, shape[axis]), axis))


def _scatter(b: _Builder, x: SSAValue) -> SSAValue | None:
    shape = _shape(x)
    if not shape:
        return None
    axis, size = b.draw(st.integers(0, len(shape) - 1)), b.draw(st.integers(1, 6))
    combiner = b.draw(st.sampled_from(["sum", "max", "min"]))
    if b.draw(st.booleans()):
        return b.add(nn.ScatterAlongOp(x, b.indices(shape, size), combiner, axis, size))
    last = b.draw(st.integers(axis, len(shape)))
    return b.add(nn.ScatterOp(x, b.indices(shape[axis:last], size), combiner, axis, size))


def _sequence(b: _Builder, x: SSAValue) -> SSAValue | None:
    shape = _shape(x)
    if not shape:
        return None
    axis, reverse = b.draw(st.integers(0, len(shape) - 1)), b.draw(st.booleans())
    kind = b.draw(st.sampled_from(["sum", "max", "min", "sort", "indices"]))
    if kind == "sort":
        return b.add(nn.SortOp(x, axis, descending=reverse))
    if kind == "indices":
        found = b.add(nn.SortIndicesOp(x, axis, descending=reverse))
        return b.add(nn.GatherAlongOp(x, found, axis))
    exclusive = kind == "sum" and b.draw(st.booleans())
    return b.add(nn.ScanOp(x, kind, axis, exclusive=exclusive, reverse=reverse))


STAGES = (
    Stage("add"),
    Stage("sub"),
    Stage("sub", at=1),
    Stage("mul"),
    Stage("max"),
    Stage("min", at=1),
    Stage("relu"),
    Stage("neg"),
    Stage("abs"),
    Stage("clip", (-5.0, 40.0)),
    Stage("shift", (2.0,)),
    Stage("leaky_relu", (-2.0,)),
)
"""Stages that map integers to integers."""


def _with_chain(b: _Builder, made: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
    """The last operation followed by a few functions that can be computed in it.

    Further operands are weights of any shape that broadcasts, or values of the result's type.
    """
    op = b.ops[-1]
    if made.owner is not op or not nn.can_chain(op):
        return made
    shape = _shape(made)
    for stage in b.draw(st.lists(st.sampled_from(STAGES), min_size=1, max_size=3)):
        extras: list[SSAValue] = []
        for _ in range(stage.extras):
            like = [v for v in values if v.type == made.type]
            if like and b.draw(st.booleans()):
                extras.append(b.draw(st.sampled_from(like)))
                continue
            wide = [n if b.draw(st.booleans()) else 1 for n in shape]
            extras.append(b.weight(*wide[b.draw(st.integers(0, len(wide))) :]))
        made = b.add(following(stage, made, extras))
    return made


def following(stage: Stage, value: SSAValue, extras: Sequence[SSAValue] = ()) -> Operation:
    """The operation that applies a stage to a value."""
    operands = list(extras)
    operands.insert(stage.at, value)
    (cls,) = (op for op in nn.ELEMENTWISE if op.name == f"nn.{stage.function}")
    return cls(*operands, *stage.parameters)


STEPS = (
    _conv,
    _pool,
    _binary,
    _unary,
    _matmul,
    _reduce,
    _transpose,
    _concat,
    _slice,
    _pad,
    _reshape,
    _image,
    _gather,
    _scatter,
    _sequence,
)


@st.composite
def nn_programs(draw: st.DrawFn, max_ops: int = 4) -> Program:
    """Modules of nn with a few operators on one input. Every intermediate value is a result."""
    b = _Builder(draw)
    shape = (1, *draw(st.lists(st.integers(1, 6), min_size=2, max_size=3)))
    block = Block(arg_types=[TensorType(F32, shape)])
    values: list[SSAValue] = [block.args[0]]
    for _ in range(draw(st.integers(1, max_ops))):
        step = draw(st.sampled_from(STEPS))
        source = values[-1] if draw(st.booleans()) else draw(st.sampled_from(values))
        made = step(b, source)
        if made is not None and prod(_shape(made)) <= 4000:
            chain = draw(st.booleans())
            values.append(_with_chain(b, made, values) if chain else made)
        elif made is not None:
            b.ops.pop().erase()
    block.add_ops(b.ops)
    results = values[1:] or values
    block.add_op(func.ReturnOp(*results))
    types = [v.type for v in results]
    main = func.FuncOp("main", ([block.args[0].type], types), Region(block))
    module = ModuleOp([*b.states, main])
    return Program(module, b.context, {"arg0": arrays(draw, shape)}, draw(st.integers(1, 16)))


def _split(
    draw: st.DrawFn, dims: Sequence[Dim], tiles: int, structure: Structure | None
) -> tuple[int, ...]:
    split = [1] * len(dims)
    for d in draw(st.permutations(range(len(dims)))):
        dim, room = dims[d], tiles // prod(split)
        parts = [
            p
            for p in range(1, min(room, dim.size) + 1)
            if dim.kind == "parallel"
            or (
                dim.kind == "reduction"
                and structure is not None
                and (dim.size % p == 0 or can_pad(structure, d))
                and (p - 1) * -(-dim.size // p) < dim.size
            )
        ]
        split[d] = draw(st.sampled_from(parts or [1]))
    return tuple(split)


@st.composite
def plans(draw: st.DrawFn, structure: Structure, tiles: int) -> Plan:
    """Any legal plan of a structure."""
    dims = structure.space.dims
    split = _split(draw, dims, tiles, structure)
    order = tuple(draw(st.permutations(range(len(dims)))))
    order = order[: draw(st.integers(0, len(order)))]
    plan = Plan(split, order, draw(st.integers(0, tiles - prod(split))))
    combine = combine_structure(structure, plan)
    if combine is None:
        return plan
    return replace(plan, combine=draw(plans(combine, tiles)))


@st.composite
def planned_programs(draw: st.DrawFn, max_ops: int = 4) -> Program:
    """nn programs in which every operator has a random legal plan."""
    program = draw(nn_programs(max_ops))
    for op in program.module.walk():
        if isinstance(op, Structured):
            op.attributes["plan"] = PlanAttr(draw(plans(op.structure(), program.tiles)))
        elif isinstance(op, Movement):
            dims = [Dim(f"d{i}", n) for i, n in enumerate(_shape(op.results[0]))]
            op.attributes["plan"] = PlanAttr(Plan(_split(draw, dims, program.tiles, None)))
    program.module.attributes["abele.target"] = StringAttr(program.target)
    return program
