"""Reports on memory against the bytes that a program was given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp

from abele.backends.memory import MemoryReport, memory_report
from abele.backends.target import resolve_target
from abele.dialects.exchange import VariableOp
from abele.ir.errors import DoesNotFit

from ..strategies import Program, planned_programs
from .exchange_text import exchange_module, lowered, relu, step, variable

TINY = resolve_target("tiny:5")
RESERVED = 16_384


def report(body: str = "", variables: str = "", target: str = "tiny:5") -> MemoryReport:
    return memory_report(exchange_module(body, variables), resolve_target(target))


def test_a_tile_is_full_up_to_its_highest_variable():
    found = report(variables=variable("z", 4096, "<[24 by 2] (d0) of [24] at 2>"))
    assert found.max_tile_bytes == RESERVED + 4096 + 48
    assert found.fullest_tile == 2
    assert found.tiles_used == 4
    assert found.tile_bytes.tolist() == [
        RESERVED + 408,
        RESERVED + 144,
        RESERVED + 4144,
        RESERVED + 4144,
        0,
    ]
    largest = found.variables[0]
    assert (largest.name, largest.bytes, largest.origin) == ("z", 48, "z/value")
    assert (largest.address, largest.dtype, largest.resident) == (4096, "float32", False)
    assert [v.resident for v in found.variables if v.name == "w"] == [True]


def test_state_is_always_live_and_others_from_write_to_read():
    body = step("one", relu("w", "a")) + step("two", relu("a", "b")) + step("three", relu("b", "c"))
    found = report(body)
    assert found.always_live_bytes.tolist() == [24, 24, 24, 24, 0]
    # @a and @b meet in the second compute phase, and never a third.
    assert found.transient_bytes.tolist() == [48, 48, 48, 48, 0]
    assert [(s.name, s.bytes) for s in found.steps] == [("one", 48), ("two", 72), ("three", 72)]


def test_a_result_that_overwrites_its_operand_is_counted_once():
    on_a = variable("on_a", 24)
    body = (
        step("one", relu("w", "a"))
        + step("two", relu("a", "on_a"))
        + step("three", relu("on_a", "b"))
    )
    assert [s.bytes for s in report(body, on_a).steps] == [48, 48, 72]


def test_a_variable_that_the_worst_superstep_does_not_touch_is_waiting():
    body = (
        step("one", relu("w", "a"))
        + step("two", relu("w", "b"))
        + step("three", relu("b", "c"))
        + step("four", relu("a", "c"))
    )
    found = report(body)
    assert found.worst_step == "three"
    assert {v.name for v in found.variables if v.waits} == {"a"}
    assert {v.name for v in found.variables if v.live} == {"a", "b", "c", "w"}


def test_nothing_waits_in_an_empty_program():
    assert not any(v.waits for v in report().variables)


def test_a_second_write_ends_the_life_of_the_old_value():
    body = step("one", relu("w", "a")) + step("two", relu("w", "b")) + step("three", relu("w", "a"))
    assert [s.bytes for s in report(body).steps] == [48, 48, 48]


def test_a_carried_variable_lives_through_the_loop():
    inner = step("two", relu("a", "b")) + step("three", relu("b", "a"))
    body = (
        step("one", relu("w", "a")) + f"control.repeat 3 () : () -> () {{ {inner} control.yield }}"
    )
    # In the loop @a lives on while @b is written and read.
    assert [s.bytes for s in report(body).steps] == [48, 72, 72]


def test_a_conditional_write_does_not_end_a_life():
    body = f"""{step("one", relu("w", "a"))}
      %p = exchange.read @p : i1
      control.if %p : i1 {{ {step("maybe", relu("w", "a"))} control.yield }}
        else {{ {step("else", relu("w", "b"))} control.yield }}
      {step("last", relu("a", "c"))}"""
    found = report(body)
    assert [(s.name, s.bytes) for s in found.steps] == [
        ("one", 48 + 8),
        ("maybe", 48),
        ("else", 72),
        ("last", 72),
    ]


def test_a_program_that_does_not_fit_says_which_tile_which_variables_and_how_many_bytes():
    found = report(variables=variable("big", 262_144 - RESERVED, "<[24 by 2] (d0) of [24] at 1>"))
    problem = found.problem()
    assert isinstance(problem, DoesNotFit)
    assert (problem.tile, problem.needed, problem.available) == (1, 262_144 + 48, 262_144)
    assert found.over_bytes == 48
    assert found.shortage == "tile 1 needs 48 bytes more than it has"
    text = str(problem)
    for part in ("tile 1", "big 48 B", "@big 48 B", "w 24 B", "48 bytes too large", "--advise"):
        assert part in text
    with pytest.raises(DoesNotFit):
        raise problem


def test_a_program_that_fits_has_no_problem():
    assert report().problem() is None
    assert report().over_bytes == 0
    assert report().shortage == ""


def test_too_few_tiles_are_a_problem_of_tiles():
    found = report(target="tiny:3")
    assert found.shortage == "it needs 4 tiles, and the target has 3"
    problem = found.problem()
    assert problem is not None
    assert (problem.needed, problem.available, problem.units) == (4, 3, "tiles")


def test_states_that_remote_memory_does_not_hold_are_a_problem():
    remote = "exchange.remote @r : tensor<3xf32> = blob <[1, 2, 3] : tensor<3xf32>>"
    fits = report(variables=remote, target="tiny:5,remote.gbytes=12e-9")
    assert (fits.remote_bytes, fits.problem(), fits.shortage) == (12, None, "")
    found = report(variables=remote, target="tiny:5,remote.gbytes=11e-9")
    assert found.shortage == "it needs 12 bytes of remote memory, and the target has 11"
    assert str(found.problem()).startswith(
        "the program needs 12 bytes of remote memory, 11 available; keep fewer"
    )


@given(planned_programs())
@settings(max_examples=30)
def test_live_bytes_lie_below_the_highest_address(program: Program):
    module: ModuleOp = lowered(program)
    found = memory_report(module, resolve_target(program.target))
    used = found.tile_bytes > 0
    live = found.always_live_bytes + found.transient_bytes
    assert (live <= np.maximum(found.tile_bytes - found.target.memory.reserved_bytes, 0)).all()
    assert used.any()
    variables = [v for v in module.walk() if isinstance(v, VariableOp)]
    highest = max(v.start + v.bytes_per_tile for v in variables)
    assert found.max_tile_bytes == highest + found.target.memory.reserved_bytes
    assert found.tiles_used == len(
        {t for v in variables for t in np.arange(v.placed.cells) + v.placed.first_tile}
    )
