"""The tables of a graph against a brute force that follows every element of every tensor."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from xdsl.dialects.builtin import ModuleOp

from abele.backends.counts import counts
from abele.backends.graph import Graph, graph_of
from abele.backends.target import resolve_target
from abele.ir.errors import InputError
from abele.ir.text import parse_module
from abele.tools.testing import Program, programs

from ...copying_programs import copying_programs
from ...element_flow import ElementFlow
from ...strategies import context
from ...tile_graphs import tile_programs

TARGET = resolve_target("tiny:16")


def listed(graph: Graph, most: int = 7, loops: bool = False) -> dict[tuple[int, int, int], int]:
    """Bytes by (producer, consumer, operand); every edge once."""
    found: dict[tuple[int, int, int], int] = {}
    for block in graph.edges(most, loops):
        assert 0 < len(block.producer) <= most
        operand = graph.links[block.link].operand
        for producer, consumer, size in zip(
            block.producer.tolist(), block.consumer.tolist(), block.bytes.tolist(), strict=True
        ):
            assert (producer, consumer, operand) not in found
            found[producer, consumer, operand] = size
    return found


@given(tile_programs())
@settings(max_examples=25)
def test_the_edges_equal_those_found_by_following_every_element(module: ModuleOp):
    compare(module)


@given(copying_programs(depth=0))
@settings(max_examples=25)
def test_the_edges_through_many_copies_are_as_many(text: str):
    compare(parse_module(text, context()))


def compare(module: ModuleOp) -> None:
    """Compare the edges of a graph with those found by following every element."""
    slow, graph = ElementFlow(module).run(), graph_of(module, TARGET)
    itemsizes = {v.symbol: v.dtype.itemsize for v in module.body.block.ops if hasattr(v, "dtype")}
    itemsize = {}
    for each, (op, vertices) in zip(graph.sets, slow.vertices, strict=True):
        for operand, name in enumerate(op.sources):
            for number in range(each.first, each.first + len(vertices)):
                itemsize[number, operand] = itemsizes[name]
    assert listed(graph) == {
        edge: elements * itemsize[edge[1:]] for edge, elements in slow.edges.items()
    }
    assert graph.edge_count == len(slow.edges)
    assert sum(link.bytes for link in graph.links) == sum(listed(graph, 10**6).values())


@given(tile_programs())
@settings(max_examples=25)
def test_the_vertices_are_those_of_every_set(module: ModuleOp):
    slow, graph = ElementFlow(module).run(), graph_of(module, TARGET)
    columns = graph.vertices()
    assert columns["id"].tolist() == list(range(slow.count))
    at = 0
    for each, (op, vertices) in zip(graph.sets, slow.vertices, strict=True):
        here = slice(at, at := at + len(vertices))
        assert (each.first, each.count) == (here.start, len(vertices))
        assert columns["tile"][here].tolist() == [v.tile for v in vertices]
        shared = bool(op.plan.data.workers)
        workers = [v.turn % TARGET.workers if shared else -1 for v in vertices]
        assert columns["worker"][here].tolist() == workers
        written = [int(np.prod([len(v.ranges[d]) for d in named(op)])) for v in vertices]
        assert (columns["bytes"][here] % np.maximum(written, 1) == 0).all()
        assert set(columns["set"][here].tolist()) == {each.index}
        assert set(columns["compute_set"][here].tolist()) == {each.compute_set}
    assert at == slow.count


def named(op) -> list[int]:
    return sorted(op.space.data.results[0].dims())


@given(tile_programs())
@settings(max_examples=15)
def test_counts_and_tables_describe_the_same_graph(module: ModuleOp):
    graph, counted = graph_of(module, TARGET), counts(module)
    assert (graph.vertex_count, graph.edge_count) == (counted.vertices, counted.edges)
    assert graph.loop_edge_count == counted.loop_edges
    into = Counter()
    vertices = Counter()
    for each in graph.sets:
        vertices[each.compute_set] += each.count
    for link in graph.links:
        into[graph.sets[link.consumer].compute_set] += link.count
    assert [s.vertices for s in counted.sets] == [vertices[k] for k in range(len(counted.sets))]
    assert [s.edges for s in counted.sets] == [into[k] for k in range(len(counted.sets))]
    assert list(graph.compute_sets) == [s.name for s in counted.sets]


# By hand

SPACE = "<[i = 24] (i) of [24] -> (i) of [24]>"
VARIABLES = "\n".join(
    f"tile.variable @{v} : tensor<24xf32> layout <[24 by 4] (d0) of [24]>" for v in "abcdef"
)


def relu(read: str, written: str, workers: str = "") -> str:
    return (
        f"tile.compute_set @{written}.set {{ tile.vertices space {SPACE} body <relu> "
        f"plan <split [4]{workers}> reads [@{read}] writes @{written} }}"
    )


def graph(body: str) -> Graph:
    text = f"""{VARIABLES}
    tile.variable @p : tensor<1xi1> layout <[] (0) of [1]>
    func.func @main() {{
      tile.input "x" -> @a : tensor<24xf32>
      {body}
      func.return
    }}"""
    return graph_of(parse_module(text, context()), TARGET)


def test_steps_wider_than_the_window_leave_holes():
    """Windows of two, six apart: what lies between them is read by nobody."""
    found = graph(
        f"""{relu("a", "b", " workers [6]")}
        tile.compute_set @c.set {{ tile.vertices
          space <[y = 4, k = 2 reduction] (6 * y + k) of [24] -> (y) of [4]>
          body <identity sum> plan <split [2, 1]> reads [@b] writes @c }}"""
    )
    edges = listed(found)
    assert sorted(edges) == [(n, 24 + n // 12, 0) for n in (0, 1, 6, 7, 12, 13, 18, 19)]
    assert set(edges.values()) == {4}


def variable(name: str, size: int) -> str:
    return f"tile.variable @{name} : tensor<{size}xf32> layout <[{size}] (d0) of [{size}]>"


def vertices(space: str, body: str, plan: str, reads: str, written: str) -> str:
    return (
        f"tile.compute_set @{written}.set {{ tile.vertices space <{space}> body <{body}> "
        f"plan <{plan}> reads [{reads}] writes @{written} }}"
    )


CONVOLUTION = "[y = 11, k = 4 reduction] (2 * y + k - 1 fill) of [24], (k) of [4] -> (y) of [11]"
DATA_GRADIENT = (
    "[i = 24, k = 4 reduction] (i - k + 1 exactdiv 2 fill) of [11], (k) of [4] -> (i) of [24]"
)
WEIGHT_GRADIENT = (
    "[k = 4, y = 11 reduction] (2 * y + k - 1 fill) of [24], (y) of [11] -> (k) of [4]"
)


@pytest.mark.parametrize("split", [1, 3])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_convolution_and_both_its_gradients(split: int, workers: int):
    """With padding, and windows that overlap; 24, 11 and 4 elements are cut raggedly."""
    plan = f"split [{split}, 1] workers [{workers}, 1]"
    one = f"split [{split}] workers [{workers}]"
    module = parse_module(
        "\n".join(variable(n, k) for n, k in (("x", 24), ("a", 24), ("w", 4), ("v", 4)))
        + "\n"
        + "\n".join(variable(n, k) for n, k in (("y", 11), ("dx", 24), ("dw", 4)))
        + f"""
    func.func @main() {{
      tile.input "x" -> @x : tensor<24xf32>
      tile.input "w" -> @w : tensor<4xf32>
      {vertices("[i = 24] (i) of [24] -> (i) of [24]", "relu", one, "@x", "a")}
      {vertices("[i = 4] (i) of [4] -> (i) of [4]", "relu", one, "@w", "v")}
      {vertices(CONVOLUTION, "mul sum", plan, "@a, @v", "y")}
      {vertices(DATA_GRADIENT, "mul sum", plan, "@y, @v", "dx")}
      {vertices(WEIGHT_GRADIENT, "mul sum", plan, "@a, @y", "dw")}
      func.return
    }}""",
        context(),
    )
    slow, found = ElementFlow(module).run(), graph_of(module, TARGET)
    assert listed(found) == {edge: 4 * elements for edge, elements in slow.edges.items()}
    assert (found.vertex_count, found.edge_count) == (slow.count, len(slow.edges))
    assert len(found.links) == 6


@pytest.mark.slow
@given(programs("tile", control_flow=False))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_graph_of_any_operator_equals_that_found_by_following_every_element(program: Program):
    slow, found = ElementFlow(program.module).run(), graph_of(program.module, program.target)
    assert found.vertex_count == slow.count
    assert set(listed(found, 1000)) == set(slow.edges)
    counted = counts(program.module)
    assert (counted.vertices, counted.edges) == (found.vertex_count, found.edge_count)


def test_a_diagonal_operand_reads_only_its_diagonal():
    found = graph(
        f"""{relu("a", "b", " workers [6]")}
        tile.compute_set @c.set {{ tile.vertices
          space <[i = 4] (i, i) of [4, 6] -> (i) of [4]>
          body <relu> plan <split [2]> reads [@b] writes @c }}"""
    )
    assert sorted(listed(found)) == [(0, 24, 0), (7, 24, 0), (14, 25, 0), (21, 25, 0)]


def test_blocks_may_begin_and_end_anywhere():
    body = relu("a", "b", " workers [6]") + relu("b", "c", " workers [4]")
    found = graph(body)
    (whole,) = found.edges()
    for most in (1, 2, 5, 23, 24, 100):
        pieces = list(found.edges(most))
        assert all(len(b.producer) <= most for b in pieces)
        for name in ("producer", "consumer", "bytes"):
            joined = np.concatenate([getattr(b, name) for b in pieces])
            assert joined.tolist() == getattr(whole, name).tolist()
    every = found.vertices()
    for first, last in ((0, 1), (5, 17), (23, 40), (39, 40), (40, 40)):
        for name, column in found.vertices(first, last).items():
            assert column.tolist() == every[name][first:last].tolist()


def test_edges_round_a_loop_are_separate():
    found = graph(
        f"""control.repeat 5 () : () -> () {{
        {relu("a", "b")} {relu("b", "c")} tile.copy [@c] -> @a control.yield }}"""
    )
    assert (found.edge_count, found.loop_edge_count) == (4, 4)
    assert sorted(listed(found)) == [(n, n + 4, 0) for n in range(4)]
    round_it = set(listed(found, loops=True)) - set(listed(found))
    assert round_it == {(n + 4, n, 0) for n in range(4)}


def test_two_paths_from_one_producer_are_one_edge():
    move = "#abele.space<[i = 24] ({}) of [24] -> (i) of [24]>"
    found = graph(
        f"""{relu("a", "b")}
      tile.copy [@b] -> @c moves [{move.format("i")}]
      tile.copy [@b] -> @d moves [{move.format("-i + 23")}]
      %p = tile.read @p : i1
      control.if %p : i1 {{ tile.copy [@c] -> @e control.yield }}
        else {{ tile.copy [@d] -> @e control.yield }}
      {relu("e", "f")}"""
    )
    edges = listed(found)
    assert sorted(edges) == sorted((a, 4 + b, 0) for b in range(4) for a in {b, 3 - b})
    assert set(edges.values()) == {24}
    assert found.links[0].bytes == sum(edges.values())


def test_unknown_ids_are_named():
    found = graph(relu("a", "b"))
    with pytest.raises(InputError, match=r"vertices \[3, 9\); need a range of \[0, 4\)"):
        found.vertices(3, 9)


def test_a_vertex_set_has_the_name_of_its_origin():
    (made,) = graph(relu("a", "b")).sets
    assert (made.name, made.codelet, made.first, made.count) == ("b.set", "relu", 0, 4)
