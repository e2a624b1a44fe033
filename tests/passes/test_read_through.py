from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from abele.backends.reference.run import run_reference
from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.dtypes import element_type
from abele.dialects.levels import NN
from abele.ir.geometry.space import AccessMap
from abele.ir.verify import verify
from abele.passes import read_through
from abele.passes.read_through import ReadThrough, moved_products
from abele.tools.driver.context import new_context
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.generators.program import Program


def products(draw: Callable[..., Any]) -> ModuleOp:
    """@main multiplies tensors of three axes, of which some are transposed, as is the result."""
    b, m, n, k = (draw(st.integers(1, 4)) for _ in range(4))
    block = Block()
    operands: list[SSAValue] = []
    for shape in ((b, m, k), (b, k, n)):
        order = draw(st.permutations(range(3)))
        stored = tuple(shape[order.index(i)] for i in range(3))
        argument = block.insert_arg(TensorType(f32, stored), len(block.args))
        moved = nn.TransposeOp(argument, order)
        block.add_op(moved)
        operands.append(moved.result)
    product = nn.MatMulOp(*operands)
    last = nn.TransposeOp(product.result, draw(st.permutations(range(3))))
    block.add_ops([product, last, ReturnOp(last.result)])
    types = [each.type for each in block.args], [last.result.type]
    return ModuleOp([FuncOp("main", types, Region(block))])


def heads(draw: Callable[..., Any]) -> ModuleOp:
    """@main multiplies two slices of its argument in heads, as attention does after a product that
    makes queries and keys at once."""
    tokens, count, width = (draw(st.integers(1, 4)) for _ in range(3))
    before, after = (width * draw(st.integers(0, 2)) for _ in range(2))
    size = count * width
    columns = before + 2 * size + after
    block = Block(arg_types=[TensorType(f32, (tokens, columns))])
    operands: list[SSAValue] = []
    for i, order in enumerate(([1, 0, 2], [1, 2, 0])):
        part = nn.SliceOp(block.args[0], [0, before + i * size], [1, 1], [tokens, size])
        split = nn.ReshapeOp(part.result, [tokens, count, width])
        moved = nn.TransposeOp(split.result, order)
        block.add_ops([part, split, moved])
        operands.append(moved.result)
    product = nn.MatMulOp(*operands)
    block.add_ops([product, ReturnOp(product.result)])
    return ModuleOp([FuncOp("main", ([block.args[0].type], [product.result.type]), Region(block))])


def arguments(module: ModuleOp) -> dict[str, np.ndarray]:
    """Whole numbers for the arguments of @main."""
    (function,) = module.body.block.ops
    assert isinstance(function, FuncOp)
    rng = np.random.default_rng(0)
    return {
        f"arg{i}": rng.integers(-4, 5, nn.shape_of(each)).astype(np.float32)
        for i, each in enumerate(function.args)
    }


@pytest.mark.parametrize("make", [products, heads])
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_products_compute_the_same_without_movements(
    make: Callable[..., ModuleOp], data: st.DataObject
):
    module = make(data.draw)
    made = module.clone()
    ReadThrough().apply(new_context(), made)
    verify(made, NN)
    assert not any(isinstance(op, nn.MatMulOp | nn.TransposeOp | nn.SliceOp) for op in made.walk())
    assert moved_products(made) == []
    arrays = arguments(made)
    before, after = (run_reference(each, arrays).outputs["out0"] for each in (module, made))
    np.testing.assert_array_equal(after, before)


# Bugs that are planted in the pass, which the kit finds in products of moved tensors


MOVED = st.one_of(
    *(
        st.composite(make)().map(
            lambda module: Program(
                module, new_context(), arguments(module), resolve_target("tiny:4")
            )
        )
        for make in (products, heads)
    )
)

shifted = vars(read_through)["_shifted"]


def in_the_wrong_order(access: AccessMap, order: Sequence[int]) -> AccessMap:
    """Reads axis i of a transposed tensor where it reads axis order[i] of the tensor."""
    return AccessMap(tuple(access.axes[i] for i in order), access.fill)


def without_its_start(access: AccessMap, op: nn.SliceOp) -> AccessMap | None:
    """Reads a slice from the beginning of each axis."""
    found = shifted(access, op)
    if found is None:
        return None
    return replace(found, axes=tuple(replace(axis, offset=0) for axis in found.axes))


def one_part_too_early(access: AccessMap, op: nn.SliceOp) -> AccessMap | None:
    """Reads a slice one part of an axis before its start."""
    found = shifted(access, op)
    if found is None:
        return None
    axes = (replace(axis, offset=max(axis.offset - 1, 0)) for axis in found.axes)
    return replace(found, axes=tuple(axes))


def test_the_kit_finds_no_difference_in_products_of_moved_tensors():
    report = check_pass(ReadThrough(), programs=MOVED, examples=30, seed=0)
    assert report.changed >= 20


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_through", in_the_wrong_order),
        ("_shifted", without_its_start),
        ("_shifted", one_part_too_early),
    ],
)
def test_the_kit_finds_a_planted_bug(
    name: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(read_through, name, wrong)
    with pytest.raises(Miscompiled):
        _ = check_pass(ReadThrough(), programs=MOVED, examples=200, seed=0, reduce_seconds=1)


def test_products_of_8_bit_floats_stay():
    """They have a scale, which only nn.matmul has."""
    narrow = element_type(np.dtype(ml_dtypes.float8_e4m3fnuz))
    block = Block(arg_types=[TensorType(f32, (3, 4)), TensorType(f32, (5, 4))])
    left, right = (nn.CastOp(each, narrow) for each in block.args)
    moved = nn.TransposeOp(right.result, (1, 0))
    product = nn.MatMulOp(left.result, moved.result)
    block.add_ops([left, right, moved, product, ReturnOp(product.result)])
    types = [each.type for each in block.args], [product.result.type]
    module = ModuleOp([FuncOp("main", types, Region(block))])
    verify(module, NN)
    assert moved_products(module) == []
