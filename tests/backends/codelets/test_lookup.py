import hypothesis.strategies as st
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.lib.stride_tricks import as_strided

from abele.backends.codelets.calls import Scratch, run_calls
from abele.backends.codelets.cells import Cells
from abele.backends.codelets.lookup import lookup
from abele.backends.codelets.numerics import Placed, run_vertices
from abele.backends.reference.structure import structure_value
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Relation, Space, identity_map

ROWS, WIDTH = 6, 3
TABLE = 40
"""Rows of the whole table, of which a cell holds ROWS."""


def gathered(table: np.ndarray, indices: np.ndarray, first: int) -> np.ndarray:
    """What a cell with some rows of a table finds. first: the first row of the cell."""
    rows, count = len(table), len(indices)
    shape = (1, 1, 1, count, table.shape[1], rows)
    result = np.full((count, table.shape[1]), 99, table.dtype)
    reached = first + np.arange(rows)
    cells = Cells(
        Body("identity", "pick"),
        (
            np.broadcast_to(table.T[None, None, None, None], shape),
            np.broadcast_to(indices[None, None, None, :, None, None], shape),
        ),
        as_strided(result, shape, (0, 0, 0, *result.strides, 0)),
        (5,),
        relations=(np.broadcast_to(reached, shape),),
        axis_sizes=(TABLE,),
    )
    run_calls(lookup(cells, Scratch()))
    return result


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
def test_a_cell_finds_the_rows_that_it_holds_and_zeros_for_the_others(dtype):
    table = np.arange(ROWS * WIDTH).reshape(ROWS, WIDTH).astype(dtype) - 7
    indices = np.array([3, 8, 2, -1, 5, 3 - TABLE, 39])
    found = gathered(table, indices, first=2)
    row = indices % TABLE
    inside = (row >= 2) & (row < 8)
    expected = np.where(inside[:, None], table[np.clip(row - 2, 0, ROWS - 1)], 0)
    np.testing.assert_array_equal(found, expected)


def test_a_lookup_keeps_the_sign_of_zero_and_the_bits_of_nan():
    table = np.array([[-0.0], [0.0], [1.0]], np.float32)
    table[2] = np.array(0x7FC12345, np.uint32).view(np.float32)
    found = gathered(table, np.array([2, 0, 1]), first=0)
    assert found.view(np.uint32).ravel().tolist() == [0x7FC12345, 0x80000000, 0]


def test_rows_of_a_float_without_zero_are_found_and_the_others_have_no_bits():
    table = np.array([[1.0], [2.0], [0.25]], ml_dtypes.float8_e8m0fnu)
    found = gathered(table, np.array([2, 30, 1]), first=0)
    assert found.view(np.uint8).ravel().tolist() == [125, 0, 128]


def test_a_body_without_matches_leaves_the_identity():
    table = np.ones((ROWS, WIDTH), np.float32)
    assert not gathered(table, np.array([30, -3]), first=0).any()


@st.composite
def spaces(draw: st.DrawFn) -> tuple[Structure, list[np.ndarray]]:
    """Sums over spaces with one or two relations. An index may depend on the dimension it names."""
    sizes = [draw(st.integers(1, 4)) for _ in range(3)]
    kept = sorted(draw(st.sets(st.integers(0, 2))))

    def access() -> AccessMap:
        read = tuple(draw(st.lists(st.integers(0, 2), max_size=3, unique=True)))
        return identity_map(read, tuple(sizes[d] for d in read))

    dims = tuple(
        Dim(f"d{i}", n, "parallel" if i in kept else "reduction") for i, n in enumerate(sizes)
    )
    relations: list[Relation] = []
    for i in range(draw(st.integers(1, 2))):
        named = draw(st.lists(st.integers(0, 2), max_size=2, unique=True))
        terms = tuple((d, draw(st.integers(1, 2))) for d in named)
        size, offset = draw(st.integers(1, 6)), draw(st.integers(-1, 1))
        relations.append(Relation(AxisMap(size, terms, offset, outside="fill"), 1 + i))
    maps = [access() for _ in range(1 + len(relations))]
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    values = rng.integers(-4, 5, maps[0].shape).astype(np.float32)
    indices = [
        rng.integers(-each.axis.size, each.axis.size, maps[each.operand].shape).astype(np.int32)
        for each in relations
    ]
    result = identity_map(tuple(kept), tuple(sizes[d] for d in kept))
    space = Space(dims, tuple(maps), (result,), tuple(relations))
    return Structure(space, Body("identity", "sum")), [values, *indices]


def placed(array: np.ndarray) -> Placed:
    return Placed(array.reshape(-1).view(np.uint8)[None], 0, array.dtype)


@settings(max_examples=100)
@given(spaces())
def test_a_codelet_agrees_with_the_reference_on_any_relations(case):
    structure, operands = case
    result = np.full(structure.space.results[0].shape, 99, np.float32)
    plan = Plan((1,) * len(structure.space.dims))
    run_vertices(structure, plan, [placed(each) for each in operands], placed(result))
    expected = structure_value(structure, operands, result.dtype, result.shape)
    np.testing.assert_array_equal(result, expected)


def test_an_index_may_depend_on_the_dimension_that_it_names():
    """Points d at which indices[d] == d."""
    each = identity_map((0,), (3,))
    relation = Relation(AxisMap(6, ((0, 1),)), 1)
    space = Space((Dim("d", 3, "reduction"),), (each, each), (AccessMap(()),), (relation,))
    values, result = np.array([1, 2, 4], np.float32), np.full((), 99, np.float32)
    indices = np.array([0, 1, 5], np.int32)
    structure = Structure(space, Body("identity", "sum"))
    run_vertices(structure, Plan((1,)), [placed(values), placed(indices)], placed(result))
    assert result == 3
