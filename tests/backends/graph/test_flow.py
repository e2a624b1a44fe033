import pytest

from abele.backends.graph import graph_of
from abele.backends.graph.contents import Made, ways_of
from abele.backends.graph.flow import flow_of, set_of
from abele.backends.target import resolve_target
from abele.dialects.steps import Input
from abele.ir.errors import InputError
from abele.ir.text import parse_module

from ...strategies import context

SPACE = "<[i = 24] (i) of [24] -> (i) of [24]>"
VERTICES = f"tile.vertices space {SPACE} body <relu> plan <split [4]>"
MODULE = f"""
tile.variable @a : tensor<24xf32> layout <[24 by 4] (d0) of [24]>
tile.variable @b : tensor<24xf32> layout <[24 by 4] (d0) of [24]>
tile.variable @c : tensor<24xf32> layout <[24 by 4] (d0) of [24]>
func.func @main() {{
  tile.superstep @host {{ tile.sync "external" tile.input "x" -> @a : tensor<24xf32> }}
  tile.superstep @first {{ tile.sync "internal" {VERTICES} reads [@a] writes @b }}
  tile.superstep @second {{
    tile.sync "internal"
    tile.copy [@b] -> @c
    {VERTICES} reads [@c] writes @a
  }}
  func.return
}}"""


def test_grouped_supersteps_are_followed():
    module = parse_module(MODULE, context())
    flow = flow_of(module)
    first, second = flow.vertices
    ((read, operand),) = ((op, i) for op, i in flow.reads if op is second)
    (held,) = flow.reads[read, operand]
    (way,) = ways_of(held)
    assert (way.producer, way.moves, way.rounds) == (first, (), frozenset())
    (held,) = flow.reads[first, 0]
    assert isinstance(held, Made)
    assert isinstance(held.producer, Input)
    assert [set_of(op).sym_name.data for op in flow.vertices] == ["first", "second"]
    graph = graph_of(module, resolve_target("tiny"))
    assert (graph.vertex_count, graph.edge_count) == (8, 4)
    assert graph.compute_sets == ("first", "second")


def test_a_missing_variable_is_named():
    with pytest.raises(InputError, match="no variable @z"):
        flow_of(parse_module(MODULE.replace("reads [@c]", "reads [@z]"), context()))
