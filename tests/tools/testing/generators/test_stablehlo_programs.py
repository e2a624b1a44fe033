"""Programs of stablehlo have operations of all families, chained, and verify."""

from random import Random

import pytest

from abele.backends.stablehlo import is_interpreted, run_stablehlo
from abele.dialects import nn
from abele.dialects.levels import STABLEHLO
from abele.dialects.stablehlo.elementwise import BinaryOp
from abele.passes.complex_pairs import table as on_pairs
from abele.passes.stablehlo_to_nn import table as lowering
from abele.tools.testing.generators.program import invalidity
from abele.tools.testing.generators.stablehlo_programs import elementwise
from abele.tools.testing.generators.stablehlo_programs.draft import CLASSES
from abele.tools.testing.generators.stablehlo_programs.program import random_program
from abele.tools.testing.generators.stablehlo_programs.table import FAMILIES, TABLE


def test_every_operation_that_abele_lowers_is_drawn_and_interpreted():
    ends = {"func.return", "stablehlo.return"}
    # Which numbers this draws is not defined: it has tests of its own.
    undefined = {"stablehlo.rng"}
    assert set(TABLE) == {*lowering.TABLE, *on_pairs.RULES} - ends - undefined
    assert [name for name in TABLE if not is_interpreted(name)] == []


def test_a_program_follows_from_its_seed_alone():
    texts = {random_program(Random(7)).text for _ in range(2)}
    assert len(texts) == 1


def test_programs_verify_and_chain_operations_of_all_families():
    names: set[str] = set()
    chained = 0
    for seed in range(150):
        program = random_program(Random(seed))
        assert invalidity(program.module) is None
        ops = [op for op in program.module.walk() if op.name in TABLE]
        names |= {op.name for op in ops}
        made = {result for op in ops for result in op.results}
        chained += any(each in made for op in ops for each in op.operands)
    assert all(names & family.keys() for family in FAMILIES.values())
    assert chained > 75


@pytest.mark.parametrize("family", FAMILIES)
def test_a_program_has_the_operations_that_are_asked_for(family: str):
    for name in FAMILIES[family]:
        found = {
            op.name
            for seed in range(3)
            for op in random_program(Random(seed), [name]).module.walk()
        }
        assert name in found


def test_most_functions_of_two_values_read_two_values():
    """Of a function such as a - a or a % a, hardly any mistake shows."""
    names = [name for name in elementwise.TAKES if issubclass(CLASSES[name], BinaryOp)]
    found = [
        op.operands[0] is op.operands[1]
        for seed in range(20)
        for op in random_program(Random(seed), names).module.walk()
        if op.name in names
    ]
    assert 0 < sum(found) < len(found) / 5


def test_values_without_elements_are_reshaped():
    shapes: set[tuple[int, ...]] = set()
    for seed in range(200):
        module = random_program(Random(seed), ["stablehlo.reshape"]).module
        assert invalidity(module) is None
        made = [op.results[0] for op in module.walk() if op.name == "stablehlo.reshape"]
        shapes |= {*map(nn.shape_of, made)}
    assert any(0 in shape and len(shape) > 1 for shape in shapes)


def test_programs_run_at_their_own_level():
    some = [random_program(Random(seed)) for seed in range(40)]
    own = [each for each in some if each.level == STABLEHLO]
    assert len(own) > 35
    assert all(run_stablehlo(each.module, each.inputs).outputs for each in own)
