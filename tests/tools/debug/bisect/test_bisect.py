"""Ten and more bugs, planted in passes of every level, and what bisect says about each."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import users_dialects
from some_models import SMALL, model, node, random, relu
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from abele.dialects import exchange, nn, partition, tile
from abele.dialects.abele import BodyAttr
from abele.dialects.levels import EXCHANGE, NN
from abele.dialects.steps import Copy, Vertices
from abele.dialects.structured import Body
from abele.dialects.variable import references
from abele.ir.errors import DoesNotFit, InputError
from abele.ir.pass_manager import parse_pipeline
from abele.ir.provenance import LocatingWalker, origin
from abele.passes import convert_stablehlo_to_nn
from abele.passes.pipelines import PASSES, pipeline
from abele.passes.stablehlo_to_nn.conversion import ToNn
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.debug.bisect.verdict import Verdict
from abele.tools.driver.arrays import write_npz
from abele.tools.driver.request import Request

TARGET = "tiny:8"

Damage = Callable[[ModuleOp], None]


def way_down() -> list[ModulePass]:
    """The passes down to the machine, without those that make one operation of several."""
    passes = parse_pipeline(pipeline(NN, EXCHANGE, TARGET), PASSES)
    return [each for each in passes if each.name not in ("canonicalize", "fuse-chains")]


def damaged(name: str, damage: Damage, before: Damage = lambda _: None) -> list[ModulePass]:
    """The way down, with one pass doing what it does and then something wrong."""
    passes = way_down()
    (row,) = (i for i, each in enumerate(passes) if each.name == name)
    real = passes[row]

    @dataclass(frozen=True)
    class Damaged(ModulePass):
        def apply(self, ctx: Context, op: ModuleOp) -> None:
            before(op)
            real.apply(ctx, op)
            damage(op)

    Damaged.name = name
    passes[row] = Damaged()
    return passes


def with_pattern(pattern: RewritePattern) -> list[ModulePass]:
    """The way down, with a pass of one pattern before all others."""

    @dataclass(frozen=True)
    class Simplify(ModulePass):
        name = "simplify"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            LocatingWalker(pattern, apply_recursively=False).rewrite_module(op)

    return [Simplify(), *way_down()]


def first(module: ModuleOp, kind: type[Operation], node: str) -> Operation:
    return next(op for op in module.walk() if isinstance(op, kind) and origin(op) == node)


# nn: patterns


class ReverseNegatedDifference(RewritePattern):
    """neg(sub(a, b)) is sub(b, a); this forgets to turn the operands round."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.NegOp, rewriter: PatternRewriter, /) -> None:
        difference = op.operand.owner
        if isinstance(difference, nn.SubOp):
            rewriter.replace(op, nn.SubOp(*difference.operands))


class AbsoluteOfNegated(RewritePattern):
    """abs(neg(a)) is abs(a); this takes the neg away from its other users too."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.AbsOp, rewriter: PatternRewriter, /) -> None:
        negated = op.operand.owner
        if isinstance(negated, nn.NegOp):
            rewriter.replace(negated, [], [negated.operand])


class RectifiedClip(RewritePattern):
    """relu(clip(a, low, high)) is clip(a, 0, high); this takes the wrong bound."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.ReluOp, rewriter: PatternRewriter, /) -> None:
        clip = op.operand.owner
        if isinstance(clip, nn.ClipOp):
            rewriter.replace(op, nn.ClipOp(clip.operand, 0.0, -clip.parameters[0]))


class ScaleTwice(RewritePattern):
    """scale(scale(a, c), d) is scale(a, c * d); this adds the factors."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: nn.ScaleOp, rewriter: PatternRewriter, /) -> None:
        inner = op.operand.owner
        if isinstance(inner, nn.ScaleOp):
            factor = inner.parameters[0] + op.parameters[0]
            rewriter.replace(op, nn.ScaleOp(inner.operand, factor))


TENSOR = "tensor<3x5xf32>"


def network(body: str, results: str) -> str:
    """A module of nn from lines such as 'b = neg(a)'; every value is called as its node."""
    lines: list[str] = []
    for line in body.strip().splitlines():
        name, kind, operands, more = re.fullmatch(r"\s*(\w+) = (\w+)\(([^)]*)\)(.*)", line).groups()
        values = ", ".join(f"%{each.strip()}" for each in operands.split(","))
        types = ", ".join(TENSOR for _ in operands.split(","))
        lines.append(f'%{name} = nn.{kind} {values}{more} : ({types}) -> {TENSOR} loc("{name}")')
    values = ", ".join(f"%{name}" for name in results.split())
    types = ", ".join(TENSOR for _ in results.split())
    text = "\n".join(lines)
    return (
        f"func.func @main(%x: {TENSOR}, %y: {TENSOR}) -> ({types}) {{\n{text}\n"
        f"func.return {values} : {types}\n}}"
    )


DIFFERENCES = network("same = sub(x, x)\na = neg(same)\nother = sub(x, y)\nb = neg(other)", "a b")
NEGATED = network("n = neg(x)\na = abs(n)\nm = neg(y)\nb = abs(m)\nc = add(m, x)", "a b c")
CLIPPED = network(
    "p = clip(x) to -1.0, 1.0\na = relu(p)\nq = clip(y) to -1.0, 0.5\nb = relu(q)", "a b"
)
SCALED = network(
    "p = scale(x) by 2.0\na = scale(p) by 2.0\nq = scale(y) by 2.0\nb = scale(q) by 3.0", "a b"
)
SUBTRACTED = network("a = neg(x)\nb = abs(y)\nc = sub(a, b)\nd = add(c, x)", "d")


def convolved() -> onnx.ModelProto:
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("Transpose", "r", "t", perm=[0, 1, 3, 2]),
        node("Concat", "t c", "j", axis=1),
        node("MaxPool", "j", "y", kernel_shape=[2, 2]),
    ]
    return model(nodes, {"x": [1, 2, 6, 6]}, ["y"], {"w": random((2, 2, 3, 3), 1)})


# partition, tile, exchange: damage


def shift_padding(module: ModuleOp) -> None:
    (conv,) = (op for op in module.walk() if isinstance(op, nn.ConvOp))
    plan = conv.attributes["plan"]
    new = nn.ConvOp(*conv.operands, pad_low=[0, 1], pad_high=[2, 1])
    new.attributes["plan"] = plan
    new.location = conv.location
    replace(conv, new)


def replace(old: Operation, new: Operation) -> None:
    block = old.parent
    block.insert_op_before(new, old)
    for before, after in zip(old.results, new.results, strict=True):
        before.replace_all_uses_with(after)
    old.detach()
    old.erase()


def forget_transposition(module: ModuleOp) -> None:
    relayout = first(module, partition.RelayoutOp, "the_t")
    del relayout.properties["moves"]


def drop_copy(module: ModuleOp) -> None:
    copy = first(module, Copy, "the_c/in0")
    copy.detach()
    copy.erase()


def swap_copied(module: ModuleOp) -> None:
    copy = first(module, Copy, "the_j")
    copy.properties["reads"] = references(copy.sources[::-1])


def forget_superstep(module: ModuleOp) -> None:
    """Let a copy share the superstep of the vertices that make what it reads."""
    ops = [op for op in module.walk() if "superstep" in op.attributes]
    copy = first(module, Copy, "the_t")
    row = ops.index(copy)
    copy.attributes["superstep"] = ops[row - 1].attributes["superstep"]


def share_address(module: ModuleOp) -> None:
    """Lay the input of the transposition, which the concatenation reads later, over its result."""
    variables = {op.symbol: op for op in module.walk() if isinstance(op, tile.VariableOp)}
    variables["the_t"].attributes["address"] = variables["the_c"].attributes["address"]


def swap_read(module: ModuleOp) -> None:
    compute = first(module, Vertices, "c")
    compute.properties["reads"] = references(compute.sources[::-1])


def wrong_address(module: ModuleOp) -> None:
    variables = {op.symbol: op for op in module.walk() if isinstance(op, exchange.VariableOp)}
    variables["the_t"].properties["address"] = variables["the_c"].properties["address"]


@dataclass(frozen=True)
class Bug:
    """A planted bug, and what has to be said about it.

    value: the operation and its node. rewrite: the pattern and the number of its wrong rewrite.
    """

    program: str | Callable[[], onnx.ModelProto]
    passes: Callable[[], list[ModulePass]]
    blamed: str
    kind: str
    value: tuple[str, str]
    rewrite: tuple[str, int] | None = None
    variable: str = ""
    has_tile: bool = True


BUGS: dict[str, Bug] = {
    "operands of a sub not turned round": Bug(
        DIFFERENCES,
        lambda: with_pattern(ReverseNegatedDifference()),
        "simplify",
        "value",
        ("nn.sub", "b"),
        ("ReverseNegatedDifference", 2),
        has_tile=False,
    ),
    "another user forgotten": Bug(
        NEGATED,
        lambda: with_pattern(AbsoluteOfNegated()),
        "simplify",
        "value",
        ("nn.add", "c"),
        ("AbsoluteOfNegated", 2),
        has_tile=False,
    ),
    "wrong bound of a clip": Bug(
        CLIPPED,
        lambda: with_pattern(RectifiedClip()),
        "simplify",
        "value",
        ("nn.clip", "b"),
        ("RectifiedClip", 2),
        has_tile=False,
    ),
    "wrong constant folded": Bug(
        SCALED,
        lambda: with_pattern(ScaleTwice()),
        "simplify",
        "value",
        ("nn.scale", "b"),
        ("ScaleTwice", 2),
        has_tile=False,
    ),
    "halo off by one": Bug(
        convolved,
        lambda: damaged("convert-nn-to-partition", lambda _: None, shift_padding),
        "convert-nn-to-partition",
        "value",
        ("partition.compute", "the_c"),
    ),
    "layout not transposed": Bug(
        convolved,
        lambda: damaged("convert-nn-to-partition", forget_transposition),
        "convert-nn-to-partition",
        "value",
        ("partition.relayout", "the_t"),
    ),
    "copy dropped": Bug(
        convolved,
        lambda: damaged("convert-partition-to-tile", drop_copy),
        "convert-partition-to-tile",
        "value",
        ("tile.variable", "the_c/in0"),
        variable="the_c/in0",
    ),
    "sources of a copy swapped": Bug(
        convolved,
        lambda: damaged("convert-partition-to-tile", swap_copied),
        "convert-partition-to-tile",
        "value",
        ("tile.copy", "the_j"),
        variable="the_j",
    ),
    "superstep not ended": Bug(
        convolved,
        lambda: damaged("schedule-supersteps", forget_superstep),
        "schedule-supersteps",
        "fault",
        ("tile.copy", "the_t"),
        variable="the_r",
        has_tile=False,
    ),
    "one address for two": Bug(
        convolved,
        lambda: damaged("allocate", share_address),
        "allocate",
        "fault",
        ("exchange.move", "the_j"),
        variable="the_c",
    ),
    "operands of a vertex set swapped": Bug(
        SUBTRACTED,
        lambda: damaged("convert-tile-to-exchange", swap_read),
        "convert-tile-to-exchange",
        "value",
        ("exchange.compute", "c"),
        variable="c",
    ),
    "wrong address": Bug(
        convolved,
        lambda: damaged("convert-tile-to-exchange", wrong_address),
        "convert-tile-to-exchange",
        "fault",
        ("exchange.move", "the_j"),
        variable="the_c",
    ),
}


def found(bug: Bug, folder: Path) -> Verdict:
    if not isinstance(bug.program, str):
        return bisect(Request(bug.program(), TARGET), passes=bug.passes())
    path = folder / "net.mlir"
    path.write_text(bug.program)
    return bisect(Request(path, TARGET), passes=bug.passes())


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str, tmp_path: Path):
    bug = BUGS[name]
    verdict = found(bug, tmp_path)
    assert (verdict.name, verdict.kind) == (bug.blamed, bug.kind), verdict.text
    assert verdict.value is not None, verdict.text
    assert (verdict.value.op, verdict.value.node) == bug.value, verdict.text
    assert verdict.value.variable == bug.variable, verdict.text
    assert (verdict.value.tile is not None) == bug.has_tile, verdict.text
    if bug.rewrite is not None:
        assert verdict.rewrite is not None, verdict.text
        rewrite = verdict.rewrite
        assert (rewrite.source.name, rewrite.number) == bug.rewrite
        assert rewrite.searched


@pytest.mark.parametrize("wrong", range(1, 8))
def test_the_one_wrong_rewrite_of_many_is_found(wrong: int, tmp_path: Path):
    body = "\n".join(f"p{i} = relu(x)\nq{i} = neg(p{i})" for i in range(7))
    path = tmp_path / "net.mlir"
    path.write_text(network(body, " ".join(f"q{i}" for i in range(7))))

    class Clip(RewritePattern):
        @op_type_rewrite_pattern
        def match_and_rewrite(self, op: nn.ReluOp, rewriter: PatternRewriter, /) -> None:
            high = 0.1 if origin(op) == f"p{wrong - 1}" else 100.0
            rewriter.replace(op, nn.ClipOp(op.operand, 0.0, high))

    verdict = bisect(Request(path, TARGET), passes=with_pattern(Clip()))
    assert verdict.rewrite is not None
    assert verdict.rewrite.searched
    assert (verdict.rewrite.number, verdict.rewrite.of) == (wrong, 7)
    assert verdict.value is not None
    assert verdict.value.node == f"p{wrong - 1}"


UNNAMED = f"""
func.func @main(%x: {TENSOR}) -> {TENSOR} {{
  %0 = nn.square %x : ({TENSOR}) -> {TENSOR}
  %1 = nn.sqrt %0 : ({TENSOR}) -> {TENSOR}
  func.return %1 : {TENSOR}
}}"""


def with_rule(text: str, folder: Path, program: str = UNNAMED) -> Verdict:
    (folder / "net.mlir").write_text(program)
    (folder / "rules.rw").write_text(text)
    return bisect(Request(folder / "net.mlir", TARGET, passes="rules", load=[folder / "rules.rw"]))


def test_the_result_of_a_rule_is_compared_with_that_of_its_root(tmp_path: Path):
    rule = "rule root_of_square: nn.sqrt(nn.square(x)) => nn.scale(x) {factor = 1.0}"
    verdict = with_rule(rule, tmp_path)
    value = verdict.value
    assert value is not None, verdict.text
    assert value.node == "net.mlir:4:3"
    assert value.expected == -value.found
    assert value.found < 0


def test_a_step_that_a_rewrite_invents_is_not_blamed(tmp_path: Path):
    # The first step is far from the root's value, as it may be; the sum at the end is 1 too large.
    rule = (
        "rule shifted: nn.sqrt(nn.square(x))\n"
        "  => nn.add(nn.abs(x), nn.shift(nn.scale(x) {factor = 0.0}) {amount = 1.0})"
    )
    verdict = with_rule(rule, tmp_path)
    assert verdict.value is not None, verdict.text
    assert verdict.value.op == "nn.add"
    assert verdict.value.expected == pytest.approx(verdict.value.found - 1, abs=1e-5)


def test_values_that_change_in_each_iteration_are_not_reported_as_wrong(tmp_path: Path):
    path = tmp_path / "net.mlir"
    path.write_text(f"""
        func.func @main(%x: {TENSOR}) -> {TENSOR} {{
          %0 = control.repeat 3 (%x) : ({TENSOR}) -> ({TENSOR}) {{
          ^bb0(%a: {TENSOR}):
            %1 = nn.scale %a by 2.0 : ({TENSOR}) -> {TENSOR} loc("turn")
            control.yield %1 : {TENSOR}
          }}
          %2 = nn.relu %0 : ({TENSOR}) -> {TENSOR} loc("end")
          func.return %2 : {TENSOR} }}""")

    def negate_instead(module: ModuleOp) -> None:
        compute = first(module, partition.ComputeOp, "end")
        compute.properties["body"] = BodyAttr(Body("neg"))

    passes = damaged("convert-nn-to-partition", negate_instead)
    value = bisect(Request(path, TARGET), passes=passes).value
    assert value is not None
    assert value.node == "end"


@pytest.mark.parametrize("program", SMALL.values())
def test_nothing_is_wrong_with_abele(program: Callable[[], onnx.ModelProto]):
    verdict = bisect(Request(program(), TARGET))
    assert verdict.passed, verdict.text
    assert verdict.worst < 1e-5


def test_a_pass_that_raises_is_named_with_the_rewrite_it_was_in():
    class Raise(RewritePattern):
        @op_type_rewrite_pattern
        def match_and_rewrite(self, op: nn.ReluOp, rewriter: PatternRewriter, /) -> None:
            rewriter.insert(nn.NegOp(op.operand))
            raise RuntimeError("half way")

    verdict = bisect(Request(relu(), TARGET), passes=with_pattern(Raise()))
    assert (verdict.name, verdict.kind) == ("simplify", "crash")
    assert "half way" in verdict.problem
    assert verdict.rewrite is not None
    assert verdict.rewrite.node == "the_y"


def test_a_module_that_does_not_verify_is_named_with_the_operation():
    def forget_type(module: ModuleOp) -> None:
        copied = first(module, partition.ComputeOp, "the_c")
        copied.properties["plan"] = first(module, partition.ComputeOp, "the_r").properties["plan"]

    passes = damaged("convert-nn-to-partition", forget_type)
    verdict = bisect(Request(convolved(), TARGET), passes=passes)
    assert (verdict.name, verdict.kind) == ("convert-nn-to-partition", "invalid")
    assert verdict.value is not None
    assert verdict.value.node == "the_c"


def test_a_pass_before_the_pass_that_raises_may_be_the_wrong_one():
    @dataclass(frozen=True)
    class Crash(ModulePass):
        name = "crash"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            raise RuntimeError("too late")

    damaged_way = damaged("convert-nn-to-partition", forget_transposition)
    names = [each.name for each in damaged_way]
    passes = [*damaged_way[: names.index("convert-nn-to-partition") + 1], Crash()]
    assert bisect(Request(convolved(), TARGET), passes=passes).name == "convert-nn-to-partition"


def test_a_bug_that_certain_inputs_show_is_found_with_them(tmp_path: Path):
    class ClipLate(RewritePattern):
        """Right for all values below 100."""

        @op_type_rewrite_pattern
        def match_and_rewrite(self, op: nn.ReluOp, rewriter: PatternRewriter, /) -> None:
            rewriter.replace(op, nn.ClipOp(op.operand, 0.0, 100.0))

    passes = with_pattern(ClipLate())
    assert bisect(Request(relu(), TARGET), passes=passes).passed
    large = {"x": np.full((2, 3), 200, np.float32)}
    path = tmp_path / "x.npz"
    write_npz(path, large)
    for inputs in (large, path):
        verdict = bisect(Request(relu(), TARGET), inputs=inputs, passes=passes)
        assert verdict.value is not None
        assert (verdict.value.found, verdict.value.expected) == (100.0, 200.0)


RECURRENT = Path(__file__).parents[4] / "examples" / "recurrent.mlir"


def test_nothing_is_wrong_with_loops_and_states():
    verdict = bisect(Request(RECURRENT, TARGET))
    assert verdict.passed, verdict.text


def test_a_state_left_wrong_is_found():
    @dataclass(frozen=True)
    class Forget(ModulePass):
        name = "forget"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            (store,) = (each for each in op.walk() if isinstance(each, nn.StoreOp))
            store.detach()
            store.erase()

    verdict = bisect(Request(RECURRENT, TARGET), passes=[Forget(), *way_down()])
    assert verdict.name == "forget"
    assert verdict.problem.startswith("state 'hidden' is off")


def test_a_program_on_two_levels_is_not_run_until_a_later_pass():
    @dataclass(frozen=True)
    class Half(ModulePass):
        """Convert the first variable of tile alone."""

        name = "half"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            for each in tuple(op.body.block.ops)[:1]:
                if isinstance(each, tile.VariableOp):
                    new = exchange.VariableOp.create(
                        properties={
                            **each.properties,
                            "address": each.attributes["address"],
                        }
                    )
                    new.location = each.location
                    replace(each, new)

    passes = damaged("convert-tile-to-exchange", swap_moved)
    verdict = bisect(Request(convolved(), TARGET), passes=[*passes[:-1], Half(), passes[-1]])
    assert verdict.not_run == ("half",)
    assert "or a pass since 'half'" in verdict.text


def swap_moved(module: ModuleOp) -> None:
    move = first(module, Copy, "the_j")
    move.properties["reads"] = references(move.sources[::-1])


def test_input_errors_are_raised_not_reported(tmp_path: Path):
    with pytest.raises(DoesNotFit):
        wide = model(
            [node("Mul", "x w", "y")], {"x": [1, 1]}, ["y"], {"w": random((1, 1 << 17), 1)}
        )
        bisect(Request(wide, "tiny:4"))
    with pytest.raises(InputError, match="no pass 'nonsense'"):
        bisect(Request(relu(), TARGET, passes="nonsense"))
    with pytest.raises(InputError, match="compiled already"):
        bisect(Request(tmp_path / "x.abele", TARGET))
    with pytest.raises(InputError, match="no input 'z'"):
        bisect(Request(relu(), TARGET), inputs={"z": np.zeros(1)})


SPOIL = """
from xdsl.passes import ModulePass
from abele.dialects import nn


class Spoil(ModulePass):
    name = "spoil"

    def apply(self, ctx, op):
        for each in op.walk():
            if isinstance(each, nn.AddOp):
                new = nn.MulOp(*each.operands)
                each.parent.insert_op_before(new, each)
                each.results[0].replace_all_uses_with(new.results[0])
                each.detach()
                each.erase()
"""


def test_bisection_begins_after_the_pass_that_lowers_a_users_operations(tmp_path):
    with users_dialects.written(tmp_path) as (program, load):
        verdict = bisect(Request(program, TARGET, passes=users_dialects.PASSES, load=load))
        assert verdict.passed
        assert verdict.after == "to-nn"
        spoil = tmp_path / "spoil.py"
        spoil.write_text(SPOIL)
        spoiled = users_dialects.PASSES.replace("to-nn,", "to-nn,spoil,")
        verdict = bisect(Request(program, TARGET, passes=spoiled, load=[*load, spoil]))
        assert (verdict.name, verdict.kind, verdict.after) == ("spoil", "value", "to-nn")


def test_a_pass_that_fails_before_the_program_can_run_is_blamed(tmp_path):
    with users_dialects.written(tmp_path) as (program, load):
        crash = tmp_path / "crash.py"
        crash.write_text(SPOIL.split("        for")[0] + "        raise TypeError('broken')\n")
        verdict = bisect(Request(program, TARGET, passes="spoil,to-nn,nn", load=[*load, crash]))
        assert re.fullmatch(r"TypeError: broken \(crash\.py:\d+, in apply\)", verdict.problem)
        assert (verdict.name, verdict.kind) == ("spoil", "crash")


def test_a_program_that_no_pass_makes_runnable_is_refused_with_the_rule_that_would(tmp_path):
    with users_dialects.written(tmp_path) as (program, load):
        with pytest.raises(InputError, match="the pipeline lacks to-nn, which has a rule for it"):
            bisect(Request(program, TARGET, load=load))


OF_STABLEHLO = """
builtin.module {
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        loc("model.py":3:1)
    %1 = "stablehlo.subtract"(%0, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        loc("model.py":4:1)
    %2 = "stablehlo.tanh"(%1) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":5:1)
    func.return %2 : tensor<4xf32>
  }
}
"""


def test_a_program_of_stablehlo_is_compared_before_it_is_led_to_nn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def reversed_difference(op: Any, new: ToNn) -> list[SSAValue]:
        lhs, rhs = new.operands(op)
        return [new.add(nn.SubOp(rhs, lhs))]

    path = tmp_path / "net.mlir"
    path.write_text(OF_STABLEHLO)
    to_nn = Request(path, TARGET, passes="nn")
    assert bisect(to_nn).passed
    planted = {**convert_stablehlo_to_nn.TABLE, "stablehlo.subtract": reversed_difference}
    monkeypatch.setattr(convert_stablehlo_to_nn, "TABLE", planted)
    verdict = bisect(to_nn)
    assert (verdict.name, verdict.kind) == ("convert-stablehlo-to-nn", "value"), verdict.text
    assert verdict.value is not None
    assert (verdict.value.op, verdict.value.node) == ("nn.sub", "subtract")
    assert '"subtract" (model.py:4:1): element' in verdict.text
