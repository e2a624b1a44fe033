"""Programs are decided as far as the pass that is tested on them needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from abele.dialects import tile
from abele.dialects.home import ADDRESS
from abele.dialects.levels import TILE, TILE_DECISIONS
from abele.dialects.steps import Superstep
from abele.ir.errors import InputError
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.allocate import Allocate
from abele.passes.analysis.packing import pack
from abele.passes.convert_tile_to_exchange import ConvertTileToExchange
from abele.passes.schedule_supersteps import SUPERSTEP
from abele.tools.testing import Program, check_pass
from abele.tools.testing.generators import decisions
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.levels import at_level, level_before
from abele.tools.testing.generators.sketch import random_sketch


def program(number: int, level: str) -> Program:
    while True:
        made = at_level(build(random_sketch(Random(f"{number}")), default_operators()), level)
        if made is not None:
            return made
        number += 1000


def decided(module: ModuleOp) -> tuple[bool, float, bool]:
    """Whether supersteps are numbered, what share of variables has an address, what is grouped."""
    variables = [op for op in module.walk() if isinstance(op, tile.VariableOp)]
    placed = sum(ADDRESS in op.attributes for op in variables) / len(variables)
    numbered = any(SUPERSTEP in op.attributes for op in module.walk())
    return numbered, placed, any(isinstance(op, Superstep) for op in module.walk())


@pytest.mark.parametrize("number", range(3))
def test_a_stage_of_tile_is_decided_so_far_and_no_further(number: int):
    plain, numbered, placed, addressed, grouped = (
        decided(program(number, stage).module) for stage in TILE_DECISIONS
    )
    assert plain == (False, 0.0, False)
    assert numbered == (True, 0.0, False)
    assert placed[0]
    assert placed[1] < 1.0
    assert addressed == (True, 1.0, False)
    assert grouped == (False, 1.0, True)


def test_a_program_is_packed_once_however_many_addresses_are_given(monkeypatch):
    packed: list[int] = []

    def counted(variables: Sequence[tile.VariableOp], *rest: Any):
        packed.append(len(variables))
        return pack(variables, *rest)

    monkeypatch.setattr(decisions, "pack", counted)
    made = decided(program(1, "placed").module)
    assert made[1] > 0
    assert len(packed) == 1
    assert packed[0] > 1


def test_some_variables_have_an_address_before_the_others():
    some = [decided(program(number, "placed").module)[1] for number in range(6)]
    assert any(0.0 < share < 1.0 for share in some)


@pytest.mark.parametrize("tested", [Allocate(), ConvertTileToExchange()])
def test_a_pass_takes_all_the_programs_that_it_is_tested_on(
    tested: Allocate | ConvertTileToExchange,
):
    report = check_pass(tested, level_before(type(tested)), examples=6, seed=4, results=False)
    assert (report.examples, report.refused) == (6, 0)
    # A program may have addresses already.
    assert report.changed > 3


def test_a_pass_is_tested_on_programs_as_it_declares():
    @dataclass(frozen=True)
    class Mine(ModulePass):
        name = "mine"

        def apply(self, ctx: Context, op: ModuleOp) -> None: ...

    class OnTile(Mine):
        takes = TILE

    class OnPlaced(OnTile):
        decided = "placed"

    assert [level_before(each) for each in (Mine, OnTile, OnPlaced)] == ["nn", "tile", "placed"]
    seen: list[tuple[bool, float, bool]] = []

    @dataclass(frozen=True)
    class Look(OnPlaced):
        def apply(self, ctx: Context, op: ModuleOp) -> None:
            seen.append(decided(op))

    check_pass(Look(), examples=5, seed=1, expect_changes=False)
    assert all(numbered and not grouped for numbered, _, grouped in seen)
    assert any(0 < share < 1 for _, share, _ in seen)


def test_an_unknown_level_is_refused_with_the_known_ones():
    from abele.tools.testing import programs

    with pytest.raises(ValueError, match="level 'cloud'; need one of stablehlo, nn, partition"):
        programs("cloud")
    with pytest.raises(InputError, match="no pass 'cloud'"):
        check_pass("cloud")
