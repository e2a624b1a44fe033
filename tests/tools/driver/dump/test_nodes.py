"""The framework's nodes that a location names."""

from abele.ir.provenance import at, fused, named
from abele.tools.driver.dump.nodes import nodes_of

KNOWN = {"block/a", "block/b/backward", "c", "d+e"}


def test_a_step_belongs_to_the_longest_known_node():
    assert nodes_of(named("block/a/partials"), KNOWN) == ("block/a",)
    assert nodes_of(named("block/b/backward/gather"), KNOWN) == ("block/b/backward",)
    assert nodes_of(named("unknown/a"), KNOWN) == ()


def test_a_step_of_several_nodes_names_all_of_them():
    step = at(fused([named("block/a"), named("block/b/backward"), named("c")]), "in0")
    assert nodes_of(step, KNOWN) == ("block/a", "block/b/backward", "c")


def test_a_node_may_have_a_plus_in_its_name():
    assert nodes_of(named("d+e/partials"), KNOWN) == ("d+e",)
