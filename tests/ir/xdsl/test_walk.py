from hypothesis import given, settings

from abele.ir.xdsl.walk import operations
from abele.tools.testing.generators.program import Program
from abele.tools.testing.generators.strategies import programs


@settings(max_examples=30, deadline=None)
@given(programs("nn"))
def test_operations_are_those_of_a_walk(program: Program):
    assert operations(program.module) == list(program.module.walk())
