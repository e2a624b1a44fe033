import pytest

from abele.backends.graph.flow import flow_of
from abele.backends.graph.links import reaches
from abele.dialects.tile import InputOp
from abele.ir.errors import InputError
from abele.ir.text import parse_module

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
    """The loop's first turn reads @b as it is, later ones reversed."""
    found = list(reaches(flow_of(parse_module(ROUND, context()))))
    straight, loop = (r for r in found if not isinstance(r.producer, InputOp))
    assert (straight.loop, loop.loop) == (False, True)
    pairs = [
        sorted(zip(p.source.tolist(), p.destination.tolist(), strict=True))
        for p in (straight.pairs().listed(), loop.pairs().listed())
    ]
    assert pairs == [[(n, n) for n in range(4)], [(0, 3), (1, 2), (2, 1), (3, 0)]]


def test_a_source_is_one_whatever_its_layout():
    (source,) = (
        r
        for r in reaches(flow_of(parse_module(ROUND, context())))
        if isinstance(r.producer, InputOp)
    )
    assert source.pairs().count == 4


def test_listing_edges_to_compare_them_needs_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("abele.backends.graph.memory.available_bytes", lambda: 100)
    *_, loop = reaches(flow_of(parse_module(ROUND, context())))
    with pytest.raises(InputError, match="8 edges that reach one operand on several ways"):
        loop.pairs()
