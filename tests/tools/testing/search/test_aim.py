"""What programs are about: operators and decisions that a caller gives, or that code names."""

from dataclasses import dataclass, fields

import pytest
from lengths import lengths

from abele.dialects import nn
from abele.dialects.abele import Plan
from abele.ir.errors import InputError
from abele.ir.pass_manager import load_pass
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.pipelines import PASSES
from abele.passes.plans.planned import plan_of
from abele.tools.testing import Report, check_pass, check_pipeline, programs
from abele.tools.testing.generators.program import Program
from abele.tools.testing.search.aim import ALL_DECISIONS, DECISIONS, Aim, decisions_in
from abele.tools.testing.search.draw import generated

PIPE = "nn,partition,tile,exchange"


@dataclass(frozen=True)
class OfRings(ModulePass):
    """Looks at operations whose plan rotates."""

    name = "of-rings"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.MatMulOp) and plan_of(each).ring:
                return


def counted(aim: Aim, count: int = 60, seed: int = 1) -> dict[str, int]:
    """How many programs have each operator, and how many plans of nn programs each decision."""
    found: dict[str, int] = {}

    def look(program: Program) -> bool:
        names = {op.name for op in program.module.walk()} | decisions_in(program.module)
        for name in names:
            found[name] = found.get(name, 0) + 1
        return False

    generated(aim.level, count, seed, aim, look)
    return found


def test_programs_are_about_the_operators_that_a_caller_gives():
    # Other programs seldom have an average: an operation that has much to plan, such as a sort, or
    # that follows others is more likely.
    given = [nn.AveragePoolOp, "nn.scan"]
    few, any_ = (counted(aim, seed=2) for aim in (Aim.of((), "nn", given), Aim()))
    assert few["nn.average_pool"] > 15 > 4 * any_.get("nn.average_pool", 0)
    assert few["nn.scan"] > 15


@pytest.mark.parametrize("decision", ["ring", "combine"])
@pytest.mark.parametrize("examples", lengths(10, 30))
def test_plans_make_the_decisions_that_a_caller_gives(decision: str, examples: int):
    both = ([decision], [])
    some, any_ = (counted(Aim.of((), "planned", ["nn.matmul"], given), examples) for given in both)
    assert some.get(decision, 0) > any_.get(decision, 0)


def test_every_field_of_a_plan_is_a_decision():
    assert set(DECISIONS) == {each.name for each in fields(Plan)}


def test_the_code_of_a_users_pass_names_decisions():
    (lower,) = (load_pass("convert-nn-to-partition", PASSES)(),)
    aim = Aim.of([lower, OfRings()], "nn")
    assert aim.passes == (OfRings(),)
    assert aim.decisions == ("ring",)
    assert Aim.of([lower], "nn").decisions == ()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"operators": ["nn.nothing"]}, "operator 'nn.nothing'"),
        ({"operators": ["stablehlo.gather"]}, "operator 'stablehlo.gather': no operator of nn"),
        (
            {"operators": ["nn.add"], "level": "stablehlo"},
            "operator 'nn.add': no operator of stablehlo",
        ),
        ({"decisions": ["color"]}, f"decision 'color'; need some of {', '.join(ALL_DECISIONS)}"),
        ({"operators": [nn.AddOp], "programs": programs("nn")}, "but not both"),
    ],
)
def test_what_is_not_known_is_refused(options: dict[str, object], problem: str):
    with pytest.raises(InputError, match=problem):
        check_pass("canonicalize", examples=1, **options)


def test_a_pipeline_takes_operators_and_decisions():
    report = Report()
    check_pipeline(
        PIPE, examples=6, seed=1, operators=[nn.MatMulOp], decisions=["ring"], report=report
    )
    assert sum(n for (name, _, _), n in report.exercised.items() if name == "nn.matmul") >= 3
