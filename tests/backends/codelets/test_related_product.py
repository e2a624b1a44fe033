from unittest.mock import patch

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings
from xdsl.dialects.builtin import TensorType, f32, i32
from xdsl.ir import Block

from abele.backends.codelets import related_product as codelet
from abele.backends.codelets.numerics import Placed, kind_of, run_vertices
from abele.backends.codelets.ordered import TERMS, fused_matmul
from abele.backends.reference.structure import structure_value
from abele.dialects import nn
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Structure

BLOCKS, HIGH, WIDE, SIDES, COLUMNS = 7, 3, 2, (2, 3), 4


def operator(transposed: bool, columns: int = COLUMNS) -> nn.BlockMatMulOp:
    """A product of a matrix of 3 x 2 blocks of 2 x 3 elements, or of its transpose."""
    k, m = (HIGH * SIDES[0], WIDE * SIDES[1])[:: 1 if transposed else -1]
    shapes = [(BLOCKS, *SIDES), (k, columns), (BLOCKS,), (BLOCKS,)]
    kinds = [f32, f32, i32, i32]
    types = [TensorType(kind, shape) for kind, shape in zip(kinds, shapes, strict=True)]
    return nn.BlockMatMulOp(*Block(arg_types=types).args, size=m, transposed=transposed)


def gradient_of_values(structure: Structure) -> Structure:
    """The structure of the gradient of the values: at each block, a product of dense rows."""
    space = structure.space
    values, dense, *indices = space.operands
    kinds = {d: "parallel" for d in values.dims()}
    dims = tuple(
        type(each)(each.name, each.size, kinds.get(d, "reduction"))
        for d, each in enumerate(space.dims)
    )
    operands = (space.results[0], dense, *indices)
    return Structure(type(space)(dims, operands, (values,), space.relations), structure.body)


@st.composite
def cases(draw):
    """A sum of products at related points, and integers for its operands."""
    structure = operator(draw(st.booleans())).structure()
    if draw(st.booleans()):
        structure = gradient_of_values(structure)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    sizes = [each.axis.size for each in structure.space.relations]
    operands = [
        rng.integers(-9, 10, access.shape).astype(np.float32)
        for access in structure.space.operands[:2]
    ]
    operands += [rng.integers(-n, n, BLOCKS).astype(np.int32) for n in sizes]
    return structure, operands


def computed(structure: Structure, operands: list[np.ndarray]) -> np.ndarray:
    """What the codelet computes on one tile."""
    result = np.full(structure.space.results[0].shape, 99, np.float32)
    plan = Plan((1,) * len(structure.space.dims))

    def flat(array: np.ndarray) -> Placed:
        return Placed(array.reshape(-1).view(np.uint8)[None], 0, array.dtype)

    run_vertices(structure, plan, [flat(each) for each in operands], flat(result))
    return result


@settings(max_examples=60)
@given(cases(), st.sampled_from([1, 3, 1 << 20]))
def test_the_codelet_agrees_with_the_reference_exactly_on_integers(case, points):
    structure, operands = case
    with patch.object(codelet, "SCRATCH_BYTES", points):
        result = computed(structure, operands)
    np.testing.assert_array_equal(
        result, structure_value(structure, operands, result.dtype, result.shape)
    )


def test_terms_are_added_in_the_order_of_every_host_and_not_in_that_of_blas():
    columns = 3 * TERMS + 20
    structure = gradient_of_values(operator(transposed=False, columns=columns).structure())
    rng = np.random.default_rng(0)
    (height, width), shape = SIDES, (HIGH, WIDE)
    made, dense = (
        rng.standard_normal((n * side, columns)).astype(np.float32)
        for n, side in zip(shape, SIDES, strict=True)
    )
    rows, places = (rng.integers(0, n, BLOCKS).astype(np.int32) for n in shape)
    left = made.reshape(HIGH, height, columns)[rows]
    right = dense.reshape(WIDE, width, columns)[places].swapaxes(1, 2)
    wanted, chain = np.zeros((2, BLOCKS, height, width), np.float32)
    for first in range(0, columns, TERMS):
        some = slice(first, first + TERMS)
        fused_matmul(left[..., some], right[:, some], chain)
        wanted += chain
    np.testing.assert_array_equal(computed(structure, [made, dense, rows, places]), wanted)


def test_only_sums_of_products_are_computed_so():
    assert kind_of(Body("mul", "sum"), relations=2) == "related_product"
    assert kind_of(Body("mul", "max"), relations=1) == "lookup"
    assert kind_of(Body("identity", "sum"), relations=1) == "lookup"
    assert kind_of(Body("mul", "sum", resumes=True), relations=1) == "lookup"
