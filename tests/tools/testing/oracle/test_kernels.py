"""Compiled kernels are compared with NumPy, and a wrong one is named with its operation."""

from dataclasses import replace
from random import Random

import pytest
from lengths import lengths

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS, Opcode, ScalarStep
from abele.backends.host.load import NoKernels
from abele.tools.testing import Miscompiled, Report, check_pipeline, programs
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.levels import at_level
from abele.tools.testing.generators.sketch import is_long, random_sketch
from abele.tools.testing.oracle import kernels as oracle
from abele.tools.testing.oracle.kernels import (
    is_deep,
    prepare_kernels,
    situations,
    wrong_kernel,
)
from abele.tools.testing.oracle.oracles import run
from abele.tools.testing.search import judge
from abele.tools.testing.search.run import PassList
from abele.tools.testing.search.settings import CheckSettings

pytest.importorskip("numba")


@pytest.fixture
def _wrong_subtraction(monkeypatch: pytest.MonkeyPatch):
    wrong = replace(SCALAR_FUNCTIONS["sub"], compiled=(ScalarStep(Opcode.ADD, "operand"),))
    monkeypatch.setitem(SCALAR_FUNCTIONS, "sub", wrong)


@pytest.mark.usefixtures("_wrong_subtraction", "patient")
def test_a_wrong_kernel_is_blamed_by_its_task_and_not_a_pass(tmp_path):
    subtractions = programs(operators=["nn.sub"], control_flow=False, max_ops=2)
    with pytest.raises(Miscompiled) as caught:
        check_pipeline(
            programs=subtractions, examples=40, seed=0, kernels=1, folder=tmp_path / "found"
        )
    assert caught.value.wrong.kind == "kernel"
    assert caught.value.blamed == "the compiled kernels of chains"
    message = str(caught.value)
    assert message.startswith(
        "a compiled kernel is wrong, not the model or a pass: exchange.compute"
    )
    made = [op for op in caught.value.program.module.walk() if op.name.startswith("nn.")]
    assert len(made) == 1


def test_some_programs_run_with_kernels_and_the_report_counts_them():
    report = Report()
    check_pipeline(examples=6, seed=1, report=report)
    assert 0 < report.by_kernels < 6
    assert f"{report.by_kernels} with compiled kernels too" in str(report)


def test_without_kernels_programs_run_as_before(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(judge, "has_kernels", lambda: False)
    report = Report()
    check_pipeline(examples=4, seed=1, report=report)
    assert (report.examples, report.by_kernels) == (4, 0)
    assert "none with compiled kernels, which this host lacks" in str(report)


def test_programs_have_sums_of_more_terms_than_a_chain_and_cost_little():
    some = [random_sketch(Random(f"long {n}")) for n in range(400)]
    long = [build(sketch, default_operators()) for sketch in some if is_long(sketch)]
    arrays = [a for p in long for a in (*p.inputs.values(), *p.state.values())]
    assert any(max(a.shape, default=0) > 600 for a in arrays)
    assert max(a.size for a in arrays) <= 700 * 12


def test_another_shape_is_another_situation():
    made = (build(random_sketch(Random(f"situations {n}")), default_operators()) for n in range(10))
    lowered = [p for p in (at_level(each, "exchange") for each in made) if p is not None]
    found = [situations(each) for each in lowered]
    assert len(set[object]().union(*found)) > len(lowered)
    assert situations(lowered[0].clone()) == found[0]


@pytest.mark.parametrize("examples", lengths(20, 60))
def test_copies_of_many_loops_run_with_kernels_however_many_programs_have(examples: int):
    made = (build(random_sketch(Random(f"deep {n}")), default_operators()) for n in range(examples))
    lowered = [p for p in (at_level(each, "exchange") for each in made) if p is not None]
    deep = [any(map(is_deep, situations(each))) for each in lowered]
    assert 0 < sum(deep) < len(lowered) / 3
    enough = Report(by_kernels=1000)
    tested = judge.Judge(PassList.of("exchange"), CheckSettings(kernels=1 << 30), enough)
    pairs = [(each, tested._runs_kernels(each, each)) for each in lowered]
    assert [runs for _, runs in pairs] == deep


def test_kernels_that_fail_their_self_test_are_in_the_report(monkeypatch: pytest.MonkeyPatch):
    def kernels_of(task: str) -> None:
        if task in ("copies", "routes"):
            raise NoKernels("copies", "fail their self-test on this host (5 dimensions)")

    monkeypatch.setattr(oracle, "kernels", kernels_of)
    problem = "kernels of copies fail their self-test on this host (5 dimensions)"
    assert prepare_kernels.__wrapped__() == (problem,)
    assert f", none with {problem}" in str(Report(kernel_problems=(problem,)))


def test_a_program_that_kernels_run_rightly_has_no_wrong_kernel():
    program = at_level(build(random_sketch(Random("right")), default_operators()), "exchange")
    assert program is not None
    assert wrong_kernel(program, run(program)) is None
