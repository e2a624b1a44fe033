"""Relations hold for abele's passes, and each finds a pass that breaks it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pytest

from abele.backends.target import resolve_target
from abele.dialects import nn, partition
from abele.dialects.abele import Plan, PlanAttr
from abele.dialects.structured import Structured
from abele.ir.text import parse_module
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.plans.planned import target_of
from abele.tools.driver.context import new_context
from abele.tools.testing import (
    Miscompiled,
    NotApplicable,
    Program,
    RelationFailed,
    batch_split,
    bounded_run,
    check_pass,
    check_pipeline,
    cost_monotone,
    difference,
    idempotent,
    ignores_dead_code,
    programs,
    run,
    scales_by_powers_of_two,
    tile_count_invariant,
)
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.sketch import random_sketch
from abele.tools.testing.oracle.batch import NoBatch, batch_slice, batches
from abele.tools.testing.oracle.relations import RELATIONS, Relation

WITHIN = (idempotent, ignores_dead_code, batch_split, scales_by_powers_of_two)


def broken(
    tested: object, relation: Relation, folder: Path, operators: Sequence[str]
) -> Miscompiled:
    """The failure that a relation finds in passes. Results are not compared."""
    few = programs("nn", operators=operators, max_ops=3, data=["normal"], control_flow=False)
    with pytest.raises(Miscompiled) as caught:
        check_pipeline(
            tested,
            programs=few,
            examples=200,
            seed=1,
            relation=relation,
            results=False,
            folder=folder,
        )
    assert caught.value.wrong.kind == "relation"
    assert caught.value.wrong.relation == relation.__name__
    return caught.value


@pytest.mark.parametrize("name", ["decompose", "canonicalize"])
def test_relations_within_a_level_hold_for_abeles_passes(name: str):
    report = check_pass(name, examples=8, seed=0, relation=WITHIN)
    assert report.held["idempotent"] == 8
    assert report.held["ignores_dead_code"] > 3
    assert report.skipped["batch_split"] > 0


def test_relations_hold_for_the_whole_pipeline():
    related = (tile_count_invariant, batch_split, cost_monotone, scales_by_powers_of_two)
    report = check_pipeline(examples=6, seed=0, relation=related)
    # One program may not fit its machine.
    assert (report.examples + report.unfit, report.refused) == (6, 0)
    assert report.examples >= 5
    for relation in related:
        held, skipped = report.held[relation.__name__], report.skipped[relation.__name__]
        assert held > 0
        assert held + skipped == report.examples


def test_the_report_names_relations():
    report = check_pass("canonicalize", examples=5, seed=0, relation=idempotent)
    assert "idempotent held for 5 and skipped for 0" in str(report)


@dataclass(frozen=True)
class SwapAdd(ModulePass):
    """Swaps the operands of every sum."""

    name = "swap-add"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.AddOp) and each.operands[0] is not each.operands[1]:
                each.operands[0], each.operands[1] = each.operands[1], each.operands[0]


def test_a_pass_that_changes_its_own_output_is_not_idempotent(tmp_path: Path):
    found = broken(SwapAdd(), idempotent, tmp_path, ["nn.add"])
    assert "a second run changes the program" in str(found)
    assert found.blamed == "swap-add"


def test_idempotent_skips_a_pass_to_another_level():
    report = check_pass(
        "convert-partition-to-tile", "partition", examples=3, seed=0, relation=idempotent
    )
    assert report.skipped["idempotent"] == 3


@dataclass(frozen=True)
class SwapOnManyTiles(ModulePass):
    """Swaps the operands of a difference if there are more than four tiles."""

    name = "swap-on-many-tiles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if target_of(op).tiles > 4:
            for each in op.walk():
                if isinstance(each, partition.ComputeOp) and each.body.data.function == "sub":
                    first, second, *rest = each.operands
                    if first.type == second.type:
                        each.operands = [second, first, *rest]


def test_results_that_depend_on_the_machine_are_found(tmp_path: Path):
    tested = ("nn", "partition", SwapOnManyTiles(), "tile")
    found = broken(tested, tile_count_invariant, tmp_path, ["nn.sub"])
    assert "compiled for tiny:" in str(found)
    assert found.blamed == "swap-on-many-tiles"


def program_of(*ops: str) -> Program:
    """A program that computes %r of two vectors of float32."""
    type_ = "tensor<9xf32>"
    body = "\n".join(f"{op} : ({type_}, {type_}) -> {type_}" for op in ops)
    text = f"func.func @main(%a: {type_}, %b: {type_}) -> {type_} {{ {body}\n"
    context = new_context()
    module = parse_module(f"{text} func.return %r : {type_} }}", context)
    arrays = np.random.default_rng(1).standard_normal((2, 9)).astype(np.float32)
    inputs = {"arg0": arrays[0], "arg1": arrays[1]}
    return Program(module, context, inputs, resolve_target("tiny:4"))


def test_results_must_be_equal_where_nothing_is_summed():
    before = program_of("%r = nn.div %a, %b")
    other = program_of("%1 = nn.div %b, %b", "%2 = nn.div %1, %b", "%r = nn.mul %a, %2")
    assert difference(bounded_run(before), run(other)) is None
    said = tile_count_invariant(before, before, lambda program: other)
    assert said is not None
    assert "exactly" in said


@dataclass(frozen=True)
class RotateRows(ModulePass):
    """Makes nn.neg and nn.relu read the previous row."""

    name = "rotate-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            if isinstance(each, nn.NegOp | nn.ReluOp) and nn.shape_of(each.operand)[:1] > (1,):
                rows, *rest = nn.shape_of(each.operand)
                zero, one = [0] * len(rest), [1] * (len(rest) + 1)
                last = nn.SliceOp(each.operand, [rows - 1, *zero], one, [1, *rest])
                others = nn.SliceOp(each.operand, [0, *zero], one, [rows - 1, *rest])
                whole = nn.ConcatOp([last.result, others.result], 0)
                assert each.parent is not None
                for new in (last, others, whole):
                    each.parent.insert_op_before(new, each)
                each.operands[0] = whole.result


def test_a_pass_that_mixes_elements_of_a_batch_is_found(tmp_path: Path):
    found = broken(RotateRows(), batch_split, tmp_path, ["nn.neg"])
    assert "a batch of" in str(found)


def test_a_batch_is_an_axis_that_nothing_mixes():
    found = uncut = 0
    # A third of all programs have such an axis.
    for i in range(60):
        program = build(random_sketch(Random(f"batch {i}")), default_operators())
        whole = bounded_run(program)
        if whole.fault is not None or whole.dead_fault:
            continue
        for batch in batches(program):
            slices = (0, 1), (1, batch.size)
            try:
                parts = [batch_slice(program, batch, low, high) for low, high in slices]
            except NoBatch:
                # The operations may have no form for a slice of one element.
                uncut += 1
                continue
            results = [run(each).outputs for each in parts]
            for (name, array), axis in zip(whole.outputs.items(), batch.outputs, strict=True):
                if axis is not None:
                    joined = np.concatenate([each[name] for each in results], axis)
                    np.testing.assert_allclose(joined, array, rtol=1e-2, atol=1e-2)
            found += 1
            break
    assert found > 10
    assert uncut * 5 < found


@dataclass(frozen=True)
class ForwardDead(ModulePass):
    """Bypasses operations that an unused operation reads, as if they were unused too."""

    name = "forward-dead"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            if isinstance(each, Structured) and all(r.first_use is None for r in each.results):
                for value in each.operands:
                    made = value.owner
                    if isinstance(made, Structured) and made.operands[0].type == value.type:
                        value.replace_all_uses_with(made.operands[0])


def test_an_unused_operation_that_changes_results_is_found(tmp_path: Path):
    found = broken(ForwardDead(), ignores_dead_code, tmp_path, ["nn.neg", "nn.exp"])
    assert "whose result is unused" in str(found)


@dataclass(frozen=True)
class AddEpsilon(ModulePass):
    """Adds a small number to divisors and factors, as if to avoid division by 0."""

    name = "add-epsilon"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            if isinstance(each, nn.DivOp | nn.MulOp) and each.parent is not None:
                epsilon = nn.ShiftOp(each.operands[1], 2.0**-20)
                each.parent.insert_op_before(epsilon, each)
                each.operands[1] = epsilon.result


def test_an_added_epsilon_does_not_scale(tmp_path: Path):
    found = broken(AddEpsilon(), scales_by_powers_of_two, tmp_path, ["nn.div", "nn.mul"])
    assert "times its former value" in str(found)


@dataclass(frozen=True)
class OneTileIfEven(ModulePass):
    """Puts all work on the first tile if the number of operations is even."""

    name = "one-tile-if-even"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ops = [each for each in op.walk() if isinstance(each, Structured)]
        if len(ops) % 2 == 0:
            for each in ops:
                dims = each.structure().space.dims
                each.attributes["plan"] = PlanAttr(Plan((1,) * len(dims)))


def test_a_planner_that_is_better_at_longer_programs_is_found(tmp_path: Path):
    tested = ("nn", "unfuse", OneTileIfEven(), "partition", "tile", "exchange")
    found = broken(tested, cost_monotone, tmp_path, ["nn.exp", "nn.matmul"])
    assert "cycles; without" in str(found)


def test_a_relation_that_raises_is_reported_as_such(tmp_path: Path):
    def wants_text(before: Program, after: Program, compiled: object) -> str | None:
        raise KeyError("text")

    with pytest.raises(RelationFailed, match="relation 'wants_text' raised KeyError") as caught:
        check_pass("canonicalize", examples=5, seed=1, relation=wants_text, folder=tmp_path)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_relation_that_is_not_applicable_is_skipped():
    def never(before: Program, after: Program, compiled: object) -> str | None:
        raise NotApplicable("never")

    report = check_pass("canonicalize", examples=5, seed=1, relation=never)
    assert (report.examples, report.skipped["never"]) == (5, 5)


def test_relations_are_listed_by_their_names():
    assert all(name == relation.__name__ for name, relation in RELATIONS.items())
