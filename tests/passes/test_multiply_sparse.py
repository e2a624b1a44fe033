import numpy as np
import pytest
from block_sparse import sparse_matrix
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from abele.backends.reference.run import run_reference
from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.dtypes import element_type, numpy_dtype
from abele.dialects.levels import NN
from abele.ir.support.errors import InputError
from abele.ir.verify import verify
from abele.passes.multiply_sparse import MARGIN, MultiplySparse
from abele.passes.planner.alone import cycles_alone
from abele.passes.plans.sparse_prices import read_sparse_prices
from abele.passes.sparse.windows import as_weight
from abele.tools.driver.context import new_context


def program(dense_shape, build, *arrays, dtype=np.float32) -> ModuleOp:
    """@main applies an operation to its argument and to constants."""
    block = Block(arg_types=[TensorType(element_type(np.dtype(dtype)), dense_shape)])
    constants = [nn.ConstantOp(each) for each in arrays]
    block.add_ops(constants)
    op = build(block.args[0], *(each.result for each in constants))
    block.add_ops([op, ReturnOp(op.result)])
    types = [block.args[0].type], [op.result.type]
    return ModuleOp([FuncOp("main", types, Region(block))])


def rewritten(module: ModuleOp, options: str = "", target: str = "mk2:64") -> ModuleOp:
    made = module.clone()
    MultiplySparse(target, options).apply(new_context(), made)
    verify(made, NN)
    return made


def computes(module: ModuleOp) -> int:
    return sum(isinstance(op, nn.ComputeOp) for op in module.walk())


def same(module: ModuleOp, made: ModuleOp, shape, dtype=np.float32) -> None:
    given = {"arg0": np.random.default_rng(1).integers(-4, 5, shape).astype(dtype)}
    before, after = (run_reference(each, given).outputs["out0"] for each in (module, made))
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("side", ["left", "right", "turned right", "turned left"])
def test_a_sparse_factor_of_a_product_becomes_buckets(side, dtype):
    rng = np.random.default_rng(0)
    matrix = sparse_matrix(rng, (128, 192), (16, 16), 0.1, dtype)
    right, turned = "right" in side, "turned" in side
    shape = (3, 8, 192) if right else (192, 24)
    stored = matrix.T if right != turned else matrix

    def build(x, w):
        if right:
            return nn.MatMulOp(x, w, transpose_rhs=turned)
        return nn.MatMulOp(w, x, transpose_lhs=turned)

    module = program(shape, build, np.ascontiguousarray(stored), dtype=dtype)
    made = rewritten(module)
    assert computes(made) == 1
    assert not any(isinstance(op, nn.MatMulOp) for op in made.walk())
    same(module, made, shape, dtype)


@pytest.mark.parametrize("flags", [{}, {"transposed": True}, {"dense_last": True}])
def test_a_constant_pattern_becomes_buckets(flags):
    rng = np.random.default_rng(0)
    count, high, wide = 120, 64, 32
    values = rng.integers(-4, 5, (count, 8, 16)).astype(np.float32)
    rows = rng.integers(-high, high, count).astype(np.int32)
    columns = rng.integers(0, wide, count).astype(np.int32)
    k, m = (high * 8, wide * 16) if flags.get("transposed") else (wide * 16, high * 8)
    shape = (128, k) if flags.get("dense_last") else (k, 128)
    module = program(
        shape,
        lambda x, v, r, c: nn.BlockMatMulOp(v, x, r, c, m, **flags),
        *(values, rows, columns),
    )
    made = rewritten(module)
    assert computes(made) == 1
    same(module, made, shape)


@pytest.mark.parametrize(("density", "options"), [(0.9, ""), (0.1, "7x7"), (0.1, "16x48")], ids=str)
def test_other_products_stay(density, options):
    matrix = sparse_matrix(np.random.default_rng(0), (64, 64), (16, 16), density)
    module = program((64, 8), lambda x, w: nn.MatMulOp(w, x), matrix)
    assert not computes(rewritten(module, options))


@pytest.mark.parametrize(("height", "width"), [(5, 3), (1, 7), (17, 2)])
def test_blocks_may_have_odd_sizes(height, width):
    rng = np.random.default_rng(0)
    high, wide, count = 7, 9, 20
    values = rng.integers(-4, 5, (count, height, width)).astype(np.float32)
    rows, columns = (rng.integers(-n, n, count).astype(np.int32) for n in (high, wide))
    module = program(
        (wide * width, 6),
        lambda x, v, r, c: nn.BlockMatMulOp(v, x, r, c, high * height),
        *(values, rows, columns),
    )
    made = rewritten(module)
    assert computes(made) == 1
    same(module, made, (wide * width, 6))


def test_a_list_of_truth_values_stays():
    index = np.zeros(1, np.int32)
    block = Block(arg_types=[TensorType(element_type(np.dtype(bool)), (4, 2))])
    constants = [nn.ConstantOp(each) for each in (np.ones((1, 4, 4), bool), index, index)]
    values, rows, columns = (each.result for each in constants)
    op = nn.BlockMatMulOp(values, block.args[0], rows, columns, 4)
    block.add_ops([*constants, op, ReturnOp(op.result)])
    module = ModuleOp([FuncOp("main", ([block.args[0].type], [op.result.type]), Region(block))])
    assert not computes(rewritten(module))


def test_an_index_out_of_range_is_left_to_the_run():
    index = np.array([0, 4], np.int32)
    module = program(
        (16, 8),
        lambda x, v, r, c: nn.BlockMatMulOp(v, x, r, c, 16),
        *(np.ones((2, 4, 4), np.float32), index, index),
    )
    assert not computes(rewritten(module))


def test_products_without_results_stay():
    index = np.zeros(2, np.int32)
    blocks = np.ones((2, 4, 4), np.float32), index, index
    for module in (
        program((4, 0), lambda x, v, r, c: nn.BlockMatMulOp(v, x, r, c, 4), *blocks),
        program((0, 4), lambda x, w: nn.MatMulOp(x, w), np.zeros((4, 4), np.float32)),
    ):
        assert not computes(rewritten(module))


@pytest.mark.parametrize("density", [0.0, 1.0])
def test_a_list_of_no_blocks_or_of_all_becomes_buckets(density):
    side = np.arange(8, dtype=np.int32)
    rows, columns = (each.ravel()[: int(64 * density)] for each in np.meshgrid(side, side))
    values = np.random.default_rng(0).integers(-4, 5, (len(rows), 16, 16)).astype(np.float32)
    module = program(
        (128, 256),
        lambda x, v, r, c: nn.BlockMatMulOp(v, x, r, c, 128),
        *(values, rows, columns),
    )
    made = rewritten(module)
    assert computes(made) == 1
    same(module, made, (128, 256))


@pytest.mark.parametrize(("density", "count"), [(0.0, 1), (1.0, 0)])
def test_a_matrix_of_zeros_is_sparse_and_one_without_zeros_is_not(density, count):
    matrix = sparse_matrix(np.random.default_rng(0), (128, 128), (16, 16), density)
    module = program((128, 256), lambda x, w: nn.MatMulOp(w, x), matrix)
    made = rewritten(module)
    assert computes(made) == count
    same(module, made, (128, 256))


def test_factors_are_known_through_transposes_and_casts():
    matrix = sparse_matrix(np.random.default_rng(0), (256, 128), (16, 16), 0.1)
    block = Block(arg_types=[TensorType(element_type(np.dtype(np.float16)), (64, 128))])
    constant = nn.ConstantOp(matrix)
    turned = nn.TransposeOp(constant.result, (1, 0))
    cast = nn.CastOp(turned.result, element_type(np.dtype(np.float16)))
    product = nn.MatMulOp(block.args[0], cast.result)
    block.add_ops([constant, turned, cast, product, ReturnOp(product.result)])
    types = [block.args[0].type], [product.result.type]
    module = ModuleOp([FuncOp("main", types, Region(block))])
    made = rewritten(module)
    assert computes(made) == 1
    same(module, made, (64, 128), np.float16)


def moved(kind: str, array: np.ndarray) -> list:
    """Operations of which the last has the elements of a matrix, and the first holds them."""
    if kind == "reshape":
        first = nn.ConstantOp(array.reshape(2, -1, array.shape[1]))
        return [first, nn.ReshapeOp(first.result, array.shape)]
    if kind == "slice":
        first = nn.ConstantOp(np.pad(array, ((3, 5), (0, 2)), constant_values=7))
        return [first, nn.SliceOp(first.result, (3, 0), (1, 1), array.shape)]
    if kind == "expand":
        row = nn.ConstantOp(array[:1])
        assert (array == array[0]).all()
        return [row, nn.ExpandOp(row.result, array.shape)]
    first = nn.ConstantOp(array)
    return [first, nn.MulOp(first.result, first.result)]


@pytest.mark.parametrize("kind", ["reshape", "slice", "expand", "squares"])
def test_factors_are_known_through_operations_on_constants(kind):
    matrix = sparse_matrix(np.random.default_rng(0), (128, 256), (16, 16), 0.1)
    matrix = np.broadcast_to(matrix[0], matrix.shape) if kind == "expand" else matrix
    block = Block(arg_types=[TensorType(element_type(np.dtype(np.float32)), (64, 128))])
    ops = moved(kind, matrix)
    product = nn.MatMulOp(block.args[0], ops[-1].results[0])
    block.add_ops([*ops, product, ReturnOp(product.result)])
    module = ModuleOp(
        [FuncOp("main", ([block.args[0].type], [product.result.type]), Region(block))]
    )
    made = rewritten(module)
    assert computes(made) == 1
    same(module, made, (64, 128))


def prices(module: ModuleOp, options: str = ""):
    return read_sparse_prices(rewritten(module, options))


def test_the_module_records_both_prices_of_each_product():
    rng = np.random.default_rng(0)
    (each,) = prices(
        program(
            (128, 256),
            lambda x, w: nn.MatMulOp(w, x),
            sparse_matrix(rng, (128, 128), (16, 16), 0.1),
        )
    )
    assert (each.matrix, each.block, each.kept) == ("128x128", "16x16", "")
    assert 0 < each.sparse * MARGIN < each.dense < np.inf
    assert 0 < each.held < 0.3
    (each,) = prices(
        program(
            (64, 2), lambda x, w: nn.MatMulOp(w, x), sparse_matrix(rng, (64, 64), (16, 16), 0.4)
        )
    )
    assert each.kept in ("buckets are slower", "buckets are faster by less than a tenth")
    assert each.sparse * MARGIN >= each.dense


def test_the_price_counts_the_movement_that_puts_the_rows_back():
    rng = np.random.default_rng(0)
    matrix = sparse_matrix(rng, (512, 256), (8, 8), 0.1)
    made = rewritten(program((256, 64), lambda x, w: nn.MatMulOp(w, x), matrix))
    (product,) = (op for op in made.walk() if isinstance(op, nn.ComputeOp))
    (order,) = (op for op in made.walk() if isinstance(op, nn.TakeOp))
    dtypes = [numpy_dtype(nn.element_of(value)) for value in (*product.operands, product.result)]
    given = product.structure(), dtypes, [False, True, False, False], resolve_target("mk2:64")
    (each,) = read_sparse_prices(made)
    assert each.sparse == cycles_alone(*given, order.moves()[0]) > cycles_alone(*given)


@pytest.mark.parametrize(
    ("flags", "density", "options", "kept"),
    [
        ({}, 1.0, "", "100% of its elements are not 0"),
        ({}, 0.1, "7x7", "blocks of 7x7 do not divide it"),
        ({}, 0.4, "64x64", "100% of its blocks of 64x64 are not 0"),
        ({"transpose_rhs": True}, 0.1, "", "the other factor is transposed"),
    ],
)
def test_the_module_records_why_a_product_stays(flags, density, options, kept):
    matrix = sparse_matrix(np.random.default_rng(0), (64, 64), (16, 16), density)
    module = program((64, 64), lambda x, w: nn.MatMulOp(w, x, **flags), matrix)
    (each,) = prices(module, options)
    assert (each.kept, each.matrix) == (kept, "64x64")
    assert (each.dense, each.sparse) == (np.inf, np.inf)


def test_a_fault_of_an_index_is_a_reason():
    index = np.array([0, 4], np.int32)
    module = program(
        (16, 8),
        lambda x, v, r, c: nn.BlockMatMulOp(v, x, r, c, 16),
        *(np.ones((2, 4, 4), np.float32), index, index),
    )
    assert [each.kept for each in prices(module)] == ["an index is out of range"]


def test_a_block_that_is_none_is_refused():
    module = program((4, 4), lambda x, w: nn.MatMulOp(w, x), np.zeros((4, 4), np.float32))
    with pytest.raises(InputError, match="block '16'; need HEIGHTxWIDTH, such as 16x16"):
        rewritten(module, "16")


CONVOLUTIONS = {
    "points": ((64, 96, 1, 1), {}),
    "points in steps": ((64, 96, 1, 1), {"stride": [2, 1]}),
    "taps": ((64, 64, 3, 3), {"pad_low": [1, 1], "pad_high": [1, 1]}),
    "taps apart": ((64, 64, 2, 3), {"stride": [1, 2], "dilation": [2, 1], "pad_low": [0, 2]}),
}
"""Shapes of weights, and where the windows of a convolution lie."""


def convolution(kind: str, density: float) -> tuple[ModuleOp, tuple[int, ...]]:
    """A convolution whose weights are zero in most blocks of 16 outputs by 16 channels of a tap."""
    shape, where = CONVOLUTIONS[kind]
    outputs, channels, *kernel = shape
    depth = channels * int(np.prod(kernel))
    matrix = sparse_matrix(
        np.random.default_rng(0), (outputs, depth), (16, 16), density, np.float16
    )
    image = (2, channels, 16, 12)
    weight = np.ascontiguousarray(as_weight(matrix, shape))
    module = program(image, lambda x, w: nn.ConvOp(x, w, **where), weight, dtype=np.float16)
    return module, image


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_a_pruned_convolution_becomes_buckets(kind):
    module, image = convolution(kind, 0.03)
    made = rewritten(module, "16x16", "mk2:16")
    assert not any(isinstance(op, nn.ConvOp) for op in made.walk())
    same(module, made, image, np.float16)


def test_a_convolution_stays_where_its_windows_cost_more_than_zeros_save():
    module, _ = convolution("taps", 0.45)
    (price,) = read_sparse_prices(rewritten(module, "8x8", "mk2:64"))
    assert price.kept == "buckets are slower"
    assert price.sparse > price.dense > 0


def test_a_convolution_in_groups_stays():
    weight = np.zeros((32, 16, 1, 1), np.float32)
    module = program((1, 32, 8, 8), lambda x, w: nn.ConvOp(x, w, groups=2), weight)
    assert [each.kept for each in prices(module)] == ["it has groups"]


def test_the_pattern_of_trained_values_is_known():
    """Values that only a run knows are put into buckets by a movement."""
    rng = np.random.default_rng(0)
    count, high, wide = 60, 32, 32
    rows, columns = (rng.integers(0, n, count).astype(np.int32) for n in (high, wide))
    for transposed in (False, True):
        kinds = [
            TensorType(element_type(np.dtype(np.float32)), shape)
            for shape in ((count, 8, 8), (wide * 8, 128))
        ]
        block = Block(arg_types=kinds)
        constants = [nn.ConstantOp(each) for each in (rows, columns)]
        indices = (each.result for each in constants)
        op = nn.BlockMatMulOp(
            *(block.args[0], block.args[1], *indices, high * 8), transposed=transposed
        )
        block.add_ops([*constants, op, ReturnOp(op.result)])
        module = ModuleOp([FuncOp("main", (kinds, [op.result.type]), Region(block))])
        made = rewritten(module)
        assert computes(made) == 1
        given = {
            "arg0": rng.integers(-4, 5, (count, 8, 8)).astype(np.float32),
            "arg1": rng.integers(-4, 5, (wide * 8, 128)).astype(np.float32),
        }
        before, after = (run_reference(each, given).outputs["out0"] for each in (module, made))
        np.testing.assert_array_equal(after, before)
