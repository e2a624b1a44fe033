"""Vertices and edges by chip, against lists of all vertices and edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.graph import Graph, graph_of
from abele.backends.graph.chips import SetChips
from abele.backends.target import resolve_target
from abele.ir.text import parse_module
from abele.tools.driver.compile import compile_model

from ...strategies import context

FAST = (
    "links.topology=ladder,links.rung_gbytes=1e6,links.rail_gbytes=1e6,links.hop_ns=0,"
    "links.first_word_ns=0"
)

TEXT = """
!x = tensor<ROWSx48xf16>
!w = tensor<48x48xf16>
func.func @main(%x: !x, %w: !w, %v: !w) -> !x attributes {arg_names = ["x", "w", "v"]} {
  %0 = nn.matmul %x, %w : (!x, !w) -> !x loc("fc1")
  %1 = nn.softmax %0 axis 0 : (!x) -> !x loc("softmax")
  %2 = nn.matmul %1, %v : (!x, !w) -> !x loc("fc2")
  func.return %2 : !x
}
"""


def compare(graph: Graph) -> None:
    """Compare the counts of a graph with those of its lists."""
    chips, found = graph.chips, graph.by_chip
    chip = graph.vertices()["tile"].astype(np.int64) // (graph.tiles // chips)
    assert found.vertices.tolist() == np.bincount(chip, minlength=chips).tolist()
    edges, size = np.zeros((2, chips, chips), np.int64)
    for block in graph.edges():
        np.add.at(edges, (chip[block.producer], chip[block.consumer]), 1)
        np.add.at(size, (chip[block.producer], chip[block.consumer]), block.bytes)
    assert found.edges.sum() == graph.edge_count
    assert found.connections.sum() == graph.connection_count
    for values, expected in ((found.edges, edges), (found.bytes, size)):
        listed = np.zeros((chips, chips), np.int64)
        listed[found.source, found.destination] = values
        assert listed.tolist() == expected.tolist()
    assert found.between == edges.sum() - np.trace(edges)


@pytest.mark.parametrize(("rows", "tiles", "chips"), [(512, 16, 4), (500, 20, 4), (128, 6, 2)])
def test_counts_are_those_of_the_lists(tmp_path: Path, rows: int, tiles: int, chips: int):
    (tmp_path / "net.mlir").write_text(TEXT.replace("ROWS", f"{rows}"))
    target = f"tiny:{tiles},{FAST},links.chips={chips}"
    exe = compile_model(tmp_path / "net.mlir", target, cache=False)
    graph = graph_of(exe.module_at("exchange"), exe.target)
    compare(graph)
    assert graph.by_chip.between > 0


def straddling() -> str:
    """Vertices of 3 x 3 cells from tile 1 on, so that a row of cells is on two chips of 4 tiles."""
    space = "<[i = 9, j = 9] (i, j) of [9, 9] -> (i, j) of [9, 9]>"
    layout = "<[9 by 3, 9 by 3] (d0, d1) of [9, 9] at 1>"
    copied = "<[9 by 2, 9 by 2] (d0, d1) of [9, 9]>"
    lines = [
        f"exchange.variable @{name} at {400 * k} : tensor<9x9xf32> layout {where}"
        for k, (name, where) in enumerate([("x", layout), ("a", layout), ("b", copied)])
    ]
    lines.append(f"exchange.variable @c at 1600 : tensor<9x9xf32> layout {copied}")
    relu = f"exchange.compute space {space} body <relu>"
    lines.append('func.func @main() { exchange.superstep @one { exchange.sync "internal"')
    lines.append(f"{relu} plan <split [3, 3] at 1> reads [@x] writes @a }}")
    lines.append('exchange.superstep @move { exchange.sync "all" exchange.move [@a] -> @b }')
    lines.append('exchange.superstep @two { exchange.sync "internal"')
    lines.append(f"{relu} plan <split [2, 2]> reads [@b] writes @c }} func.return }}")
    return "\n".join(lines)


def test_vertices_whose_chips_do_not_follow_from_parts_are_listed():
    target = resolve_target(f"tiny:12,{FAST},links.chips=2")
    graph = graph_of(parse_module(straddling(), context()), target)
    compare(graph)
    width = graph.tiles // graph.chips
    assert [each.chips(width) is None for each in graph._columns] == [True, False]
    assert graph.by_chip.between > 0


@given(
    st.integers(0, 40),
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), max_size=3),
    st.integers(1, 9),
)
@settings(max_examples=60, deadline=None)
def test_a_sum_of_chips_is_the_chip_of_the_sum_of_tiles(
    first: int, parts: list[list[int]], chip_tiles: int
):
    along = [np.array(each) for each in parts]
    found = SetChips.of(first, along, chip_tiles)
    tiles = np.array(first)
    for each in along:
        tiles = np.add.outer(tiles, each)
    chips = tiles.ravel() // chip_tiles
    if found is None:
        rests = [first % chip_tiles, *((each % chip_tiles).max() for each in along)]
        assert sum(rests) >= chip_tiles
        return
    assert (found.first + found.added(np.arange(len(chips)))).tolist() == chips.tolist()
    most = int(chips.max()) + 1
    assert found.counts(most).tolist() == np.bincount(chips, minlength=most).tolist()


def test_everything_is_on_the_only_chip(tmp_path: Path):
    (tmp_path / "net.mlir").write_text(TEXT.replace("ROWS", "32"))
    exe = compile_model(tmp_path / "net.mlir", "tiny:4", cache=False)
    graph = graph_of(exe.module_at("exchange"), exe.target)
    found = graph.by_chip
    assert (found.vertices.tolist(), found.between) == ([graph.vertex_count], 0)
    assert found.edges.tolist() == [graph.edge_count]
