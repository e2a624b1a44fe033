from unittest.mock import patch

import pytest
from hypothesis import assume, example, given, settings

from abele.backends.graph import links
from abele.backends.graph.contents import ways_of
from abele.backends.graph.flow import Flow, flow_of
from abele.backends.graph.links import reaches
from abele.dialects.steps import Input
from abele.ir.errors import InputError
from abele.ir.geometry.pairs import Pairs
from abele.ir.text import parse_module

from ...copying_programs import copying_programs
from ...strategies import context

SPACE = "<[i = 24] (i) of [24] -> (i) of [24]>"
MOVE = "#abele.space<[i = 24] ({}) of [24] -> (i) of [24]>"
VARIABLES = "\n".join(
    f"tile.variable @{v} : tensor<24xf32> layout <[24 by 4] (d0) of [24]>" for v in "abcd"
)


def relu(read: str, written: str) -> str:
    plan = "plan <split [4]>"
    return f"tile.vertices space {SPACE} body <relu> {plan} reads [@{read}] writes @{written}"


ROUND = f"""{VARIABLES}
func.func @main() {{
  tile.input "x" -> @a : tensor<24xf32>
  tile.compute_set @first {{ {relu("a", "b")} }}
  tile.copy [@b] -> @c
  control.repeat 3 () : () -> () {{
    tile.compute_set @second {{ {relu("c", "d")} }}
    tile.copy [@b] -> @c moves [{MOVE.format("-i + 23")}]
    control.yield
  }}
  func.return
}}"""


def test_edges_round_a_loop_are_those_that_a_first_iteration_lacks():
    """The loop's first iteration reads @b as it is, later ones reversed."""
    found = list(reaches(flow_of(parse_module(ROUND, context()))))
    straight, loop = (r for r in found if not isinstance(r.producer, Input))
    assert (straight.loop, loop.loop) == (False, True)
    pairs = [
        sorted(zip(p.source.tolist(), p.destination.tolist(), strict=True))
        for p in (straight.pairs.listed(), loop.pairs.listed())
    ]
    assert pairs == [[(n, n) for n in range(4)], [(0, 3), (1, 2), (2, 1), (3, 0)]]


def test_a_source_is_one_whatever_its_layout():
    (source,) = (
        r for r in reaches(flow_of(parse_module(ROUND, context()))) if isinstance(r.producer, Input)
    )
    assert source.pairs.count == 4


def test_listing_edges_to_compare_them_needs_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("abele.backends.graph.memory.available_bytes", lambda: 100)
    with pytest.raises(InputError, match="24 elements that reach operands on many ways"):
        list(reaches(flow_of(parse_module(ROUND, context()))))


Found = dict[tuple[int, int, int, bool], set[tuple[int, int]]]
"""The pairs of vertices by producer, consumer, operand, and whether they exist only round loops."""


def moved(flow: Flow) -> Found:
    """The pairs that are found by moving the owners of elements."""
    with patch.multiple(links, MOST_PATHS=0):
        found = {
            (id(each.producer), id(each.consumer), each.operand, each.loop): pairs_of(each.pairs)
            for each in reaches(flow)
        }
    return {key: pairs for key, pairs in found.items() if pairs}


def followed(flow: Flow) -> Found:
    """The pairs that are found by following every path."""
    found: Found = {}
    for (op, operand), held in flow.reads.items():
        content = flow.contents.either(held)
        assume(content is None or content.extent.moves < 5_000)
        ways = sorted(ways_of(content) if content else [], key=lambda way: len(way.rounds) > 0)
        for way in ways:
            key = id(way.producer), id(op), operand
            pairs = links.followed(way.producer, op, operand, [(way.result, way.moves)])
            straight = found.setdefault((*key, False), set())
            if way.rounds:
                found.setdefault((*key, True), set()).update(pairs_of(pairs) - straight)
            else:
                straight |= pairs_of(pairs)
    return {key: pairs for key, pairs in found.items() if pairs}


def pairs_of(pairs: Pairs) -> set[tuple[int, int]]:
    listed = pairs.listed()
    return set(zip(listed.source.tolist(), listed.destination.tolist(), strict=True))


SHIFTED = "#abele.space<[i = 12] (i + 3) of [24] -> (i) of [24]>"
LATE = f"""{VARIABLES}
func.func @main() {{
  tile.compute_set @first {{ {relu("d", "b")} }}
  control.repeat 9 () : () -> () {{
    tile.copy [@b, @c] -> @a moves [{SHIFTED},
      #abele.space<[i = 12] (i) of [24] -> (i + 12) of [24]>]
    tile.copy [@a] -> @b
    tile.copy [@d] -> @c
    tile.compute_set @second {{ {relu("b", "d")} }}
    control.yield
  }}
  func.return
}}"""
"""What the second set makes reaches @b in the third iteration, when @b was shifted twice."""


@given(copying_programs(depth=1))
@example(LATE)
@settings(max_examples=20)
def test_moving_owners_finds_what_following_paths_finds(text: str):
    flow = flow_of(parse_module(text, context()))
    assert moved(flow) == followed(flow)


def test_many_paths_are_not_followed_one_by_one(monkeypatch: pytest.MonkeyPatch):
    followed: list[object] = []
    monkeypatch.setattr(links, "ways_of", lambda content: followed.append(content) or [])
    with patch.multiple(links, MOST_PATHS=0):
        assert len(list(reaches(flow_of(parse_module(ROUND, context()))))) == 3
    assert not followed
