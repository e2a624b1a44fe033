from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest
from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    Builtin,
    IntegerType,
    ModuleOp,
    Signedness,
    StringAttr,
    TensorType,
    bf16,
    f16,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.dialects.func import Func, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def
from xdsl.parser import Parser
from xdsl.rewriter import InsertPoint
from xdsl.traits import Commutative, Pure
from xdsl.utils.exceptions import ParseError, VerifyException

from abele.dialects import nn
from abele.dialects.abele import Abele, SpaceAttr
from abele.dialects.levels import NN, NN_CORE
from abele.dialects.nn.base import NUMBER, number
from abele.dialects.nn.elementwise import UINT32, ParametrisedOp
from abele.dialects.scalar_functions import FUNCTIONS, Mathematics
from abele.dialects.structured import Composite, Movement, Reinterpretation, Structured
from abele.ir.context import AbeleContext
from abele.ir.provenance import named, origin
from abele.ir.support.number_formats import FORMATS, Overflow
from abele.ir.unmet import Unmet
from abele.ir.verify import verify

INF = float("inf")


def t(*shape: int, of: Attribute = f32) -> TensorType:
    return TensorType(of, shape)


def to_nearest(value: SSAValue, *numbers: float) -> nn.ToNearestOp:
    """A rounding with any numbers."""
    op = nn.ToNearestOp(value, f16, Overflow.CLIP)
    op.properties |= {name: number(x) for name, x in zip(op.PARAMETERS, numbers, strict=True)}
    op.verify()
    return op


def values(*types: TensorType) -> list[SSAValue]:
    return list(Block(arg_types=types).args)


def context() -> AbeleContext:
    made = AbeleContext()
    for dialect in (Builtin, Func, Abele, nn.NN):
        made.load_dialect(dialect)
    return made


IMAGE, IMAGE_1D, IMAGE_3D = t(2, 8, 9, 10), t(2, 8, 9), t(2, 4, 5, 6, 7)
MATRIX, ROW, MASK = t(4, 5), t(5), t(4, 5, of=i1)
I3 = t(3, of=i64)
BYTE = IntegerType(8, Signedness.UNSIGNED)
UNARY = (
    *(nn.ReluOp, nn.ExpOp, nn.LogOp, nn.SqrtOp, nn.ReciprocalOp),
    *(nn.TanhOp, nn.SigmoidOp, nn.NegOp, nn.AbsOp, nn.SquareOp),
    *(nn.SoftplusOp, nn.FloorOp, nn.SignOp, nn.CeilOp, nn.RoundOp, nn.ErfOp),
    *(nn.SinOp, nn.CosOp, nn.TanOp, nn.AsinOp, nn.AcosOp, nn.AtanOp),
    *(nn.SinhOp, nn.CoshOp, nn.AsinhOp, nn.AcoshOp, nn.AtanhOp),
)
BINARY = (nn.AddOp, nn.SubOp, nn.MulOp, nn.DivOp, nn.MaxOp, nn.MinOp, nn.PowOp)
BINARY += (nn.ModOp, nn.FmodOp, nn.GateOp)
BITS = (nn.BitwiseAndOp, nn.BitwiseOrOp, nn.BitwiseXorOp, nn.ShiftLeftOp, nn.ShiftRightOp)
WHOLE = t(4, 5, of=i64)
COMPARE = (nn.LessOp, nn.LessEqualOp, nn.GreaterOp, nn.GreaterEqualOp, nn.EqualOp)

Y, X, K = nn.dim("y", 4), nn.dim("x", 5), nn.dim("k", 5, "reduction")


def product(a: SSAValue, b: SSAValue) -> nn.ComputeOp:
    """A matrix product."""
    o = nn.dim("o", nn.shape_of(b)[1])
    return nn.compute("mul", [nn.at(a, Y, K), nn.at(b, K, o)], [Y, o], combiner="sum")


def columns_of_less(a: SSAValue, b: SSAValue) -> nn.ComputeOp:
    """Where a is less than the first element of b's row, with the axes exchanged."""
    return nn.compute("less", [nn.at(a, Y, X), nn.at(b, Y, 0)], [X, Y])


CASES = [
    *((op, [MATRIX], op, MATRIX) for op in UNARY),
    *((op, [MATRIX, ROW], op, MATRIX) for op in BINARY),
    *((op, [ROW, t(4, 1)], op, MASK) for op in COMPARE),
    *((op, [MASK, MASK], op, MASK) for op in (nn.LogicalAndOp, nn.LogicalOrOp)),
    *((op, [MATRIX], op, MASK) for op in (nn.IsNaNOp, nn.IsInfOp)),
    *((op, [WHOLE, t(5, of=i64)], op, WHOLE) for op in BITS),
    (nn.BitwiseNotOp, [WHOLE], nn.BitwiseNotOp, WHOLE),
    (nn.LogicalNotOp, [MASK], nn.LogicalNotOp, MASK),
    (nn.SummarizeOp, [MATRIX], lambda x: nn.SummarizeOp(x, "argmax", [1]), t(4)),
    (
        nn.SummarizeOp,
        [MATRIX],
        lambda x: nn.SummarizeOp(x, "moments", [0], keep_dims=True),
        t(1, 5),
    ),
    (
        nn.SummarizeWindowsOp,
        [t(1, 2, 6, 6)],
        lambda x: nn.SummarizeWindowsOp(
            x, "argmax", [3, 3], stride=[2, 2], pad_low=[1, 1]
        ),
        t(1, 2, 3, 3),
    ),
    (nn.SelectOp, [MASK, ROW, t()], nn.SelectOp, MATRIX),
    (nn.MatchOp, [MATRIX, ROW, t()], nn.MatchOp, MATRIX),
    (nn.CastOp, [MATRIX], lambda x: nn.CastOp(x, i64), t(4, 5, of=i64)),
    (nn.BitCastOp, [MATRIX], lambda x: nn.BitCastOp(x, i32), t(4, 5, of=i32)),
    (nn.LeakyReluOp, [ROW], lambda x: nn.LeakyReluOp(x, 0.01), ROW),
    (nn.ClipOp, [ROW], lambda x: nn.ClipOp(x, -INF, 6), ROW),
    (nn.ScaleOp, [ROW], lambda x: nn.ScaleOp(x, 1 / 3), ROW),
    (nn.ShiftOp, [ROW], lambda x: nn.ShiftOp(x, 1e-5), ROW),
    (nn.PowerOp, [ROW], lambda x: nn.PowerOp(x, -0.75), ROW),
    (nn.ConvOp, [IMAGE, t(6, 8, 3, 3)], nn.ConvOp, t(2, 6, 7, 8)),
    (
        nn.ConvOp,
        [IMAGE, t(6, 4, 3, 2)],
        lambda x, w: nn.ConvOp(
            x, w, stride=[2, 1], dilation=[1, 3], pad_low=[1, 0], pad_high=[2, 0], groups=2
        ),
        t(2, 6, 5, 7),
    ),
    (nn.ConvOp, [IMAGE_1D, t(3, 8, 9)], nn.ConvOp, t(2, 3, 1)),
    (nn.ConvOp, [IMAGE_3D, t(1, 4, 2, 2, 2)], nn.ConvOp, t(2, 1, 4, 5, 6)),
    (
        nn.ConvInputGradOp,
        [t(2, 6, 4, 4), t(6, 4, 3, 3)],
        lambda g, w: nn.ConvInputGradOp(g, w, [9, 8], stride=[2, 2], pad_low=[1, 0], groups=2),
        t(2, 8, 9, 8),
    ),
    (
        nn.ConvWeightGradOp,
        [IMAGE, t(2, 6, 4, 4)],
        lambda x, g: nn.ConvWeightGradOp(x, g, [3, 2], stride=[2, 2], pad_low=[1, 0], groups=2),
        t(6, 4, 3, 2),
    ),
    (nn.MatMulOp, [MATRIX, t(5, 3)], nn.MatMulOp, t(4, 3)),
    (
        nn.MatMulOp,
        [t(4, 5, of=IntegerType(8)), t(5, 3, of=i32)],
        lambda a, b: nn.MatMulOp(a, b, into_i32=True),
        t(4, 3, of=i32),
    ),
    (
        nn.MatMulOp,
        [t(7, 1, 5, 4), t(2, 3, 5)],
        lambda a, b: nn.MatMulOp(a, b, transpose_lhs=True, transpose_rhs=True),
        t(7, 2, 4, 3),
    ),
    (
        nn.PoolOp,
        [IMAGE],
        lambda x: nn.PoolOp(x, "max", [3, 2], stride=[2, 2], pad_low=[1, 0], pad_high=[1, 2]),
        t(2, 8, 5, 6),
    ),
    (nn.ReduceOp, [IMAGE], lambda x: nn.ReduceOp(x, "sum", [-1, 2]), t(2, 8)),
    (
        nn.ReduceOp,
        [IMAGE],
        lambda x: nn.ReduceOp(x, "min", [0, 2], keep_dims=True),
        t(1, 8, 1, 10),
    ),
    (nn.TransposeOp, [IMAGE], lambda x: nn.TransposeOp(x, [3, 1, 0, 2]), t(10, 8, 2, 9)),
    (nn.ConcatOp, [MATRIX, t(4, 1)], lambda *x: nn.ConcatOp(x, -1), t(4, 6)),
    (nn.SliceOp, [MATRIX], lambda x: nn.SliceOp(x, [3, 0], [-2, 3], [2, 2]), t(2, 2)),
    (
        nn.RandomBitsOp,
        [t(4, 5, of=UINT32), t(of=UINT32), t(1, of=UINT32)],
        lambda i, n, seed: nn.RandomBitsOp(i, n, seed, 7.0),
        t(4, 5, of=UINT32),
    ),
    (nn.ToNearestOp, [MATRIX], lambda x: nn.ToNearestOp(x, f16, Overflow.CLIP), MATRIX),
    (nn.ToCodeOp, [MATRIX], lambda x: nn.ToCodeOp(x, FORMATS["f134"]), MATRIX),
    (nn.FromCodeOp, [MATRIX], lambda x: nn.FromCodeOp(x, FORMATS["f134"]), MATRIX),
    (nn.DrawnOp, [MATRIX], lambda x: nn.DrawnOp(x, f16, Overflow.CLIP), MATRIX),
    (
        nn.StochasticOp,
        [MATRIX, ROW, t(4, 1), t(), t()],
        lambda x, *rest: nn.StochasticOp(x, rest[:2], rest[2:], 7.0, bf16, Overflow.NAN),
        MATRIX,
    ),
    (
        nn.ResampleOp,
        [MATRIX],
        lambda x: nn.ResampleOp(x, [-2, 11], [2, -3], [3, 2], [11, 8]),
        t(11, 8),
    ),
    (nn.PadOp, [MATRIX], lambda x: nn.PadOp(x, [1, -1], [0, 2], value=-INF), t(5, 6)),
    (nn.PadOp, [MATRIX], lambda x: nn.PadOp(x, [1, 2], [3, 0], mode="reflect"), t(8, 7)),
    (nn.TakeOp, [MATRIX], lambda x: nn.TakeOp(x, [2, 0, -1, 2, 1], 1, 3.0), t(4, 5)),
    (nn.TakeOp, [MATRIX], lambda x: nn.TakeOp(x, [3, 1], -2), t(2, 5)),
    (nn.TakeOp, [t(0, 5)], lambda x: nn.TakeOp(x, [-1, -1]), t(2, 5)),
    (nn.TakeOp, [t(3, 0)], lambda x: nn.TakeOp(x, [2, 1]), t(2, 0)),
    (nn.TakeOp, [MATRIX], lambda x: nn.TakeOp(x, []), t(0, 5)),
    (nn.ExpandOp, [t(5, 1)], lambda x: nn.ExpandOp(x, [4, 5, 3]), t(4, 5, 3)),
    (nn.ReshapeOp, [MATRIX], lambda x: nn.ReshapeOp(x, [2, 10]), t(2, 10)),
    (nn.BatchNormOp, [IMAGE, t(8), t(8), t(8), t(8)], nn.BatchNormOp, IMAGE),
    (nn.SoftmaxOp, [MATRIX], lambda x: nn.SoftmaxOp(x, -1), MATRIX),
    (nn.LogSoftmaxOp, [MATRIX], lambda x: nn.LogSoftmaxOp(x, 0), MATRIX),
    (nn.LrnOp, [IMAGE], lambda x: nn.LrnOp(x, 4), IMAGE),
    (
        nn.AveragePoolOp,
        [IMAGE],
        lambda x: nn.AveragePoolOp(
            x, [3, 3], stride=[2, 2], pad_low=[1, 1], pad_high=[0, 0], ceil_mode=True
        ),
        t(2, 8, 5, 5),
    ),
    (
        nn.AveragePoolOp,
        [IMAGE],
        lambda x: nn.AveragePoolOp(
            x, [3, 3], pad_low=[1, 1], pad_high=[1, 1], count_include_pad=True
        ),
        IMAGE,
    ),
    (nn.GatherOp, [MATRIX, I3], lambda a, i: nn.GatherOp(a, i, 0), t(3, 5)),
    (nn.GatherOp, [IMAGE_1D, t(6, 7, of=i64)], lambda a, i: nn.GatherOp(a, i, -2), t(2, 6, 7, 9)),
    (nn.GatherOp, [MATRIX, t(of=i32)], lambda a, i: nn.GatherOp(a, i, 1), t(4)),
    (nn.GatherAlongOp, [MATRIX, t(2, 7, of=i32)], lambda a, i: nn.GatherAlongOp(a, i, 1), t(2, 7)),
    (
        nn.ScatterOp,
        [t(4, 3, 2, 6), t(3, 2, of=i32)],
        lambda a, i: nn.ScatterOp(a, i, "sum", 1, 9),
        t(4, 9, 6),
    ),
    (
        nn.ScatterAlongOp,
        [MATRIX, t(4, 5, of=i64)],
        lambda a, i: nn.ScatterAlongOp(a, i, "max", 0, 9),
        t(9, 5),
    ),
    (nn.ComputeOp, [MATRIX, t(5, 3)], product, t(4, 3)),
    (nn.ComputeOp, [MATRIX, MATRIX], columns_of_less, t(5, 4, of=i1)),
    (nn.IotaOp, [], lambda: nn.IotaOp(t(4, 5, of=i64), [0, -2], 7), t(4, 5, of=i64)),
    (
        nn.BlockMatMulOp,
        [t(6, 4, 8), t(16, 5), t(6, of=i32), t(6, of=i32)],
        lambda v, x, i, j: nn.BlockMatMulOp(v, x, i, j, 12),
        t(12, 5),
    ),
    (
        nn.BlockMatMulOp,
        [t(6, 4, 8), t(2, 3, 12), t(6, of=i64), t(6, of=i64)],
        lambda v, x, i, j: nn.BlockMatMulOp(v, x, i, j, 16, transposed=True, dense_last=True),
        t(2, 3, 16),
    ),
    (
        nn.PackedMatMulOp,
        [t(2, 3, 60), t(7, 4, 8, of=BYTE), t(7, 4), t(1, 1, of=BYTE), t(2, of=BYTE)],
        lambda x, p, s, z, h: nn.PackedMatMulOp(x, p, s, z, h, 4),
        t(2, 3, 7),
    ),
    (
        nn.UpdateOp,
        [t(2, 5), t(2, 1, of=i32), MATRIX],
        lambda a, i, x: nn.UpdateOp(a, i, x, "last", 0),
        MATRIX,
    ),
    (
        nn.UpdateOp,
        [t(4, 7), t(1, 7, of=i64), MATRIX],
        lambda a, i, x: nn.UpdateOp(a, i, x, "sum", -1),
        MATRIX,
    ),
    (nn.ScanOp, [MATRIX], lambda x: nn.ScanOp(x, "sum", -1, exclusive=True), MATRIX),
    (nn.ScanOp, [I3], lambda x: nn.ScanOp(x, "prod", 0, reverse=True), I3),
    (nn.SortOp, [MATRIX], lambda x: nn.SortOp(x, 0, descending=True), MATRIX),
    (nn.SortIndicesOp, [MASK], lambda x: nn.SortIndicesOp(x, 1), t(4, 5, of=i32)),
    (nn.GemmOp, [MATRIX, t(5, 3)], nn.GemmOp, t(4, 3)),
    (
        nn.GemmOp,
        [MATRIX, t(3, 4), t(3)],
        lambda a, b, c: nn.GemmOp(
            a, b, c, alpha=0.5, beta=2, transpose_lhs=True, transpose_rhs=True
        ),
        t(5, 3),
    ),
    (nn.CholeskyOp, [t(2, 9, 9)], lambda a: nn.CholeskyOp(a, upper=True), t(2, 9, 9)),
    (
        nn.TriangularSolveOp,
        [t(9, 9), t(3, 9)],
        lambda a, b: nn.TriangularSolveOp(
            a, b, lower=True, transpose=True, unit=True, from_right=True
        ),
        t(3, 9),
    ),
    (
        nn.CtcLossOp,
        [t(6, 2, 5), t(2, 3, of=i32), t(2, of=i32), t(2, of=i64)],
        lambda *x: nn.CtcLossOp(*x, blank=4),
        t(2),
    ),
    (
        nn.CtcLossGradOp,
        [t(6, 2, 5), t(2, 0, of=i32), t(2, of=i32), t(2, of=i32)],
        nn.CtcLossGradOp,
        t(6, 2, 5),
    ),
    (
        nn.CtcGreedyOp,
        [t(6, 2, 5), t(2, of=i32)],
        lambda *x: nn.CtcGreedyOp(*x, blank=4),
        t(2, 6, of=i32),
    ),
    (
        nn.CtcBeamOp,
        [t(6, 2, 5), t(2, of=i32)],
        lambda *x: nn.CtcBeamOp(*x, width=8, paths=3),
        t(2, 3, 6, of=i32),
    ),
]  # fmt: skip
IDS = [f"{case[0].name}-{i}" for i, case in enumerate(CASES)]


def program(types, make) -> tuple[ModuleOp, Operation]:
    """A module whose @main applies one operation to its arguments."""
    block = Block(arg_types=types)
    op = make(*block.args)
    block.add_ops([op, ReturnOp(op.result)])
    region = Region(block)
    return ModuleOp([FuncOp("main", (list(types), [op.result.type]), region)]), op


def only(module: ModuleOp, kind: type[Operation]) -> Operation:
    return next(op for op in module.walk() if isinstance(op, kind))


@pytest.mark.parametrize(("kind", "types", "make", "result"), CASES, ids=IDS)
def test_an_operation_infers_its_type_and_is_read_as_it_was_written(kind, types, make, result):
    module, op = program(types, make)
    assert op.result.type == result
    verify(module, NN)
    again = Parser(context(), str(module)).parse_module()
    verify(again)
    assert again.is_structurally_equivalent(module)
    assert str(again) == str(module)


@pytest.mark.parametrize(("kind", "types", "make", "result"), CASES, ids=IDS)
def test_a_wrong_result_type_is_refused(kind, types, make, result):
    _, op = program(types, make)
    op.result._type = t(99)
    with pytest.raises(VerifyException, match="result type tensor<99xf32>.*; need "):
        op.verify()


@pytest.mark.parametrize(("kind", "types", "make", "result"), CASES, ids=IDS)
def test_an_operation_is_of_one_kind_and_its_spaces_fit_its_tensors(kind, types, make, result):
    _, op = program(types, make)
    assert [isinstance(op, k) for k in (Structured, Movement, Reinterpretation, Composite)].count(
        True
    ) == 1
    spaces = []
    if isinstance(op, Structured):
        structure = op.structure()
        assert len(structure.space.operands) == len(op.operands)
        assert bool(structure.space.of_kind("reduction")) == (structure.body.combiner is not None)
        spaces = [(op.operands, structure.space)]
    elif isinstance(op, Movement):
        assert len(op.moves()) == len(op.operands)
        spaces = [([v], space) for v, space in zip(op.operands, op.moves(), strict=True)]
    for operands, space in spaces:
        for value, access in zip(operands, space.operands, strict=True):
            assert np.prod(access.shape) == np.prod(nn.shape_of(value))
        for result, target in zip(op.results, space.results, strict=True):
            assert np.prod(target.shape) == np.prod(nn.shape_of(result))
            assert all(len(axis.terms) <= 1 for axis in target.axes)
        attribute = SpaceAttr(space)
        assert Parser(context(), str(attribute)).parse_attribute() == attribute


@pytest.mark.parametrize(
    ("kind", "types", "make", "result"),
    [c for c in CASES if issubclass(c[0], Composite)],
    ids=[i for i, c in zip(IDS, CASES, strict=True) if issubclass(c[0], Composite)],
)
@pytest.mark.parametrize("element", [f32, f16], ids=str)
def test_a_composite_decomposes_into_core_operations(kind, types, make, result, element):
    kinds = [element if x.element_type == f32 else x.element_type for x in types]
    given = [t(*x.get_shape(), of=kind) for x, kind in zip(types, kinds, strict=True)]
    module, op = program(given, make)
    op.location = named("whole")
    builder = Builder(InsertPoint.before(op))
    made: list[Operation] = []
    builder.operation_insertion_handler.append(made.append)
    found = op.decompose(builder)
    for value, old in zip(found, op.results, strict=True):
        assert value.type == old.type
        old.replace_all_uses_with(value)
    several = len(op.results) > 1
    op.detach()
    op.erase()
    verify(module, NN_CORE)
    assert several or origin(found[0].owner) == "whole"
    paths = [origin(part) for part in made]
    assert all(p == "whole" or p.startswith("whole/") for p in paths)
    assert len(set(paths)) == len(paths)


def test_every_operation_is_tested_here():
    tested = {case[0] for case in CASES}
    assert {op for op in nn.NN.operations if op not in nn.STATE} == tested


def test_a_grouped_convolution_is_an_iteration_space():
    x, w = values(t(1, 8, 9, 9), t(6, 4, 3, 3))
    op = nn.ConvOp(x, w, stride=[2, 2], pad_low=[1, 0], pad_high=[1, 0], groups=2)
    assert SpaceAttr(op.structure().space).text() == (
        "[n = 1, g = 2, o = 3, y = 5, x = 4, c = 4 reduction, ky = 3 reduction, kx = 3 reduction]"
        " (0, g, c, 2 * y + ky - 1 fill, 2 * x + kx) of [1, 2, 4, 9, 9],"
        " (g, o, c, ky, kx) of [2, 3, 4, 3, 3] -> (0, g, o, y, x) of [1, 2, 3, 5, 4]"
    )


def test_padding_of_a_pool_is_the_identity_of_its_combiner():
    (x,) = values(IMAGE)
    fills = {
        combiner: nn.PoolOp(x, combiner, [3, 3], pad_low=[1, 1]).structure().space.operands[0].fill
        for combiner in ("max", "sum")
    }
    assert fills == {"max": -INF, "sum": 0.0}


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("ceil", [False, True])
def test_an_average_counts_the_elements_under_each_window(include: bool, ceil: bool):
    (x,) = values(t(1, 1, 8))
    op = nn.AveragePoolOp(
        x, [3], stride=[2], pad_low=[1], count_include_pad=include, ceil_mode=ceil
    )
    padded = np.r_[float(include), np.ones(8), np.zeros(3)]
    expected = [int(padded[2 * i : 2 * i + 3].sum()) for i in range(nn.shape_of(op.result)[2])]
    assert op.counts().tolist() == expected
    assert nn.shape_of(op.result)[2] == (4, 4)[ceil]


@pytest.mark.parametrize(
    ("size", "low", "high", "reach", "stride", "floor", "ceil"),
    [(6, 0, 0, 3, 2, 2, 3), (7, 0, 0, 3, 2, 3, 3), (2, 0, 1, 1, 2, 2, 1), (4, 1, 1, 2, 3, 2, 2)],
)
def test_a_last_window_overhangs_only_from_within(size, low, high, reach, stride, floor, ceil):
    assert nn.pooled_size(size, low, high, reach, stride, ceil=False) == floor
    assert nn.pooled_size(size, low, high, reach, stride, ceil=True) == ceil


INVALID = [
    ([MATRIX, t(3)], nn.AddOp, r"shapes \[4, 5\] and \[3\]: axis -1 has sizes 5 and 3; need equal"),
    ([MATRIX, t(5, of=f16)], nn.AddOp, "element types f32 and f16; need one"),
    ([MATRIX, MATRIX], nn.LogicalAndOp, "operand 0 has elements f32; need i1"),
    ([ROW, ROW, ROW], nn.SelectOp, "operand 0 has elements f32; need i1"),
    ([t(-1, 5)], nn.ReluOp, "axis 0 has no size"),
    ([IMAGE, t(6, 8, 3)], nn.ConvOp, "image of rank 4, weights of rank 3; need equal ranks"),
    ([IMAGE, t(6, 3, 3, 3)], nn.ConvOp, "image has 8 channels; 1 groups of 3 .* need 3"),
    (
        [IMAGE, t(5, 4, 3, 3)],
        lambda x, w: nn.ConvOp(x, w, groups=2),
        "5 outputs in 2 groups; need a divisor",
    ),
    (
        [IMAGE, t(6, 8, 3, 3)],
        lambda x, w: nn.ConvOp(x, w, stride=[1]),
        r"stride: 1 entries \[1\]; need 2",
    ),
    (
        [IMAGE, t(6, 8, 3, 3)],
        lambda x, w: nn.ConvOp(x, w, dilation=[0, 1]),
        "dilation: entry 0 is 0; need 1 or more",
    ),
    ([IMAGE, t(6, 8, 10, 3)], nn.ConvOp, "spatial axis 0: a kernel of 10 on 9 elements"),
    ([MATRIX, MATRIX], nn.MatMulOp, "lhs has 5 columns, rhs has 4 rows; need as many"),
    ([ROW, MATRIX], nn.MatMulOp, r"lhs of shape \[5\]; need two axes or more"),
    ([IMAGE], lambda x: nn.PoolOp(x, "mean", [1, 1]), "combiner 'mean'; need one of sum, max"),
    ([IMAGE], lambda x: nn.PoolOp(x, "max", [99, 1]), "spatial axis 0: a window of 99 on 9"),
    ([MATRIX], lambda x: nn.ReduceOp(x, "sum", [2]), "axis 2 of rank 2; need -2..1"),
    (
        [MATRIX],
        lambda x: nn.ReduceOp(x, "sum", [0, 0]),
        r"axes \[0, 0\] of rank 2; need increasing",
    ),
    (
        [MATRIX],
        lambda x: nn.TransposeOp(x, [0, 0]),
        r"permutation \[0, 0\]; need each of 0..1 once",
    ),
    (
        [MATRIX, t(3, 5)],
        lambda *x: nn.ConcatOp(x, 1),
        r"part 1 has shape \[3, 5\], part 0 \[4, 5\]",
    ),
    ([MATRIX], lambda x: nn.SliceOp(x, [0, 0], [1, 0], [1, 1]), "axis 1: step 0"),
    ([MATRIX], lambda x: nn.SliceOp(x, [2, 0], [1, 1], [3, 1]), "axis 0: elements 2 to 4 of 4"),
    (
        [t(4, of=i64), t(of=i64), t(of=i64)],
        lambda *x: nn.RandomBitsOp(*x, 1.0),
        "operand 0 has elements i64; need ui32 or i32",
    ),
    (
        [t(4, of=UINT32)] * 3,
        lambda *x: nn.RandomBitsOp(*x, 0.5).verify(),
        r"key 0.5; need a whole number",
    ),
    (
        [t(4, of=f16)],
        lambda x: nn.ToNearestOp(x, f16, Overflow.CLIP),
        "operand 0 has elements f16; need f32",
    ),
    (
        [MATRIX],
        lambda x: to_nearest(x, 25.0, -14.0, 65504.0, 0.0),
        "digits 25, least -14; need 2 to 24, and -126 to 126",
    ),
    (
        [MATRIX],
        lambda x: to_nearest(x, 11.0, -127.0, 65504.0, 0.0),
        "digits 11, least -127; need 2 to 24, and -126 to 126",
    ),
    ([MATRIX], lambda x: to_nearest(x, 11.0, 3.0, 7.5, 0.0), "largest 7.5; need a normal number"),
    ([MATRIX], lambda x: to_nearest(x, 11.0, 3.0, INF, 0.0), "largest inf; need a normal number"),
    ([MATRIX], lambda x: to_nearest(x, 8.0, 3.0, 9.0, 3.0), "overflow 3; need one of 0, 1 and 2"),
    (
        [MATRIX, MATRIX, MATRIX, t(), t()],
        lambda x, *rest: nn.StochasticOp(x, rest[:2], rest[2:], -1.0, f16, Overflow.CLIP).verify(),
        "key -1; need a whole number",
    ),
    (
        [MATRIX],
        lambda x: nn.ResampleOp(x, [0, 0], [1, 1], [1, 0], [1, 1]),
        "divisors: entry 1 is 0; need 1 or more",
    ),
    (
        [t(0)],
        lambda x: nn.ResampleOp(x, [0], [1], [1], [1]),
        "axis 0: has no element to repeat; need size 0",
    ),
    (
        [t(11)],
        lambda x: nn.ResampleOp(x, [1], [1 << 31], [10], [11]),
        "axis 0: 11 elements in steps of 2147483648 reach over 21,474,836,480 numerators",
    ),
    (
        [MATRIX],
        lambda x: nn.PadOp(x, [0, 0], [0, 0], mode="odd"),
        "mode 'odd'; need one of constant",
    ),
    ([MATRIX], lambda x: nn.PadOp(x, [-5, 0], [0, 0]), "padded sizes: entry 0 is -1"),
    ([MATRIX], lambda x: nn.TakeOp(x, [0, 4]), "place of row 4; need -1 to 3"),
    ([MATRIX], lambda x: nn.TakeOp(x, [-2]), "place of row -2; need -1 to 3"),
    ([MATRIX], lambda x: nn.ExpandOp(x, [1, 5]), r"of shape \[4, 5\] does not broadcast to"),
    ([MATRIX], lambda x: nn.ReshapeOp(x, [3, 7]), r"20 elements of \[4, 5\] as \[3, 7\]"),
    ([IMAGE, t(7), t(8), t(8), t(8)], nn.BatchNormOp, r"scale of shape \[7\]; need \[8\]"),
    (
        [t(1, 1, 4, of=i1)],
        lambda x: nn.SummarizeWindowsOp(x, "argmax", [2]),
        "argmax of i1; need numbers",
    ),
    (
        [IMAGE],
        lambda x: nn.SummarizeWindowsOp(x, "argmax", [99, 1]),
        "spatial axis 0: a window of 99 on 9",
    ),
    (
        [WHOLE],
        lambda x: nn.SummarizeOp(x, "moments", [0]),
        "moments of i.*; need floats",
    ),
    (
        [t(2, 0)],
        lambda x: nn.SummarizeOp(x, "argmin", [1]),
        "axis 1 has no elements; need one or more",
    ),
    ([t(4, of=i64)], lambda x: nn.SoftmaxOp(x, 0), "softmax of i64; need a floating-point type"),
    ([MATRIX, t(5, 3), t(7, 4, 3)], nn.GemmOp, r"bias of shape .* does not broadcast to \[4, 3\]"),
    ([ROW], lambda x: nn.ScaleOp(x, float("nan")).verify(), "need numbers"),
]


@pytest.mark.parametrize(("types", "make", "message"), INVALID)
def test_an_error_names_the_value_found_and_the_values_allowed(types, make, message):
    operands = values(*types)
    with pytest.raises(VerifyException, match=message):
        make(*operands)


def test_a_refused_operation_leaves_its_operands_alone():
    a, b = values(MATRIX, t(3))
    with pytest.raises(VerifyException):
        nn.AddOp(a, b)
    assert not a.uses
    assert not b.uses


@pytest.mark.parametrize("symbol", ["w", "conv1/weight_0", "a b", 'q"uote', "ünï", "1x"])
def test_state_is_loaded_and_stored(symbol: str):
    made = context()
    state = nn.StateOp(symbol, made.blobs.add(np.arange(6, dtype=np.float32)))
    load = nn.LoadOp(symbol, t(6))
    block = Block([load, nn.StoreOp(load.result, symbol), ReturnOp(load.result)])
    main = FuncOp("main", ([], [t(6)]), Region(block))
    module = ModuleOp([state, main])
    verify(module, NN_CORE)
    again = Parser(made, str(module)).parse_module()
    assert again.is_structurally_equivalent(module)
    assert only(again, nn.StateOp).value.array is state.value.array


def test_a_load_of_no_state_is_refused():
    load = nn.LoadOp("missing", t(6))
    module = ModuleOp([FuncOp("main", ([], []), Region(Block([load, ReturnOp()])))])
    with pytest.raises(VerifyException, match="no nn.state @missing; there are none"):
        verify(module, NN)


def test_a_load_of_another_type_is_refused():
    main = FuncOp("main", ([], []), Region(Block([nn.LoadOp("w", t(6)), ReturnOp()])))
    module = ModuleOp([nn.StateOp("w", np.zeros(3, np.float32)), main])
    with pytest.raises(VerifyException, match="@w is tensor<3xf32>; the operation says tensor<6xf"):
        verify(module, NN)


def test_a_constant_agrees_with_its_blob():
    made = context()
    constant = nn.ConstantOp(made.blobs.add(np.zeros((2, 3), np.float16)))
    assert constant.result.type == t(2, 3, of=f16)
    text = str(constant).replace("2x3xf16", "3x2xf16")
    with pytest.raises(VerifyException, match=r"blob of float16\[2, 3\]; the type says"):
        Parser(made, text).parse_op().verify()


def test_an_unknown_blob_is_a_parse_error():
    with pytest.raises(ParseError, match='unknown blob "beef"'):
        Parser(context(), '%0 = nn.constant <"beef"> : tensor<1xf32>').parse_op()


def test_composites_are_not_legal_in_the_core_of_nn():
    assert "nn.softmax" not in NN_CORE.legal
    assert {"nn.conv", "nn.state", "control", "func", "builtin.module"} <= NN_CORE.legal


def test_commutative_operations_have_the_trait():
    swap = {op for op in nn.ELEMENTWISE if op.has_trait(Commutative)}
    assert swap == {
        *(nn.AddOp, nn.MulOp, nn.MaxOp, nn.MinOp),
        *(nn.EqualOp, nn.LogicalAndOp, nn.LogicalOrOp),
        *(nn.BitwiseAndOp, nn.BitwiseOrOp, nn.BitwiseXorOp),
    }
    assert all(op.has_trait(Pure) for op in swap)


@pytest.mark.parametrize("element", [f32, i1], ids=str)
def test_only_integers_have_bits(element: Attribute):
    for make in (*BITS, lambda x, _: nn.BitwiseNotOp(x)):
        a, b = values(t(4, of=element), t(4, of=element))
        with pytest.raises(Unmet, match="operand 0 has elements .*; need integers of 8 bits"):
            make(a, b)


@irdl_op_definition
class AddReluOp(nn.CompositeOp):
    """An operation of a user's, without an __init__."""

    name = "mine.add_relu"
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    note = opt_prop_def(StringAttr)

    def infer(self) -> TensorType[Attribute]:
        return nn.tensor_of(self.x)

    def parts(self, made) -> SSAValue:
        return made("relu", nn.ReluOp(made("add", nn.AddOp(self.x, self.y))))


def test_an_operation_without_an_init_is_built_from_its_operands():
    x, y = values(ROW, ROW)
    note: dict[str, Attribute] = {"note": StringAttr("of mine")}
    for op in (AddReluOp(x, y, properties=note), AddReluOp([x, y], note)):
        op.verify()
        assert (op.x, op.y, op.note, op.result.type) == (x, y, note["note"], ROW)
    assert AddReluOp(x, y).note is None
    with pytest.raises(ValueError, match="Expected 2 operand"):
        AddReluOp(x)


@irdl_op_definition
class CapOp(ParametrisedOp):
    """A user's operator: the smaller of an element and a constant."""

    name = "mine.cap"
    PARAMETERS: ClassVar[tuple[str, ...]] = ("top",)
    top = prop_def(NUMBER)

    def __init__(self, operand: SSAValue, top: float):
        super().__init__(operand, {"top": nn.number(top)})


@pytest.mark.parametrize(("saturating", "numbers"), [((0,), ("top",)), ((), ())])
def test_an_operators_constants_are_in_its_result_if_its_function_says_so(
    monkeypatch: pytest.MonkeyPatch, saturating: tuple[int, ...], numbers: tuple[str, ...]
):
    cap = Mathematics("cap", 1, parameters=1, saturating=saturating)
    monkeypatch.setitem(FUNCTIONS, "cap", cap)
    op = CapOp(*values(ROW), 3.0)
    assert op.parameters == (3.0,)
    assert op.result_numbers == numbers


@pytest.mark.parametrize(
    ("operation", "elements", "message"),
    [
        (nn.NegOp, i1, "i1, which has no negative numbers"),
        (lambda x: nn.SubOp(x, x), i1, "i1, which has no negative numbers"),
        (lambda x: nn.AbsOp(x).verify(), IntegerType(4), "i4, which are only stored"),
        (lambda x: nn.ScanOp(x, "min", 0).verify(), IntegerType(4), "i4, which are only stored"),
        (lambda x: nn.SortOp(x, 0).verify(), IntegerType(4), "i4, which are only stored"),
        (lambda x: nn.SortIndicesOp(x, 0).verify(), IntegerType(4), "i4, which are only stored"),
        (
            lambda x: nn.SummarizeOp(x, "argmax", [0]),
            IntegerType(4),
            "argmax of i4, which is only stored",
        ),
    ],
)
def test_elements_that_a_function_cannot_compute_with_are_refused(
    operation: Callable[[SSAValue], object], elements: Attribute, message: str
):
    block = Block(arg_types=[nn.tensor([2], elements)])
    with pytest.raises(VerifyException, match=message):
        operation(block.args[0])
