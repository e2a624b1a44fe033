from collections import Counter

import numpy as np
import pytest
from some_tensors import context, counting, module_of
from training import training_step

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.dialects.exchange import VariableOp
from abele.ir.errors import InputError
from abele.ir.instruments.record_ir import UNREPORTED, RecordIR
from abele.ir.pass_manager import PassManager
from abele.ir.provenance import origin
from abele.ir.rewriting import limited
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.fuse_chains import FuseChains
from abele.passes.recompute import COMPUTE, LAY_OUT, Recompute
from abele.tools.driver.compile import compile_model
from abele.tools.testing import check_pipeline

W = counting((4,))
T = "tensor<4xf32>"


def again(text: str, *nodes: str) -> ModuleOp:
    ctx = context()
    module = module_of(text, ctx, w=W)
    Recompute(nodes).apply(ctx, module)
    verify(module)
    return module


def check(before: str, after: str, *nodes: str) -> None:
    got = print_module(again(before, *nodes), locations=False)
    assert got == print_module(module_of(after, context(), w=W), locations=False)


def main(body: str) -> str:
    """A program of one tensor of four."""
    return f"func.func @main(%x: {T}) -> {T} {{\n{body}\n}}"


def exp(result: str, operand: str, name: str = "") -> str:
    return f'{result} = nn.exp {operand} : ({T}) -> {T} loc("{name or result[1:]}")'


def add(result: str, a: str, b: str) -> str:
    return f'{result} = nn.add {a}, {b} : ({T}, {T}) -> {T} loc("{result[1:]}")'


def lines(*body: str) -> str:
    return main("\n".join(body))


CHAIN = (exp("%a", "%x"), exp("%b", "%a"), exp("%c", "%b"), exp("%d", "%c"))
"""Four operations, each on what the one before it gives."""

ANEW = f"%0 = nn.reshape %x to [4] : ({T}) -> {T}"
"""%x, to be laid out anew."""


def test_a_waiting_value_is_recomputed_before_its_late_readers():
    late = (add("%e", "%d", "{a}"), add("%f", "%e", "{a}"), f"func.return %f : {T}")
    before = [each.format(a="%a") for each in late]
    after = [each.format(a="%a_1") for each in late]
    check(lines(*CHAIN, *before), lines(*CHAIN, ANEW, exp("%a_1", "%0"), *after), "a")


def test_a_value_does_not_wait_if_nothing_is_computed_between_its_readers():
    text = lines(*CHAIN[:2], add("%c", "%b", "%a"), f"func.return %c : {T}")
    check(text, text, "*")


def test_only_named_operations_are_recomputed():
    late = (add("%e", "%d", "%a"), add("%f", "%e", "%b"), f"func.return %f : {T}")
    found = again(lines(*CHAIN, *late), "b")
    made = Counter(origin(op) for op in found.walk() if isinstance(op, nn.ExpOp))
    assert made == {"a": 1, "b": 2, "c": 1, "d": 1}


def test_a_named_operand_that_would_wait_for_a_copy_is_copied_with_it():
    # %b reads %a, which is read again only after that.
    late = (exp("%e", "%d"), add("%f", "%e", "{b}"), add("%g", "%f", "{a}"))
    end = f"func.return %g : {T}"
    before = lines(*CHAIN, *(each.format(a="%a", b="%b") for each in late), end)
    first, *rest = (each.format(a="%a_1", b="%b_1") for each in late)
    segment = (ANEW, exp("%a_1", "%0"), exp("%b_1", "%a_1"))
    check(before, lines(*CHAIN, first, *segment, *rest, end), "a", "b")


def test_copies_at_one_place_share_their_operands():
    # %c and %d both read %b.
    head = (exp("%a", "%x"), exp("%b", "%a"), exp("%c", "%b"), exp("%d", "%b"))
    read = (add("%e", "%c", "%d"), exp("%f", "%e"), exp("%g", "%f"))
    end = (add("%i", "{h}", "%g"), f"func.return %i : {T}")
    before = lines(*head, *read, add("%h", "%c", "%d"), *(each.format(h="%h") for each in end))
    found = again(before, "b", "c", "d")
    made = Counter(origin(op) for op in found.walk() if isinstance(op, nn.ExpOp))
    assert made == {"a": 1, "b": 2, "c": 2, "d": 2, "f": 1, "g": 1}


def test_an_operand_that_a_copy_reads_early_is_copied_although_it_waits_longer_later():
    more = [exp(f"%u{i}", f"%u{i - 1}") for i in range(2, 20)]
    text = lines(
        exp("%a", "%x"),
        exp("%b", "%a"),
        exp("%c", "%b"),
        exp("%d", "%c"),
        exp("%e", "%d"),
        add("%u1", "%e", "%b"),
        *more,
        add("%z", "%u19", "%a"),
        f"func.return %z : {T}",
    )
    found = again(text, "a", "b")
    made = Counter(origin(op) for op in found.walk() if isinstance(op, nn.ExpOp))
    # %a would wait for the copy of %b else: it is computed for that, and again for %z.
    assert (made["a"], made["b"]) == (3, 2)


def test_a_value_that_every_layer_reads_is_computed_in_each():
    body = [exp("%m", "%x"), exp("%l0", "%x")]
    for i in range(1, 5):
        body += [exp(f"%p{i}", f"%l{i - 1}"), exp(f"%q{i}", f"%p{i}"), exp(f"%r{i}", f"%q{i}")]
        body += [add(f"%l{i}", f"%r{i}", "%m")]
    found = again(lines(*body, f"func.return %l4 : {T}"), "m")
    assert sum(origin(op) == "m" and isinstance(op, nn.ExpOp) for op in found.walk()) == 4


def test_a_reshape_is_computed_again_with_what_it_reshapes():
    wide = "tensor<2x2xf32>"
    shape = f"%r = nn.reshape %a to [2, 2] : ({T}) -> {wide}"
    tail = (
        f"%s = nn.reshape %d to [2, 2] : ({T}) -> {wide}",
        f"%e = nn.add %s, %r : ({wide}, {wide}) -> {wide}",
        f"%f = nn.reshape %e to [4] : ({wide}) -> {T}",
        f"func.return %f : {T}",
    )
    first, *rest = CHAIN
    before = lines(first, shape, *rest, *tail)
    again_ = (ANEW, exp("%a_1", "%0"), shape.replace("%a", "%a_1"))
    check(before, lines(first, *rest, tail[0], *again_, *tail[1:]), "a")


def test_a_reshape_that_early_readers_have_too_stays_for_them():
    shape = f"%r = nn.reshape %a to [4] : ({T}) -> {T}"
    text = lines(
        CHAIN[0],
        shape,
        exp("%b", "%r"),
        *CHAIN[2:],
        add("%e", "%d", "%r"),
        add("%f", "%e", "%r"),
        f"func.return %f : {T}",
    )
    found = again(text, "a")
    reshapes = [op for op in found.walk() if isinstance(op, nn.ReshapeOp)]
    # One of %x, one early, one late, which both late readers share.
    assert len(reshapes) == 3


def test_a_value_read_in_a_loop_is_recomputed_before_the_loop():
    loop = f"""%e = control.repeat 3 (%d) : ({T}) -> ({T}) {{{{
    ^bb0(%y: {T}):
      %z = nn.add %y, {{a}} : ({T}, {T}) -> {T}
      control.yield %z : {T}
    }}}}
    func.return %e : {T}"""
    check(
        lines(*CHAIN, loop.format(a="%a")),
        lines(*CHAIN, ANEW, exp("%a_1", "%0"), loop.format(a="%a_1")),
        "a",
    )


def test_a_value_that_waits_in_a_loop_or_a_branch_is_recomputed_there():
    text = f"""
    func.func @main(%x: {T}, %p: tensor<i1>) -> {T} {{
      %0 = control.repeat 3 (%x) : ({T}) -> ({T}) {{
      ^bb0(%y: {T}):
        %a = nn.exp %y : ({T}) -> {T}
        %b = nn.exp %a : ({T}) -> {T}
        %c = nn.exp %b : ({T}) -> {T}
        %d = nn.add %c, %a : ({T}, {T}) -> {T}
        control.yield %d : {T}
      }}
      %1 = control.if %p : tensor<i1> -> ({T}) {{
        %a = nn.neg %0 : ({T}) -> {T}
        %b = nn.exp %a : ({T}) -> {T}
        %c = nn.exp %b : ({T}) -> {T}
        %d = nn.add %c, %a : ({T}, {T}) -> {T}
        control.yield %d : {T}
      }} else {{
        control.yield %x : {T}
      }}
      func.return %1 : {T}
    }}"""
    found = again(text, "*")
    count = Counter(op.name for op in found.walk())
    assert (count["nn.exp"], count["nn.neg"]) == (4 + 2, 2)


def test_a_value_waits_during_a_call_and_calls_are_never_repeated():
    text = f"""
    func.func @f(%y: {T}) -> {T} {{
      %0 = nn.exp %y : ({T}) -> {T}
      func.return %0 : {T}
    }}
    func.func @main(%x: {T}) -> {T} {{
      %a = nn.neg %x : ({T}) -> {T} loc("a")
      %b = func.call @f(%a) : ({T}) -> {T} loc("call")
      %c = func.call @f(%b) : ({T}) -> {T}
      %d = func.call @f(%c) : ({T}) -> {T}
      %e = nn.add %d, %a : ({T}, {T}) -> {T}
      %f = nn.add %e, %b : ({T}, {T}) -> {T}
      func.return %f : {T}
    }}"""
    found = again(text, "*")
    count = Counter(op.name for op in found.walk())
    assert (count["func.call"], count["nn.neg"]) == (3, 2)
    with pytest.raises(InputError, match="option 'nodes': call: func.call cannot be computed"):
        again(text, "call")


def test_an_operation_apart_is_copied_right_before_each_reader():
    body = (exp("%a", "%x"), exp("%b", "%a", "r1"), exp("%c", "%b"), exp("%d", "{a}", "r2"))
    end = (add("%e", "%c", "%d"), f"func.return %e : {T}")
    ctx = context()
    module = module_of(lines(*(each.format(a="%a") for each in body), *end), ctx, w=W)
    Recompute(apart=("a",)).apply(ctx, module)
    verify(module)
    after = lines(*body[:3], exp("%a_1", "%x", "a"), body[3].format(a="%a_1"), *end)
    got = print_module(module, locations=False)
    assert got == print_module(module_of(after, context(), w=W), locations=False)


def test_operands_that_waited_for_a_named_reader_are_laid_out_anew_before_it():
    late = (add("%e", "{a}", "%d"), exp("%f", "%e"), exp("%g", "%f"), add("%h", "%a", "%g"))
    end = f"func.return %h : {T}"
    ctx = context()
    module = module_of(lines(*CHAIN, *(each.format(a="%a") for each in late), end), ctx, w=W)
    Recompute(anew=("e",)).apply(ctx, module)
    verify(module)
    # %h reads %a after a long wait too, but it is not named.
    anew = f"%0 = nn.reshape %a to [4] : ({T}) -> {T}"
    after = lines(*CHAIN, anew, *(each.format(a="%0") for each in late), end)
    got = print_module(module, locations=False)
    assert got == print_module(module_of(after, context(), w=W), locations=False)


def test_what_is_computed_apart_is_fused_with_its_readers():
    body = (exp("%a", "%x"), exp("%b", "%a"), exp("%c", "%a"), add("%d", "%b", "%c"))
    ctx = context()
    module = module_of(lines(*body, f"func.return %d : {T}"), ctx, w=W)
    Recompute(apart=("a",)).apply(ctx, module)
    FuseChains().apply(ctx, module)
    (main,) = module.body.block.ops
    groups = nn.groups_of(main.regions[0].block)
    together = [origin(op) for group in groups for op in group.members]
    assert together.count("a") == 2


def test_a_number_names_one_of_several_operations_of_a_name():
    late = (add("%e", "%d", "%a"), add("%f", "%e", "%b"), f"func.return %f : {T}")
    both = (exp("%a", "%x", "n"), exp("%b", "%a", "n"), *CHAIN[2:])
    for number, name in (1, "%a_1"), (2, "%b_1"):
        found = again(lines(*both, *late), f"n:{number}")
        assert f"{name} = nn.exp" in print_module(found, locations=False)
        assert sum(isinstance(op, nn.ExpOp) for op in found.walk()) == 5
    with pytest.raises(InputError, match="n:3: no operator of that name"):
        again(lines(*both, *late), "n:3")


def test_an_unknown_schedule_is_refused():
    with pytest.raises(InputError, match="option 'schedule': 'root'; need sqrt"):
        module = module_of(lines(*CHAIN, f"func.return %d : {T}"), context(), w=W)
        Recompute(schedule="root").apply(context(), module)


STATEFUL = f"""
nn.state @w : {T} = {{w}}
func.func @main(%x: {T}) -> {T} {{
  %w = nn.load @w : {T} loc("load")
  %c = nn.constant {{w}} : {T} loc("constant")
  %a = nn.add %w, %c : ({T}, {T}) -> {T} loc("a")
  %b = nn.exp %a : ({T}) -> {T}
  nn.store %b, @w : {T}
  %d = nn.exp %b : ({T}) -> {T}
  %e = nn.exp %d : ({T}) -> {T}
  %f = nn.add %e, %a : ({T}, {T}) -> {T}
  func.return %f : {T}
}}"""


def test_a_copy_after_a_store_still_reads_the_old_value_of_the_state():
    before = module_of(STATEFUL, context(), w=W / 8)
    x = {"arg0": W}
    expected = run_reference(before, x)
    after = module_of(STATEFUL, context(), w=W / 8)
    Recompute(("a",)).apply(context(), after)
    assert print_module(after) != print_module(before)
    found = run_reference(after, x)
    np.testing.assert_array_equal(found.outputs["out0"], expected.outputs["out0"])
    np.testing.assert_array_equal(found.state["w"], expected.state["w"])


def test_loads_and_constants_are_never_recomputed():
    count = Counter(op.name for op in again(STATEFUL, "*").walk())
    assert (count["nn.load"], count["nn.constant"]) == (1, 1)


WAITS = lines(*CHAIN, add("%e", "%d", "%a"), f"func.return %e : {T}")


def test_a_copy_keeps_plan_and_location():
    planned = WAITS.replace("%a = nn.exp %x", "%a = nn.exp %x {plan = #abele.plan<split [2]>}")
    found = [op for op in again(planned, "a").walk() if isinstance(op, nn.ExpOp)]
    found = [op for op in found if origin(op) == "a"]
    assert len(found) == 2
    assert len({op.attributes["plan"] for op in found}) == 1
    assert found[0].location == found[1].location


def test_names_are_those_that_constraints_know():
    fused = WAITS.replace('loc("a")', 'loc(fused["conv1", "relu1"])')
    for name in ("conv1", "relu1", "conv1+relu1", "co*"):
        assert print_module(again(fused, name)) == print_module(again(fused, "conv1"))
        assert sum(isinstance(op, nn.ExpOp) for op in again(fused, name).walk()) == 5


def test_all_operations_are_recomputed_if_no_name_is_given():
    ctx = context()
    module = module_of(WAITS, ctx)
    Recompute().apply(ctx, module)
    assert print_module(module) == print_module(again(WAITS, "*"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other", "option 'nodes': other: no operator of that name; there are a, b, c, d, e$"),
        ("z*", r"option 'nodes': z\*: no operator of that name"),
        ("x", "x: became x/1, x/2; name one of them, or all as 'x/\\*'"),
        ("constant", "constant: nn.constant cannot be computed again"),
    ],
)
def test_a_name_without_an_operation_is_refused(name: str, message: str):
    text = {
        "x": WAITS.replace('loc("a")', 'loc("x/1")').replace('loc("b")', 'loc("x/2")'),
        "constant": STATEFUL,
    }.get(name, WAITS)
    with pytest.raises(InputError, match=message):
        again(text, name)


def test_naming_all_operations_of_an_empty_program_changes_nothing():
    text = main(f"func.return %x : {T}")
    check(text, text, "*")


def test_every_rewrite_is_reported_and_computed_once_more_nothing_changes():
    module, record = module_of(WAITS, context()), RecordIR()
    PassManager((Recompute(("a",)), Recompute(("a",))), (record,)).run(context(), module)
    changes = [[each.source for each in stage.changes] for stage in record.stages]
    assert changes == [[], [COMPUTE, LAY_OUT], []]
    assert UNREPORTED not in changes[1]


def test_limited_rewrites_leave_the_rest():
    module = module_of(WAITS, context())
    with limited(1):
        Recompute(("a",)).apply(context(), module)
    verify(module)
    names = Counter(op.name for op in module.walk())
    assert (names["nn.exp"], names["nn.reshape"]) == (5, 0)


def test_recompute_runs_between_nn_and_partition():
    report = check_pipeline("nn,recompute,partition,tile,exchange", examples=6, seed=0)
    assert report.changed


def test_later_passes_do_not_merge_the_copies_or_the_relayouts(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text(training_step(4, 8, 16))
    whole = "nn,recompute{nodes=conv2},partition,tile,exchange"
    made = [compile_model(path, "tiny:8", passes=each) for each in ("", whole)]
    counts = [
        Counter(origin(op) for op in exe.module_at("exchange").walk() if isinstance(op, VariableOp))
        for exe in made
    ]
    node = "conv2+tanh2"
    assert [count[node] for count in counts] == [1, 2]
    # Its weights, for both, and for the gradient.
    assert [count[f"{node}/in1"] for count in counts] == [1, 2]
    assert [count["igrad2+back1/in1"] for count in counts] == [0, 1]
