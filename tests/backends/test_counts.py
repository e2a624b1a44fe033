"""Counts against a brute force that follows every element of every tensor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from abele.backends.counts import Counts, counts
from abele.ir.errors import InputError
from abele.ir.text import parse_module

from ..element_flow import ElementFlow
from ..strategies import context
from ..tile_graphs import tile_programs


@given(tile_programs())
@settings(max_examples=30)
def test_counts_equal_those_found_by_following_every_element(module: ModuleOp):
    slow, fast = ElementFlow(module).run(), counts(module)
    assert fast.vertices == slow.count
    assert fast.edges == len(slow.edges)
    assert fast.source_edges == len(slow.source_edges)
    assert fast.loop_edges == 0
    assert fast.edges == sum(s.edges for s in fast.sets)


# By hand

SPACE = "<[i = 24] (i) of [24] -> (i) of [24]>"
VARIABLE = "tile.variable @{} : tensor<24xf32> layout <[24 by 4] (d0) of [24]>"


SHIFT = "#abele.space<[i = 24] (i - 6 fill) of [24] -> (i) of [24]>"


def relu(read: str, written: str, workers: str = "", split: int = 4) -> str:
    return (
        f"tile.compute_set @{written}.set {{ tile.vertices space {SPACE} body <relu> "
        f"plan <split [{split}]{workers}> reads [@{read}] writes @{written} }}"
    )


def program(body: str, variables: str = "abcdef", functions: str = "") -> ModuleOp:
    made = context()
    zeros = made.blobs.add(np.zeros(24, np.float32)).digest
    text = "\n".join(VARIABLE.format(v) for v in variables)
    text += f"""
    {VARIABLE.format("w")} state = blob <"{zeros}">
    tile.variable @p : tensor<1xi1> layout <[] (0) of [1]>
    {functions}
    func.func @main() {{
      {body}
      func.return
    }}"""
    return parse_module(text, made)


def edges(body: str, functions: str = "") -> Counts:
    return counts(program(body, functions=functions))


def test_a_chain_on_one_layout_has_one_edge_per_vertex():
    found = edges(f'tile.input "x" -> @a : tensor<24xf32> {relu("a", "b")} {relu("b", "c")}')
    assert (found.vertices, found.edges, found.source_edges) == (8, 4, 4)
    assert (found.host_sources, found.state_sources) == (1, 0)
    assert [s.name for s in found.sets] == ["b.set", "c.set"]


def test_workers_without_elements_are_no_vertices():
    found = edges(f"{relu('w', 'b', ' workers [6]')} {relu('b', 'c', ' workers [4]')}")
    # Cells of 6 elements: 6 parts of one, then parts of 2, 2, 1, 1.
    assert [s.vertices for s in found.sets] == [24, 16]
    assert found.edges == 24
    assert (found.state_sources, found.source_edges) == (1, 24)


def test_copies_are_followed_and_counted_separately():
    body = f"""{relu("w", "a")}
      tile.copy [@a] -> @b moves [{SHIFT}]
      tile.copy [@b] -> @c
      {relu("c", "d")}"""
    found = edges(body)
    assert (found.vertices, found.edges, found.copies) == (8, 3, 2)
    assert found.relayout_elements == 18 + 24


def test_paths_from_one_producer_to_one_operand_are_merged():
    move = "#abele.space<[i = 24] ({}) of [24] -> (i) of [24]>"
    body = f"""{relu("w", "a")}
      tile.copy [@a] -> @b moves [{move.format("i")}]
      tile.copy [@a] -> @c moves [{move.format("-i + 23")}]
      %p = tile.read @p : i1
      control.if %p : i1 {{ tile.copy [@b] -> @d control.yield }}
        else {{ tile.copy [@c] -> @d control.yield }}
      {relu("d", "e")}"""
    assert edges(body).edges == 8


def test_edges_round_a_loop_are_left_out():
    body = f"""tile.copy [@w] -> @a
      control.repeat 5 () : () -> () {{
        {relu("a", "b")} {relu("b", "c")} tile.copy [@c] -> @a control.yield }}
      {relu("a", "d")}"""
    found = edges(body)
    assert (found.vertices, found.edges, found.loop_edges) == (12, 8, 4)
    once = edges(body.replace("repeat 5", "repeat 1"))
    assert (once.vertices, once.edges, once.loop_edges) == (12, 8, 0)


def test_a_while_may_be_left_before_its_body():
    body = f"""{relu("w", "a")}
      control.while () : () -> () {{ %p = tile.read @p : i1 control.condition %p : i1 }}
        do {{ {relu("a", "b")} tile.copy [@b] -> @a control.yield }}
      {relu("a", "c")}"""
    found = edges(body)
    assert (found.edges, found.loop_edges) == (4 + 4 + 4, 4)


def test_a_called_function_is_counted_once():
    functions = f"func.func @f() {{ {relu('a', 'b')} func.return }}"
    body = f"""{relu("w", "a")} func.call @f() : () -> ()
      tile.copy [@b] -> @a func.call @f() : () -> () {relu("b", "c")}"""
    found = edges(body, functions)
    assert [(s.name, s.vertices) for s in found.sets] == [("a.set", 4), ("b.set", 4), ("c.set", 4)]
    # @f reads what @main made and, the second time, what it made itself.
    assert found.edges == 4 + 4 + 4


def test_a_missing_variable_is_named():
    with pytest.raises(InputError, match="no variable @z"):
        edges(relu("z", "a"))


def test_functions_are_needed():
    with pytest.raises(InputError, match="no function @main"):
        counts(ModuleOp([func.FuncOp("other", ([], []))]))
