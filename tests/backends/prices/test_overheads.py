"""What a program takes beside its variables, against small programs counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from abele.backends.graph import graph_of
from abele.backends.prices.overheads import Overheads, overheads
from abele.backends.prices.price import variables_of
from abele.backends.target import Target, resolve_target
from abele.dialects.steps import Vertices
from abele.ir.upstream import ModuleOp

from ...strategies import Program, planned_programs
from ..exchange_text import SHIFT, exchange_module, lowered, relu, step, variable

TINY = resolve_target("tiny:5")
CODE = TINY.code


def found(module: ModuleOp, target: Target = TINY) -> Overheads:
    return overheads(module, variables_of(module), target.tiles, target)


def test_a_codelet_is_there_once_and_a_superstep_each_time():
    once = found(exchange_module(step("one", relu("w", "a"))))
    twice = found(exchange_module(step("one", relu("w", "a")) + step("two", relu("a", "b"))))
    one = CODE.instruction_bytes * (CODE.codelet_instructions + CODE.step_instructions)
    assert once.code.tolist() == [one] * 4 + [0]
    more = CODE.instruction_bytes * CODE.step_instructions
    assert (twice.code - once.code).tolist() == [more] * 4 + [0]


def test_another_function_is_another_codelet():
    other = relu("a", "b").replace("relu", "exp")
    same = found(exchange_module(step("one", relu("w", "a")) + step("two", relu("a", "b"))))
    two = found(exchange_module(step("one", relu("w", "a")) + step("two", other)))
    assert (two.code - same.code)[0] == CODE.instruction_bytes * CODE.codelet_instructions


def test_every_vertex_has_a_state():
    own = 2 * CODE.pointer_bytes + CODE.count_bytes
    alone = found(exchange_module(step("one", relu("w", "a"))))
    assert alone.vertex_state.tolist() == [own] * 4 + [0]
    shared = found(exchange_module(step("one", relu("w", "a", "split [4] workers [4]"))))
    assert shared.vertex_state.tolist() == [4 * own] * 4 + [0]
    # Six elements a tile make no more than six vertices.
    many = found(exchange_module(step("one", relu("w", "a", "split [4] workers [8]"))))
    assert many.vertex_state.tolist() == [6 * own] * 4 + [0]


def test_messages_take_instructions_at_both_ends():
    move = f'exchange.move [@w] -> @a moves [{SHIFT}] loc("a/move")'
    module = exchange_module(step("one", move))
    ways = found(module)
    send, receive = CODE.send_instructions, CODE.receive_instructions + CODE.place_instructions
    # Each tile sends its six elements on to the next, but the last; the first one hears nobody.
    expected = np.array([send, send + receive, send + receive, receive, 0]) * CODE.instruction_bytes
    assert ways.exchange_code.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("facts", "instructions"),
    [
        ("code.words_per_send=6", 2),
        # A send of more words goes on in a second kind of instruction, however many there are.
        ("code.words_per_send=5", 2 + 1),
        ("code.words_per_send=1", 2 + 1),
        # The longest message has so many words.
        ("code.words_per_send=1,code.words_per_message=3", 2 * (2 + 1)),
    ],
)
def test_a_long_send_takes_an_instruction_more(facts: str, instructions: int):
    move = f'exchange.move [@w] -> @a moves [{SHIFT}] loc("a/move")'
    ways = found(exchange_module(step("one", move)), resolve_target(f"tiny:5,{facts}"))
    assert ways.exchange_code[0] == instructions * CODE.instruction_bytes


def test_a_receive_that_goes_on_where_the_last_one_ended_moves_no_pointer():
    """Eight bytes a receive, and four more for the first place that is filled."""
    whole = variable("h", 200, "<[24] (d0) of [24] at 4>")
    ways = found(exchange_module(step("one", "exchange.move [@w] -> @h"), whole))
    assert ways.exchange_code[4] == 4 * 8 + 4
    assert ways.exchange_code[:4].tolist() == [8] * 4


def test_every_context_of_a_tile_that_is_used_has_a_stack():
    stacks = found(exchange_module(step("one", relu("w", "a")))).stacks
    assert stacks.tolist() == [(TINY.workers + 1) * CODE.stack_bytes] * 4 + [0]


@given(planned_programs())
@settings(max_examples=20)
def test_states_are_those_of_the_vertices_that_are_counted(program: Program):
    module, target = lowered(program), resolve_target(program.target)
    bare = target.code.pointer_bytes
    nothing = resolve_target(f"{target.spelling()},code.count_bytes=0")
    graph = graph_of(module, nothing)
    columns = graph.vertices()
    sets = [op for op in module.walk() if isinstance(op, Vertices)]
    pointers = np.array([len(op.sources) + 1 for op in sets])[columns["set"]]
    per_tile = np.bincount(columns["tile"], pointers, target.tiles).astype(int)
    more = overheads(module, variables_of(module), len(per_tile), nothing)
    assert more.vertex_state.tolist() == (bare * per_tile).tolist()
