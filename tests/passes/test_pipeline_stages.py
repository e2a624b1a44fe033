from typing import Any

import numpy as np
import pytest
from lengths import large
from some_tensors import context, counting, module_of
from staged_programs import staged_loop
from xdsl.dialects.func import FuncOp

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.ir.errors import InputError
from abele.ir.geometry.pipeline import SCHEDULES, Pipeline, ScheduleName
from abele.ir.geometry.tiles import MOST_CHIPS
from abele.ir.instruments.record_ir import UNREPORTED, RecordIR
from abele.ir.pass_manager import PassManager
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.assign_stages import AssignStages
from abele.passes.decompose import Decompose
from abele.passes.gradients.way import is_float
from abele.passes.pipeline_stages import PipelineStages
from abele.passes.pipelining.loop import PipelinedLoop
from abele.passes.pipelining.outline import Outline
from abele.passes.train import Train

PROGRAMS = 6

T = "tensor<4xf32>"


def pipelined(
    module: ModuleOp, schedule: ScheduleName = "grouped", *, recompute: bool = False
) -> ModuleOp:
    made = module.clone()
    PipelineStages(schedule, recompute).apply(context(), made)
    verify(made)
    return made


def same_bits(one: ModuleOp, other: ModuleOp, inputs: dict[str, np.ndarray]) -> bool:
    before, after = run_reference(one, inputs), run_reference(other, inputs)
    pairs = ((before.outputs, after.outputs), (before.state, after.state))
    return all(a[name].tobytes() == b[name].tobytes() for a, b in pairs for name in a)


TWO_STAGES = f"""
func.func @main(%x: {T}) -> {T} {{
  %1 = control.repeat 3 (%x) : ({T}) -> ({T}) {{
  ^bb0(%s: {T}):
    %a = nn.tanh %x {{stage = 0 : i64}} : ({T}) -> {T}
    %b = nn.add %s, %a {{stage = 1 : i64}} : ({T}, {T}) -> {T}
    control.yield %b : {T}
  }}
  func.return %1 : {T}
}}
"""


def test_two_stages_become_functions_and_their_loop_a_pipeline():
    module = pipelined(module_of(TWO_STAGES, context()))
    expected = module_of(
        f"""
        func.func @stage0(%0: {T}) -> {T}
            attributes {{abele.chips = [0 : i64, 1 : i64, 2 : i64]}} {{
          %1 = nn.tanh %0 : ({T}) -> {T}
          func.return %1 : {T}
        }}
        func.func @stage1(%0: {T}, %1: {T}) -> {T}
            attributes {{abele.chips = [1 : i64, 1 : i64, 2 : i64]}} {{
          %2 = nn.add %0, %1 : ({T}, {T}) -> {T}
          func.return %2 : {T}
        }}
        func.func @main(%0: {T}) -> {T} {{
          %1 = func.call @stage0(%0) : ({T}) -> {T}
          %2, %3 = control.repeat 2 (%1, %0) : ({T}, {T}) -> ({T}, {T}) {{
          ^bb0(%4: {T}, %5: {T}):
            %6 = func.call @stage0(%0) : ({T}) -> {T}
            %7 = func.call @stage1(%5, %4) : ({T}, {T}) -> {T}
            control.yield %6, %7 : {T}, {T}
          }}
          %8 = func.call @stage1(%3, %2) : ({T}, {T}) -> {T}
          func.return %8 : {T}
        }}
        """,
        context(),
    )
    assert plain(module) == plain(expected)


def plain(module: ModuleOp) -> str:
    """The text of a module, without the names of its values."""
    for op in module.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            value.name_hint = None
    return print_module(module, locations=False)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("recompute", [False, True])
def test_a_pipeline_gives_the_bits_of_its_loop(schedule: ScheduleName, recompute: bool):
    for seed in range(PROGRAMS):
        module, inputs = staged_loop(seed)
        assert same_bits(module, pipelined(module, schedule, recompute=recompute), inputs), seed


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("options", [large({}), {"optimizer": "adam", "clip_norm": 1.0}])
@pytest.mark.parametrize("cuts", [large(("fc1",)), ("fc1", "tanh1", "fc2")])
def test_training_with_accumulation_gives_the_bits_of_its_loop(
    schedule: ScheduleName, options: dict[str, object], cuts: tuple[str, ...]
):
    module, inputs = training(8, **options)
    AssignStages(cuts, target="mk1x4").apply(context(), module)
    for recompute in (False, True):
        assert same_bits(module, pipelined(module, schedule, recompute=recompute), inputs)


def training(micro_batches: int, **options: object) -> tuple[ModuleOp, dict[str, np.ndarray]]:
    """A step of training of three dense layers, the last of which reads the first one too."""
    kind, weight = "tensor<2x4xf32>", "tensor<4x4xf32>"
    states, body, last = "", "", "%x"
    for i in range(3):
        states += f"nn.state @w{i} : {weight} = {{w{i}}}\n"
        body += f"""
          %w{i} = nn.load @w{i} : {weight}
          %m{i} = nn.matmul {last}, %w{i} : ({kind}, {weight}) -> {kind} loc("fc{i}")
          %t{i} = nn.tanh %m{i} : ({kind}) -> {kind} loc("tanh{i}")"""
        last = f"%t{i}"
    body += f'%y = nn.add %t2, %t0 : ({kind}, {kind}) -> {kind} loc("skip")'
    draw = np.random.default_rng(1).normal
    ctx = context()
    module = module_of(
        f"{states} func.func @main(%x: {kind}) -> {kind} {{ {body}\n func.return %y : {kind} }}",
        ctx,
        **{f"w{i}": draw(size=(4, 4)).astype(np.float32) for i in range(3)},
    )
    Train("mean_square", micro_batches=micro_batches, **options).apply(ctx, module)
    Decompose().apply(ctx, module)
    batch = (2 * micro_batches, 4)
    return module, {name: draw(size=batch).astype(np.float32) for name in ("arg0", "target")}


def test_every_change_is_reported():
    module, _ = training(4, optimizer="adam", clip_norm=1.0)
    AssignStages(("fc1",), target="mk1x2").apply(context(), module)
    record = RecordIR()
    PassManager((PipelineStages(),), (record,)).run(context(), module)
    changes = record.stages[-1].changes
    assert changes
    assert all(each.source is not UNREPORTED for each in changes)


def test_weights_are_loaded_and_updated_by_functions_on_the_chips_of_their_stages():
    module, _ = training(4)
    AssignStages(("fc1",), target="mk1x2").apply(context(), module)
    made = pipelined(module)
    places = {
        (type(op), op.state.string_value()): str(function.attributes["abele.chips"])
        for function in made.body.block.ops
        for op in function.walk()
        if isinstance(op, nn.LoadOp | nn.StoreOp) and "abele.chips" in function.attributes
    }
    first, second = "[0 : i64, 1 : i64, 2 : i64]", "[1 : i64, 1 : i64, 2 : i64]"
    of_weights = {"w0": first, "w1": second, "w2": second}
    assert places == {
        (kind, name): chip for name, chip in of_weights.items() for kind in (nn.LoadOp, nn.StoreOp)
    }


def test_only_what_belongs_to_several_chips_stays_in_main():
    module, _ = training(4, optimizer="adam", clip_norm=1.0)
    AssignStages(("fc1",), target="mk1x2").apply(context(), module)
    main = pipelined(module).body.block.last_op
    assert main is not None
    left = [op for op in main.regions[0].block.ops if isinstance(op, nn.PureTensorOp)]
    # The norm of all gradients, and the powers of two numbers of Adam.
    assert all(nn.shape_of(op.results[0]) == () for op in left)


def test_text_grows_with_stages_and_not_with_micro_batches():
    def lines(micro_batches: int) -> int:
        module, _ = training(micro_batches)
        AssignStages(("fc1", "fc2"), target="mk1x4").apply(context(), module)
        return len(print_module(pipelined(module), locations=False).splitlines())

    assert lines(8) == lines(64)


def test_a_deep_stash_is_a_table_of_which_a_push_writes_one_row():
    module, _ = training(8)
    AssignStages(("fc1", "fc2"), target="mk1x4").apply(context(), module)
    made = pipelined(module)
    stashes = [op for op in made.body.block.ops if "stash0" in str(op.properties.get("sym_name"))]
    (update,) = (op for op in stashes[0].walk() if isinstance(op, nn.UpdateOp))
    # Stage 0 of 0..2 keeps 2 (2 - 0) values of tanh0 for the backward pass.
    assert nn.shape_of(update.table) == (4, 2, 4)
    assert nn.shape_of(update.updates)[0] == 1


def test_stages_without_a_loop_are_called_one_after_the_other():
    module = module_of(
        f"""
        func.func @main(%x: {T}) -> {T} {{
          %a = nn.tanh %x {{stage = 0 : i64}} : ({T}) -> {T}
          %b = nn.exp %a {{stage = 1 : i64}} : ({T}) -> {T}
          func.return %b : {T}
        }}
        """,
        context(),
    )
    made = pipelined(module)
    names = [op.properties["sym_name"].data for op in made.body.block.ops]
    assert names == ["chip0", "chip1", "main"]
    assert same_bits(module, made, {"arg0": counting((4,))})


def test_an_operation_outside_the_loop_may_have_a_stage_of_its_own():
    last = f"%2 = nn.exp %1 {{stage = 2 : i64}} : ({T}) -> {T}\n  func.return %2"
    module = module_of(TWO_STAGES.replace("func.return %1", last), context())
    made = pipelined(module)
    places = {
        op.properties["sym_name"].data: str(op.attributes.get("abele.chips"))
        for op in made.body.block.ops
    }
    assert places["chip2"] == "[2 : i64, 1 : i64, 3 : i64]"
    assert same_bits(module, made, {"arg0": counting((4,))})


def test_of_several_stores_to_a_state_the_last_one_still_counts():
    module = module_of(
        f"""
        nn.state @w : {T} = {{w}}
        func.func @main(%x: {T}) -> {T} {{
          %a = nn.tanh %x {{stage = 0 : i64}} : ({T}) -> {T}
          %b = nn.exp %a {{stage = 1 : i64}} : ({T}) -> {T}
          nn.store %b, @w : {T}
          nn.store %a, @w : {T}
          func.return %b : {T}
        }}
        """,
        context(),
        w=np.zeros(4, np.float32),
    )
    assert same_bits(module, pipelined(module), {"arg0": counting((4,))})


def test_a_stage_without_operations_has_no_function():
    text = TWO_STAGES.replace("stage = 1", "stage = 2")
    module = module_of(text, context())
    made = pipelined(module)
    names = [op.properties["sym_name"].data for op in made.body.block.ops]
    assert names == ["stage0", "stage2", "main"]
    assert same_bits(module, made, {"arg0": counting((4,))})


def test_values_that_only_move_are_handed_on_by_a_stage_without_operations():
    text = f"""
        func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}, {T}) {{
          %1:3 = control.repeat 2 (%x, %x, %x) : ({T}, {T}, {T}) -> ({T}, {T}, {T}) {{
          ^bb0(%a: {T}, %b: {T}, %s: {T}):
            %n = nn.add %s, %y {{stage = 1 : i64}} : ({T}, {T}) -> {T}
            control.yield %y, %a, %n : {T}, {T}, {T}
          }}
          func.return %1#0, %1#1, %1#2 : {T}, {T}, {T}
        }}
        """
    module = module_of(text, context())
    inputs = {"arg0": counting((4,)), "arg1": 2 * counting((4,)) + 1}
    assert same_bits(module, pipelined(module), inputs)


# What is refused


def test_a_value_that_flows_to_an_earlier_stage_is_refused():
    text = TWO_STAGES.replace("stage = 0", "stage = 2")
    with pytest.raises(InputError, match="in stage 1, but reads what nn.tanh .* makes in stage 2"):
        pipelined(module_of(text, context()))


def test_a_carried_value_that_an_earlier_stage_reads_is_refused():
    text = TWO_STAGES.replace("nn.tanh %x", "nn.tanh %s")
    with pytest.raises(InputError, match="stage 0 reads a value that stage 1 gives to the next"):
        pipelined(module_of(text, context()))


def test_fewer_micro_batches_than_stages_are_refused():
    text = TWO_STAGES.replace("repeat 3", "repeat 1")
    with pytest.raises(InputError, match="1 micro-batches; a grouped pipeline of 2 stages needs"):
        pipelined(module_of(text, context()))


@pytest.mark.parametrize("number", ["-1", "65536", "900000000"])
def test_stages_that_are_no_numbers_of_chips_are_refused(number: str):
    text = TWO_STAGES.replace("stage = 1", f"stage = {number}")
    with pytest.raises(InputError, match=f"stage = {number} : i64; need 0 to {MOST_CHIPS - 1}"):
        pipelined(module_of(text, context()))


@pytest.mark.parametrize("chips", ["[0]", "[0, -1]", "[0, 65536]", '["a", "b"]'])
def test_chips_that_cannot_be_are_refused(chips: str):
    text = f"builtin.module attributes {{abele.stages = {chips}}} {{ {TWO_STAGES} }}"
    with pytest.raises(InputError, match="need the chips of 2 stages"):
        pipelined(module_of(text, context()))


def test_less_than_one_replica_is_refused():
    with pytest.raises(InputError, match=f"replicas 0; need 1 to {MOST_CHIPS}"):
        PipelineStages(replicas=0).apply(context(), module_of(TWO_STAGES, context()))


# Planted bugs


def stash_one_too_short(self: Pipeline, made: int, read: int) -> int:
    return max(SLOTS(self, made, read) - 1, min(SLOTS(self, made, read), 1))


def stale_sums(self: PipelinedLoop, *args: Any) -> None:
    """The sums that the flush adds to are not those that it leaves."""
    emit, _, now = args
    before = dict(now)
    CYCLE(self, *args)
    if emit.before is self.loop:
        now.update((kept, value) for kept, value in before.items() if kept.kind == "carried")


def added_twice(self: Outline, *args: Any) -> FuncOp:
    """Each sum over micro-batches adds what it adds twice."""
    for op in [*self.block.ops]:
        if isinstance(op, nn.AddOp) and op.operands[0].owner is self.block and is_float(op.result):
            again = nn.AddOp(op.results[0], op.operands[1])
            self.block.insert_op_after(again, op)
            self.returned = [again.results[0] if v is op.results[0] else v for v in self.returned]
    return FINISH(self, *args)


SLOTS, CYCLE, FINISH = Pipeline.slots, PipelinedLoop._cycle, Outline.finish

BUGS = {
    "a stash one too short": (Pipeline, "slots", stash_one_too_short),
    "a stale sum of gradients": (PipelinedLoop, "_cycle", stale_sums),
    "a gradient added twice": (Outline, "finish", added_twice),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch):
    owner, name, wrong = BUGS[bug]
    monkeypatch.setattr(owner, name, wrong)
    assert any(is_wrong(seed) for seed in range(PROGRAMS))


def is_wrong(seed: int) -> bool:
    module, inputs = staged_loop(seed)
    return not same_bits(module, pipelined(module), inputs)
