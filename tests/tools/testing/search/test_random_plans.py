"""Pipelines are checked with random plans too, which show bugs that the planner's plans hide."""

from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from random import Random

import pytest
from lengths import lengths
from xdsl.dialects.builtin import f32
from xdsl.dialects.func import FuncOp

from abele.dialects import nn, partition
from abele.dialects.abele import BodyAttr, Plan, PlanAttr
from abele.dialects.levels import NN
from abele.ir.pass_manager import parse_pipeline
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.pipelines import DOWN
from abele.tools.testing import Miscompiled, Program, check_pipeline, programs
from abele.tools.testing.generators import build
from abele.tools.testing.generators.decisions import AT_RANDOM, PlanAtRandom
from abele.tools.testing.generators.sketch import Sketch, Step, random_sketch
from abele.tools.testing.search.replay import recorded_passes
from abele.tools.testing.search.run import OPTIONAL, PassList
from abele.tools.testing.search.save import replay_record


@dataclass(frozen=True)
class MisreadOrder(ModulePass):
    """Computes a sum for a difference whose cut axes do not follow one another as in its result."""

    name = "misread-order"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, partition.ComputeOp) and _is_turned(each.plan.data):
                body = each.body.data
                if body.function == "sub":
                    each.properties["body"] = BodyAttr(replace(body, function="add"))


def _is_turned(plan: Plan) -> bool:
    return list(plan.order) != sorted(plan.order)


OPERATORS = build.default_operators()
TESTED = ("nn,partition", MisreadOrder(), "tile,exchange")
EXAMPLES = 150
SOME = programs(operators=[nn.SubOp], control_flow=False)


def test_a_bug_under_plans_that_the_planner_seldom_makes_is_found(tmp_path: Path):
    def passes_before_the_bug(seed: int) -> tuple[str, ...]:
        with pytest.raises(Miscompiled) as caught:
            check_pipeline(TESTED, examples=EXAMPLES, seed=seed, programs=SOME, folder=tmp_path)
        assert caught.value.blamed == "misread-order"
        return caught.value.passes

    # The planner turns a plan in about one search of five.
    assert any("plan-at-random" in passes_before_the_bug(seed) for seed in range(1, 4))


def plans_in_steps(examples: int, at_random: bool) -> int:
    """How many of some programs have a plan in several steps."""
    found = 0
    passes = PassList(("nn,partition",), first=len(DOWN[NN]) + 1, at_random=at_random)
    for number in range(examples):
        sketch = random_sketch(Random(f"plans {number}"))
        program = build.build(sketch, build.default_operators())
        program.plans = number
        plans = [op.attributes.get("plan") for op in planned(program, passes).walk()]
        found += any(isinstance(p, PlanAttr) and prod(p.data.steps) > 1 for p in plans)
    return found


def planned(program: Program, passes: PassList) -> ModuleOp:
    for each in passes.for_program(program):
        each.apply(program.context, program.module)
    return program.module


@pytest.mark.parametrize("examples", lengths(15, 60))
def test_random_plans_have_steps_which_the_planner_takes_for_want_of_memory_alone(examples: int):
    assert plans_in_steps(examples, at_random=False) == 0
    assert plans_in_steps(examples, at_random=True) >= examples / 15


def first_at_random() -> Program:
    for seed in range(100):
        sketch = Sketch((Step(3, seed=seed),), (3, 5), seed=seed, target="tiny:5")
        program = build.build(sketch, build.default_operators())
        if program.plans is not None:
            return program
    raise AssertionError("no program is planned at random")


def test_a_program_keeps_its_random_plans(tmp_path: Path):
    program = first_at_random()
    program.save(tmp_path)
    loaded, _ = Program.load(tmp_path)
    copies = (program.clone(), program.with_module(program.module.clone()), loaded)
    assert {each.plans for each in copies} == {program.plans}
    texts = set[str]()
    for each in copies:
        passes = PassList.of("nn,partition")
        assert "plan-splits" in [p.name for p in passes.for_program(each)]
        passes = PassList(passes.tested, at_random=True).for_program(each)
        assert "plan-at-random" in [p.name for p in passes]
        for one in passes:
            one.apply(each.context, each.module)
        texts.add(each.text)
    assert len(texts) == 1


def test_random_passes_are_recorded_by_name():
    given = PlanAtRandom("tiny:4", 7)
    record = replay_record((given,), "value")
    assert record["passes"] == [{"spec": str(given.spec())}]
    assert recorded_passes(record) == parse_pipeline(str(given.spec()), AT_RANDOM) == (given,)


def test_pipelines_with_random_plans_leave_out_passes_that_only_improve_programs():
    passes = PassList(("nn,partition,tile,exchange",), at_random=True)
    every = [each.name for each in passes.on("tiny:4")]
    seen: set[str] = set()
    for number in range(60):
        program = build.build(random_sketch(Random(f"left out {number}")), OPERATORS)
        names = [each.name for each in passes.for_program(program)]
        if program.plans is None:
            assert names == every
            continue
        kept = [name for name in every if name in (*names, "plan-splits")]
        assert names == ["plan-at-random" if name == "plan-splits" else name for name in kept]
        seen |= set(every) - set(names) - {"plan-splits"}
        for first in range(1, len(names)):
            some = replace(passes, first=first).for_program(program)
            assert [each.name for each in some] == names[:first]
    assert seen == set(OPTIONAL)
    assert "decompose" not in seen


@dataclass(frozen=True)
class Shifted(ModulePass):
    """Adds a number to each output of floats."""

    name = "shifted"
    takes = NN

    amount: float = 1.0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        (main,) = (each for each in op.ops if isinstance(each, FuncOp))
        last = main.body.block.last_op
        assert last is not None
        for i, value in enumerate(last.operands):
            if nn.element_of(value) == f32:
                more = nn.ShiftOp(value, self.amount)
                main.body.block.insert_op_before(more, last)
                last.operands[i] = more.result


def test_a_mistake_that_a_later_pass_undoes_is_found(tmp_path: Path):
    both = (Shifted(), Shifted(-1.0))
    integers = programs(data=["integers"], operators=["nn.relu"])
    options = {"examples": 40, "seed": 0, "programs": integers}
    check_pipeline(both, "nn", parts=0, **options)
    with pytest.raises(Miscompiled) as caught:
        check_pipeline(both, "nn", folder=tmp_path / "found", **options)
    assert caught.value.blamed == "shifted"
