"""Properties of generated programs."""

from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pytest
from lengths import lengths
from xdsl.dialects.builtin import IntegerType, Signedness, f16, f32

from abele.dialects import control, nn
from abele.dialects.levels import NN
from abele.ir.verify import verify
from abele.tools.testing.generators.build import RARE, _holds, build, default_operators
from abele.tools.testing.generators.levels import at_level
from abele.tools.testing.generators.program import Program
from abele.tools.testing.generators.sketch import (
    Sketch,
    Step,
    random_sketch,
)
from abele.tools.testing.generators.values import values_of
from abele.tools.testing.oracle.oracles import bounded_run
from abele.tools.testing.search.judge import disagreement

BYTE = IntegerType(8, Signedness.UNSIGNED)


def some(count: int) -> list[Sketch]:
    return [random_sketch(Random(f"tests {i}")) for i in range(count)]


@cache
def built(sketch: Sketch) -> Program:
    """The program of a sketch, the same one each time: no test changes one."""
    return build(sketch, default_operators())


expected = cache(lambda program: bounded_run(program))
"""What a program computes, for all levels to which a test lowers it."""


def test_a_sketch_is_always_the_same_program():
    for sketch in some(20):
        first, second = built(sketch), build(sketch, default_operators())
        assert first.text == second.text
        for name, array in first.inputs.items():
            assert array.tobytes() == second.inputs[name].tobytes()


def test_programs_verify_and_share_values():
    shared = 0
    for sketch in some(80):
        program = built(sketch)
        verify(program.module, NN)
        results = [v for op in program.module.walk() for v in op.results]
        shared += any(sum(1 for _ in v.uses) > 2 for v in results)
    assert shared > 10


def test_programs_have_loops_of_runs_and_read_states_through_reshapes():
    ops = [op for sketch in some(120) for op in built(sketch).module.walk()]
    loops = [op for op in ops if isinstance(op, control.RepeatOp)]
    assert any(op.runs is not None for op in loops)
    views = [op for op in ops if isinstance(op, nn.ReshapeOp)]
    assert any(isinstance(op.operand.owner, nn.LoadOp) for op in views)


def test_bodies_yield_values_from_outside():
    loops = [
        op
        for sketch in some(200)
        for op in built(sketch).module.walk()
        if isinstance(op, control.RepeatOp)
    ]
    outside = [
        value
        for op in loops
        if op.runs is None and (last := op.body.block.last_op) is not None
        for value in last.operands
        if op.body.block not in (value.owner, getattr(value.owner, "parent", None))
    ]
    assert outside


@pytest.mark.slow
@pytest.mark.parametrize("examples", lengths(300, 800))
def test_every_operator_is_generated_often(examples: int):
    counts: Counter[str] = Counter()
    flow: Counter[str] = Counter()
    for sketch in some(examples):
        program = built(sketch)
        counts.update({op.name for op in program.module.walk()})
        flow.update({step.within for step in sketch.steps})
    rare = {nn.PackedMatMulOp.name}
    for cls in (*nn.NN.operations, control.RepeatOp, control.IfOp, control.WhileOp):
        assert counts[cls.name] >= examples / 300 or cls.name in rare, cls.name


def test_packed_products_are_generated_where_bytes_are_asked_for():
    """Their programs compute the same at all levels."""
    operators = default_operators(("nn.packed_matmul", "nn.relu", "nn.add"))
    count = 0
    for sketch in some(4):
        program = build(sketch, operators, (f32, f16, BYTE))
        count += sum(isinstance(op, nn.PackedMatMulOp) for op in program.module.walk())
        outcome = bounded_run(program)
        for level in ("partition", "exchange"):
            lower = at_level(program, level)
            assert lower is None or disagreement(outcome, lower) is None
    assert count >= 4


@pytest.mark.parametrize("level", ["partition", "tile", "exchange"])
def test_programs_of_lower_levels_compute_the_same_as_their_origins(level: str):
    """They have the same faults too, except for those of operations that no result needs."""
    compared = 0
    for sketch in some(12):
        program = built(sketch)
        lower = at_level(program, level)
        if lower is None:
            continue
        assert lower.level.name == level
        verify(lower.module, lower.level)
        outcome = expected(program)
        assert disagreement(outcome, lower) is None
        compared += outcome.decided and outcome.fault is None and not outcome.dead_fault
    assert compared > 6


def test_programs_are_made_of_the_types_that_are_asked_for():
    for sketch in some(30):
        program = build(sketch, default_operators(("nn.add", "nn.neg")), (f32,))
        names = {op.name for op in program.module.walk() if op.name.startswith("nn.")}
        assert names <= {"nn.add", "nn.neg", "nn.load", "nn.store", "nn.state", "nn.constant"} | {
            "nn.cast",
            "nn.less",
            "nn.shift",
        }
        assert "f16>" not in program.text


def test_no_operator_of_that_name_is_refused():
    with pytest.raises(ValueError, match="none of them is known"):
        default_operators(("nn.nothing",))


def test_special_values_are_in_a_mode_of_their_own():
    special = values_of([400], np.dtype(np.float16), 0, "special")
    assert np.isnan(special).any()
    assert np.isinf(special).any()
    assert (np.abs(special[np.isfinite(special)]) > 60000).any()
    whole = values_of([400], np.dtype(np.float32), 0, "integers")
    assert (whole == np.rint(whole)).all()


def test_control_flow_wraps_operations():
    sketch = Sketch((Step(0), Step(1, within="repeat"), Step(2, within="if")), (2, 3))
    kinds = {type(op) for op in build(sketch, default_operators()).module.walk()}
    assert {control.RepeatOp, control.IfOp} <= kinds


def test_some_constants_are_one_repeated_number():
    constants = [
        op.value.array
        for sketch in some(120)
        for op in built(sketch).module.walk()
        if isinstance(op, nn.ConstantOp) and op.value.array.size > 1
    ]
    uniform = [np.all(array == array.flat[0]) for array in constants]
    assert 0.2 < np.mean(uniform) < 0.7


@pytest.mark.parametrize(
    ("dtype", "number", "holds"),
    [
        ("uint8", 255, True),
        ("uint8", 4096, False),
        ("uint8", -1, False),
        ("int8", -128, True),
        ("float16", 4096, True),
        ("float16", 1e6, False),
        ("float32", 0.1, True),
        ("bool", 1, False),
    ],
)
def test_a_literal_is_a_constant_of_a_type_that_holds_it(dtype: str, number: float, holds: bool):
    assert _holds(np.dtype(dtype), number) == holds


def test_programs_have_every_element_type_that_a_tile_can_hold():
    """Half of the types are only stored: of these operators, they are cast, reshaped and moved."""
    known = default_operators(("nn.add", "nn.cast", "nn.reshape", "nn.concat"))
    for at, element in enumerate(RARE):
        rare = 4 + (at - 4) % len(RARE)
        programs = (
            build(replace(random_sketch(Random(f"{rare} {seed}")), element=rare), known)
            for seed in range(9)
        )
        assert any(f"{element}>" in program.text for program in programs), element
