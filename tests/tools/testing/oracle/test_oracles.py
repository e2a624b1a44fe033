"""The oracle finds results that are wrong or too coarse."""

from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f16, f32
from xdsl.ir import Block, Operation

from abele.backends.evaluate.host import Run
from abele.backends.reference import operation_value
from abele.dialects import nn, partition
from abele.dialects.dtypes import numpy_dtype
from abele.dialects.partition import laid_out, partition_type
from abele.dialects.structured import Structured
from abele.ir.provenance import at, locate, origin
from abele.ir.tensor_type import tensor_type
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.eliminate_dead import EliminateDead
from abele.tools.testing import (
    Miscompiled,
    Program,
    bounded_run,
    check_pass,
    difference,
    programs,
    run,
)
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.sketch import Sketch, Step, random_sketch
from abele.tools.testing.oracle.oracles import Outcome, ResultCache, coarseness
from abele.tools.testing.search import judge
from abele.tools.testing.search.judge import disagreement

from ..wrong_passes import NarrowPartials

# Narrow sums


@dataclass(frozen=True)
class NarrowResults(ModulePass):
    """Stores sums of float32 as float16, and reads them again as float32."""

    name = "narrow-results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            if isinstance(each, Structured) and each.structure().body.combiner == "sum":
                (result,) = each.results
                if nn.element_of(result) == f32 and each.parent is not None:
                    narrow = nn.CastOp(result, f16)
                    wide = nn.CastOp(narrow.result, f32)
                    each.parent.insert_op_after(narrow, each)
                    each.parent.insert_op_after(wide, narrow)
                    result.replace_uses_with_if(
                        wide.result, lambda use, narrow=narrow: use.operation is not narrow
                    )


@dataclass(frozen=True)
class NarrowSumsOfHalves(ModulePass):
    """Keeps partial sums of float16 in float16, where the units keep float32."""

    name = "narrow-sums-of-halves"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if not isinstance(each, partition.ComputeOp):
                continue
            if not (origin(each) or "").endswith("/partials"):
                continue
            copies = [u.operation for u in each.result.uses]
            held = [each, *(c for c in copies if isinstance(c, partition.RelayoutOp))]
            users = [
                u.operation for h in held for u in h.results[0].uses if u.operation not in held
            ]
            if all(_is_half(user) for user in users):
                for holder in held:
                    type_ = partition_type(holder.results[0])
                    narrow = TensorType(f16, type_.tensor.get_shape())
                    holder.results[0]._type = laid_out(narrow, type_.layout.data)


def _is_half(op: Operation) -> bool:
    computes = isinstance(op, partition.ComputeOp)
    return computes and partition_type(op.results[0]).tensor.element_type == f16


SUMS = programs(
    "partition",
    operators=["nn.conv", "nn.matmul", "nn.reduce", "nn.conv_weight_grad"],
    dtypes=[f16],
    data=["normal"],
    max_ops=3,
    control_flow=False,
)


@pytest.mark.parametrize(
    ("tested", "level", "some"),
    [
        (NarrowPartials(), "partition", None),
        (NarrowResults(), "nn", None),
        (NarrowSumsOfHalves(), "partition", SUMS),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_sums_with_too_few_bits_are_found_in_200_programs(
    tested: ModulePass,
    level: str,
    some: st.SearchStrategy[Program] | None,
):
    with pytest.raises(Miscompiled) as caught:
        check_pass(tested, level, programs=some, examples=200, seed=1, reduce_seconds=0)
    assert caught.value.wrong.kind in ("value", "narrow")


def halves() -> Outcome:
    """A sum of float16 that is exactly 1 + 2^-12, which a correct run rounds to 1."""
    half = np.array([1.0], np.float16)
    exact = np.array([1 + 2.0**-12])
    return Outcome({"y": half}, {}, {"y": np.array([2.0**-11])}, exact={"y": exact})


def test_a_narrow_sum_may_be_within_the_bound_of_two_runs_and_still_be_coarse():
    after = Run({"y": np.array([1 + 2.0**-10], np.float16)}, {})
    assert difference(halves(), after) is None
    coarse = coarseness(halves(), after)
    assert coarse is not None
    assert "float16 rounded once" in str(coarse)


def test_a_value_that_is_rounded_once_is_not_coarse():
    assert coarseness(halves(), Run({"y": np.array([1.0], np.float16)}, {})) is None


def test_nothing_is_coarse_where_any_value_is_correct():
    free = Outcome({}, {}, {"y": np.array([np.inf])}, exact={"y": np.array([-np.inf])})
    assert coarseness(free, Run({"y": np.array([np.nan], np.float16)}, {})) is None


def test_a_pass_that_narrows_results_has_nothing_to_do_where_all_are_narrow():
    report = check_pass(
        NarrowResults(), examples=40, seed=1, programs=SUMS_OF_NN, expect_changes=False
    )
    assert (report.examples, report.changed) == (40, 0)


SUMS_OF_NN = programs("nn", operators=["nn.matmul"], dtypes=[f16], data=["integers"], max_ops=1)


# Numbers, NaN and infinities


@pytest.mark.parametrize(
    ("right", "found"),
    [
        (np.nan, 1.0),
        (1.0, np.nan),
        (np.inf, 3e38),
        (1.0, np.inf),
        (np.inf, -np.inf),
        (np.inf, np.nan),
    ],
)
def test_nan_and_infinities_differ_from_others_whatever_the_bound(right: float, found: float):
    expected = Outcome({"y": np.array([right], np.float32)}, {}, {"y": np.array([1e30])})
    wrong = difference(expected, Run({"y": np.array([found], np.float32)}, {}))
    assert wrong is not None
    assert wrong.ratio == np.inf


@pytest.mark.parametrize("same", [np.nan, np.inf, -np.inf])
def test_nan_and_infinities_are_equal_to_themselves(same: float):
    array = np.array([same], np.float32)
    expected = Outcome({"y": array}, {}, {"y": np.zeros(1)})
    assert difference(expected, Run({"y": array.copy()}, {})) is None


@dataclass(frozen=True)
class CancelSub(ModulePass):
    """Replaces x - x by 0, for infinities too."""

    name = "cancel-sub"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            if not isinstance(each, nn.SubOp):
                continue
            if each.operands[0] is each.operands[1]:
                result = each.results[0]
                array = np.zeros(nn.shape_of(result), numpy_dtype(nn.element_of(result)))
                zero = nn.ConstantOp(array)
                locate(zero, at(each))
                assert each.parent is not None
                each.parent.insert_op_before(zero, each)
                result.replace_all_uses_with(zero.result)


def test_a_rewrite_that_forgets_infinities_is_found(tmp_path: Path):
    special = programs(
        "nn", operators=["nn.sub"], dtypes=[f32], data=["special"], control_flow=False
    )
    with pytest.raises(Miscompiled, match="need nan"):
        check_pass(CancelSub(), programs=special, examples=200, seed=1, folder=tmp_path)


# Two runs


@dataclass(frozen=True)
class Undecided(ModulePass):
    """Swaps the operands of a sum at random."""

    name = "undecided"
    random = Random(1)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            if isinstance(each, nn.AddOp) and self.random.random() < 0.5:
                each.operands[0], each.operands[1] = each.operands[1], each.operands[0]


def test_a_pass_that_gives_another_program_each_time_is_found(tmp_path: Path):
    with pytest.raises(Miscompiled, match="two runs of the pass") as caught:
        check_pass(Undecided(), examples=400, seed=1, folder=tmp_path)
    assert caught.value.wrong.kind == "random"


def test_results_that_differ_from_run_to_run_are_found(monkeypatch: pytest.MonkeyPatch):
    sketch = Sketch((Step(0),), (3,), seed=1)
    program = build(sketch, default_operators(("nn.add",)), (f32,))
    runs = iter((1.0, 1.0 + 2.0**-23))

    def drifting(of: Program, cache: ResultCache | None = None) -> Run:
        done = run(of)
        factor = next(runs)
        return Run({n: (a * factor).astype(a.dtype) for n, a in done.outputs.items()}, done.state)

    expected = bounded_run(program)
    expected.errors.update({name: np.ones_like(e) for name, e in expected.errors.items()})
    monkeypatch.setattr(judge, "run", drifting)
    wrong = disagreement(expected, program, twice=True)
    assert wrong is not None
    assert (wrong.kind, "two runs differ" in wrong.text) == ("random", True)


def test_results_in_the_cache_are_not_computed_again():
    for i in range(20):
        program = build(random_sketch(Random(f"known {i}")), default_operators())
        EliminateDead().apply(program.context, program.module)
        expected = bounded_run(program)
        if expected.fault is not None:
            continue
        again = run(program.clone(), expected.cache)
        for name, array in run(program).outputs.items():
            np.testing.assert_array_equal(again.outputs[name], array)
            assert again.outputs[name] is expected.outputs[name]


def test_the_cache_tells_operands_and_operations_apart():
    one, other = np.ones(3, np.float32), np.ones(3, np.float32)
    block = Block(arg_types=[tensor_type(f32, (3,))])
    (x,) = block.args
    cache = ResultCache()
    scaled = cache.get_or_add(nn.ScaleOp(x, 2.0), [one], operation_value)
    assert cache.get_or_compute(nn.ScaleOp(x, 2.0), [one]) is scaled
    for op, given in (
        (nn.ScaleOp(x, 2.0), other),
        (nn.ScaleOp(x, 3.0), one),
        (nn.ShiftOp(x, 2.0), one),
        (nn.ReshapeOp(x, (3, 1)), one),
        (nn.CastOp(x, f16), one),
    ):
        found = cache.get_or_compute(op, [given])
        assert found is not scaled
        np.testing.assert_array_equal(found, operation_value(op, [given]))


def test_get_or_compute_adds_nothing_to_the_cache():
    one = np.ones(3, np.float32)
    (x,) = Block(arg_types=[tensor_type(f32, (3,))]).args
    cache = ResultCache()
    first = cache.get_or_compute(nn.ReluOp(x), [one])
    assert cache.get_or_compute(nn.ReluOp(x), [one]) is not first


def test_the_cache_tells_zeros_of_both_signs_apart():
    (x,) = Block(arg_types=[tensor_type(f32, (3,))]).args
    one, cache = np.ones(3, np.float32), ResultCache()
    for make in (
        lambda zero: nn.ScaleOp(x, zero),
        lambda zero: nn.PadOp(x, [1], [1], value=zero),
    ):
        signs = [
            np.signbit(cache.get_or_add(make(zero), [one], operation_value)[0])
            for zero in (0.0, -0.0, 0.0)
        ]
        assert signs == [False, True, False]


def test_correct_results_are_neither_different_nor_coarse():
    for i in range(20):
        program = build(random_sketch(Random(f"oracles {i}")), default_operators())
        EliminateDead().apply(program.context, program.module)
        expected = bounded_run(program)
        if expected.fault is not None:
            continue
        found = run(program)
        assert difference(expected, found) is None
        assert coarseness(expected, found) is None
