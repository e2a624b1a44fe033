import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from abele.backends.codelets.numerics import Placed, VertexSet, run_vertices
from abele.backends.evaluate.blocks import Blocks, write_blocks
from abele.backends.faults import IndexFault
from abele.backends.reference.structure import structure_value
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AxisMap, Dim, Relation, Space, identity_map
from abele.tools import compile_model

GATHER = """
builtin.module {
  func.func @main(%table: tensor<30x4xf32>, %at: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
    %0 = nn.gather %table, %at axis 0 : (tensor<30x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
        loc("embed")
    func.return %0 : tensor<2x3x4xf32>
  }
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    path = tmp_path_factory.mktemp("gather") / "gather.mlir"
    path.write_text(GATHER)
    return compile_model(path, target="tiny:4")


@pytest.mark.parametrize("index", [30, -31, 1 << 40])
@pytest.mark.parametrize("level", ["nn", "partition", "tile", "exchange"])
def test_an_index_out_of_range_is_a_fault_of_the_node_at_every_level(compiled, level, index):
    at = np.zeros((2, 3), np.int64)
    at[1, 0], at[1, 2] = index, 77
    inputs = {"arg0": np.ones((30, 4), np.float32), "arg1": at}
    message = rf"at embed: index {index} at \[1, 0\] of an axis of 30 elements; need -30\.\.29"
    with pytest.raises(IndexFault, match=message) as found:
        compiled.run(inputs, at=level)
    assert found.value.node == "embed"
    if level == "exchange":
        with pytest.raises(IndexFault, match=message):
            compiled.run(inputs, strict=True)


def test_negative_indices_count_from_the_end(compiled):
    table = np.arange(120, dtype=np.float32).reshape(30, 4)
    at = np.array([[-1, 0, -30], [29, -2, 5]])
    found = compiled.run({"arg0": table, "arg1": at})
    np.testing.assert_array_equal(*found.values(), table[at])


@st.composite
def cut_gathers(draw):
    """A gather of a table [rows, 2] by indices [n, m], a plan, and indices of which some are out of
    range."""
    rows, n, m = (draw(st.integers(1, 5)) for _ in range(3))
    dims = (Dim("n", n), Dim("m", m), Dim("k", 2), Dim("row", rows, "reduction"))
    table, at = identity_map((3, 2), (rows, 2)), identity_map((0, 1), (n, m))
    relation = Relation(AxisMap(rows, ((3, 1),) if rows > 1 else ()), 1)
    space = Space(dims, (table, at), (identity_map((0, 1, 2), (n, m, 2)),), (relation,))
    split = tuple(draw(st.integers(1, k)) for k in (n, m, 2))
    indices = draw(st.lists(st.integers(-rows - 1, rows), min_size=n * m, max_size=n * m))
    held = np.array(indices, draw(st.sampled_from([np.int8, np.int64]))).reshape(n, m)
    return Structure(space, Body("identity", "pick")), Plan((*split, 1)), held


@settings(max_examples=30)
@given(cut_gathers())
def test_however_a_gather_is_cut_the_fault_names_the_first_index_that_is_out_of_range(case):
    structure, plan, at = case
    space = structure.space
    table = np.zeros(space.operands[0].shape, np.float32)
    outside = np.argwhere((at < -len(table)) | (at >= len(table)))
    cells = int(np.prod(plan.split))
    blocks = [np.zeros((cells, 1024), np.uint8) for _ in range(3)]
    operands = [Placed(b, 0, a.dtype) for b, a in zip(blocks, (table, at), strict=False)]
    layouts = VertexSet.of(structure, plan).layouts
    for values, placed, layout in zip((table, at), operands, layouts, strict=False):
        write_blocks(values, Blocks(placed, layout))
    result = Placed(blocks[2], 0, table.dtype)
    if not len(outside):
        run_vertices(structure, plan, operands, result)
        return
    for run in (
        lambda: run_vertices(structure, plan, operands, result),
        lambda: structure_value(structure, [table, at], table.dtype, (*at.shape, 2)),
    ):
        with pytest.raises(IndexFault) as found:
            run()
        assert found.value.position == tuple(outside[0])
        assert found.value.value == at[tuple(outside[0])]
