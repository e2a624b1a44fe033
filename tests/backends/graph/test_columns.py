from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from some_prices import busiest_tile_cycles
from xdsl.dialects.builtin import ModuleOp

from abele.backends.graph import columns as columns_file
from abele.backends.graph.columns import SetColumns
from abele.backends.prices.price import operands_of, variables_of
from abele.backends.target import resolve_target
from abele.dialects.abele import Plan
from abele.dialects.steps import Vertices
from abele.dialects.structured import Structure

from ...element_flow import vertices_of
from ...tile_graphs import tile_programs

TARGET = resolve_target("tiny:16")
NAMES = {"tile": np.int16, "worker": np.int8, "cycles": np.int32, "bytes": np.int32}


def alone(structure: Structure, sizes: tuple[int, ...], shared: bool) -> tuple[Structure, Plan]:
    """A cell of these sizes alone, of which every worker has one, or the supervisor the only."""
    dims = tuple(replace(d, size=n) for d, n in zip(structure.space.dims, sizes, strict=True))
    ones = (1,) * len(dims)
    return replace(structure, space=replace(structure.space, dims=dims)), Plan(
        ones, workers=ones if shared else ()
    )


@given(tile_programs())
@settings(max_examples=15)
def test_a_vertex_has_the_cycles_and_elements_of_its_part(module: ModuleOp):
    variables = variables_of(module)
    for op in module.walk():
        if not isinstance(op, Vertices):
            continue
        vertices, plan = vertices_of(op), op.plan.data
        dtypes = [v.dtype for v in operands_of(op, variables)]
        into = {name: np.zeros(len(vertices), dtype) for name, dtype in NAMES.items()}
        SetColumns(op, variables, TARGET).write(into, 0)
        named = op.space.data.results[0].dims()
        for k, vertex in enumerate(vertices):
            sizes = tuple(map(len, vertex.ranges))
            written = int(np.prod([n for d, n in enumerate(sizes) if d in named]))
            assert into["bytes"][k] == written * dtypes[-1].itemsize
            structure, cell = alone(op.structure(), sizes, bool(plan.workers))
            cell = replace(cell, method=plan.method)
            assert into["cycles"][k] == busiest_tile_cycles(structure, cell, dtypes, TARGET)


@pytest.mark.parametrize("row", [1, 4, 100])
@given(tile_programs())
@settings(max_examples=10)
def test_columns_written_in_pieces_equal_the_whole(row: int, module: ModuleOp):
    variables = variables_of(module)
    with pytest.MonkeyPatch.context() as patch:
        for op in module.walk():
            if not isinstance(op, Vertices):
                continue
            count = len(vertices_of(op))
            whole = {name: np.zeros(count, dtype) for name, dtype in NAMES.items()}
            SetColumns(op, variables, TARGET).write(whole, 0)
            patch.setattr(columns_file, "LEAST_INNER", row)
            patch.setattr(columns_file, "MOST", 5)
            made = SetColumns(op, variables, TARGET)
            for first in range(0, count, 7):
                piece = {
                    name: np.zeros(min(7, count - first), dtype) for name, dtype in NAMES.items()
                }
                made.write(piece, first)
                for name in NAMES:
                    assert piece[name].tolist() == whole[name][first : first + 7].tolist()
            patch.undo()
