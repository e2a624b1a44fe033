import numpy as np
import pytest

from abele.backends.graph.flow import Flow, flow_of
from abele.backends.graph.links import reaches
from abele.backends.graph.owners import NOBODY, Owners
from abele.ir.errors import InputError
from abele.ir.text import parse_module

from ...strategies import context

MOVE = "#abele.space<[i = {}] ({}) of [24] -> ({}) of [24]>"
SPACE = "<[i = 24] (i) of [24] -> (i) of [24]>"
VARIABLES = "\n".join(
    f"tile.variable @{v} : tensor<24xf32> layout <[24 by 4] (d0) of [24]>" for v in "abcd"
)


def relu(read: str, written: str) -> str:
    plan = "plan <split [4]>"
    return f"tile.vertices space {SPACE} body <relu> {plan} reads [@{read}] writes @{written}\n"


def flow(body: str) -> Flow:
    text = f"""{VARIABLES}
    tile.variable @p : tensor<1xi1> layout <[] (0) of [1]>
    func.func @main() {{ tile.input "x" -> @a : tensor<24xf32> {body} func.return }}"""
    return flow_of(parse_module(text, context()))


def owners(body: str) -> np.ndarray:
    """The owners of what the last vertex set reads."""
    followed = flow(body)
    last = list(followed.vertices)[-1]
    ((_, found),) = Owners(followed.variables).of(followed.reads[last, 0])
    return found


def swapped(read: str, written: str) -> str:
    """A copy of the halves of a variable, the second one first."""
    moves = f"{MOVE.format(12, 'i + 12', 'i')}, {MOVE.format(12, 'i', 'i + 12')}"
    return f"tile.copy [@{read}, @{read}] -> @{written} moves [{moves}]\n"


def test_every_element_has_the_vertex_that_made_it():
    found = owners(relu("a", "b") + relu("b", "c"))
    assert found.tolist() == [[n // 6 for n in range(24)]]


def test_copies_move_owners():
    found = owners(relu("a", "b") + swapped("b", "c") + relu("c", "d"))
    assert found.tolist() == [[(n + 12) % 24 // 6 for n in range(24)]]


def test_padding_has_no_owner():
    body = f"tile.copy [@b] -> @c moves [{MOVE.format(24, 'i - 6 fill', 'i')}]"
    found = owners(relu("a", "b") + body + relu("c", "d"))
    assert found.tolist() == [[NOBODY] * 6 + [n // 6 for n in range(18)]]


def test_branches_give_an_element_several_owners_each_once():
    body = f"""{relu("a", "b")} tile.copy [@b] -> @c
      %p = tile.read @p : i1
      control.if %p : i1 {{ {swapped("b", "c")} control.yield }} else {{ control.yield }}
      {relu("c", "d")}"""
    found = owners(body)
    assert np.sort(found, axis=0).tolist() == [
        [0] * 6 + [1] * 6 + [0] * 6 + [1] * 6,
        [2] * 6 + [3] * 6 + [2] * 6 + [3] * 6,
    ]


def test_a_chain_of_swapped_halves_is_followed_link_by_link():
    """There are 2^1001 paths from the first vertex set to the last one."""
    links = "".join(swapped(*pair) for pair in [("b", "c"), ("c", "b")] * 500)
    followed = flow(relu("a", "b") + links + swapped("b", "c") + relu("c", "d"))
    (_, reach) = reaches(followed)
    factor = reach.pairs.listed()
    assert factor.source.tolist() == [0, 1, 2, 3]
    assert factor.destination.tolist() == [2, 3, 0, 1]
    assert factor.shared.tolist() == [6] * 4


def test_owners_need_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("abele.backends.graph.memory.available_bytes", lambda: 100)
    with pytest.raises(InputError, match="24 elements that reach operands on many ways"):
        owners(relu("a", "b") + relu("b", "c"))
