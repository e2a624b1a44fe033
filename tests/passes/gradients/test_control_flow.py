"""Gradients through loops, branches and calls."""

from random import Random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp

from abele.backends.reference import run_reference
from abele.dialects import control, nn
from abele.dialects.levels import NN as NN_LEVEL
from abele.ir.errors import InputError
from abele.ir.text import parse_module
from abele.ir.verify import verify
from abele.passes.differentiate import Differentiate
from abele.tools.driver.context import new_context

Arrays = dict[str, np.ndarray]

KIND = "tensor<3xf64>"
PREDICATE = "tensor<i1>"
TAKES = f"%x: {KIND}, %w: {KIND}, %c: {PREDICATE}, %d: {PREDICATE}"


class Programs:
    """Writes programs of smooth functions in loops, branches and calls, at random."""

    def __init__(self, seed: int):
        self.random, self.values, self.functions = Random(seed), 0, []

    def program(self) -> str:
        """A program with two functions, which @main calls."""
        text = [self._function("f0", 1, 4)]
        self.functions.append("f0")
        text.append(self._function("f1", 1, 4))
        self.functions.append("f1")
        return "\n".join([*text, self._function("main", 2, 7)])

    def _function(self, name: str, depth: int, count: int) -> str:
        lines, pool = self._body(["%x", "%w"], depth, count)
        body = "\n".join(lines)
        return (
            f"func.func @{name}({TAKES}) -> {KIND} {{\n{body}\nfunc.return {pool[-1]} : {KIND}\n}}"
        )

    def _name(self) -> str:
        self.values += 1
        return f"%v{self.values}"

    def _body(self, given: list[str], depth: int, count: int) -> tuple[list[str], list[str]]:
        """Lines, and all values that the last one of them could read."""
        lines, pool = [], [*given]
        kinds = [self._unary, self._binary, self._binary]
        kinds += [self._loop, self._branch, self._call] if depth else []
        for _ in range(count):
            line, made = self.random.choice(kinds)(pool, depth)
            lines.append(line)
            pool += made
        return lines, pool

    def _unary(self, pool: list[str], depth: int) -> tuple[str, list[str]]:
        name, op = self._name(), self.random.choice(["tanh", "sigmoid", "square", "sin"])
        return f"{name} = nn.{op} {self.random.choice(pool)} : ({KIND}) -> {KIND}", [name]

    def _binary(self, pool: list[str], depth: int) -> tuple[str, list[str]]:
        name, op = self._name(), self.random.choice(["add", "mul", "sub"])
        a, b = self.random.choices(pool, k=2)
        return f"{name} = nn.{op} {a}, {b} : ({KIND}, {KIND}) -> {KIND}", [name]

    def _loop(self, pool: list[str], depth: int) -> tuple[str, list[str]]:
        count = self.random.randint(1, 3)
        initial = self.random.choices(pool, k=count)
        arguments, results = ([self._name() for _ in range(count)] for _ in range(2))
        lines, inside = self._body(pool + 2 * arguments, depth - 1, 3)
        yielded = self.random.choices(inside[-4:] + arguments, k=count)
        types, iterations = ", ".join([KIND] * count), self.random.choice([0, 1, 2, 3])
        takes = [f"{each}: {KIND}" for each in arguments]
        if self.random.random() < 0.5:
            takes.append(f"{self._name()}: tensor<i32>")
        body = "\n".join([*lines, f"control.yield {', '.join(yielded)} : {types}"])
        return (
            f"{', '.join(results)} = control.repeat {iterations} ({', '.join(initial)}) : "
            f"({types}) -> ({types}) {{\n^bb0({', '.join(takes)}):\n{body}\n}}",
            results,
        )

    def _branch(self, pool: list[str], depth: int) -> tuple[str, list[str]]:
        count = self.random.randint(1, 2)
        results, types = [self._name() for _ in range(count)], ", ".join([KIND] * count)
        sides = []
        for _ in range(2):
            lines, inside = self._body(pool, depth - 1, 2)
            yielded = self.random.choices(inside[-3:] + pool, k=count)
            sides.append("\n".join([*lines, f"control.yield {', '.join(yielded)} : {types}"]))
        return (
            f"{', '.join(results)} = control.if {self.random.choice(['%c', '%d'])} : {PREDICATE} "
            f"-> ({types}) {{\n{sides[0]}\n}} else {{\n{sides[1]}\n}}",
            results,
        )

    def _call(self, pool: list[str], depth: int) -> tuple[str, list[str]]:
        if not self.functions:
            return self._unary(pool, depth)
        name, callee = self._name(), self.random.choice(self.functions)
        a, b = self.random.choices(pool, k=2)
        types = f"({KIND}, {KIND}, {PREDICATE}, {PREDICATE}) -> {KIND}"
        return f"{name} = func.call @{callee}({a}, {b}, %c, %d) : {types}", [name]


def differentiated(text: str, **options) -> ModuleOp:
    module = parse_module(text, new_context())
    Differentiate(**options).apply(new_context(), module)
    verify(module, NN_LEVEL)
    return module


def check_gradient(text: str, inputs: Arrays, **options) -> None:
    """The gradient along one random direction is the difference along it."""
    plain, rng, step = parse_module(text, new_context()), np.random.default_rng(0), 1e-6
    outputs = run_reference(differentiated(text, **options), inputs).outputs
    ways = {name: rng.normal(size=a.shape) for name, a in inputs.items() if a.dtype == np.float64}
    ends = [
        run_reference(
            plain, inputs | {name: inputs[name] + sign * step * way for name, way in ways.items()}
        )
        .outputs["out0"]
        .sum()
        for sign in (1, -1)
    ]
    terms = np.concatenate([(outputs[f"grad.{name}"] * way).ravel() for name, way in ways.items()])
    size = np.abs(terms).sum() + abs(ends[0]) + 1
    assert abs(terms.sum() - (ends[0] - ends[1]) / (2 * step)) <= 2e-6 * size


@pytest.mark.parametrize("recompute", [False, True])
@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), c=st.booleans(), d=st.booleans())
def test_the_gradient_of_a_program_is_the_limit_of_differences(recompute, seed, c, d):
    rng = np.random.default_rng(seed)
    inputs = {f"arg{i}": rng.normal(size=3) / 2 for i in range(2)}
    inputs |= {"arg2": np.array(c), "arg3": np.array(d)}
    check_gradient(Programs(seed).program(), inputs, recompute=recompute)


TABLE = "tensor<5x3xf64>"
LOOP = f"""
func.func @main(%x: {KIND}, %w: {KIND}, %t: {TABLE}, %y: {TABLE}) -> {TABLE} {{
  %0, %1 = control.repeat 5 (%x, %y) : ({KIND}, {TABLE}) -> ({KIND}, {TABLE}) {{
  ^bb0(%s: {KIND}, %table: {TABLE}, %turn: tensor<i32>):
    %i = nn.reshape %turn to [1] : (tensor<i32>) -> tensor<1xi32>
    %2 = nn.gather %t, %i axis 0 : ({TABLE}, tensor<1xi32>) -> tensor<1x3xf64>
    %row = nn.reshape %2 to [3] : (tensor<1x3xf64>) -> {KIND}
    %3 = nn.mul %s, %w : ({KIND}, {KIND}) -> {KIND}
    %4 = nn.add %3, %row : ({KIND}, {KIND}) -> {KIND}
    %5 = nn.tanh %4 : ({KIND}) -> {KIND}
    %6 = nn.reshape %5 to [1, 3] : ({KIND}) -> tensor<1x3xf64>
    %j = nn.reshape %turn to [1, 1] : (tensor<i32>) -> tensor<1x1xi32>
    %7 = nn.update "last" %6, %j into %table axis 0
      : (tensor<1x3xf64>, tensor<1x1xi32>, {TABLE}) -> {TABLE}
    control.yield %5, %7 : {KIND}, {TABLE}
  }}
  %8 = nn.square %1 : ({TABLE}) -> {TABLE}
  func.return %8 : {TABLE}
}}"""
"""A recurrent layer: each iteration reads a row of a table, and writes one of another."""


def loops(text: str, **options) -> list[control.RepeatOp]:
    module = differentiated(text, **options)
    return [op for op in module.walk() if isinstance(op, control.RepeatOp)]


@pytest.mark.parametrize("recompute", [False, True])
def test_a_recurrent_layer_has_a_gradient(recompute: bool):
    rng = np.random.default_rng(0)
    shapes = [3, 3, (5, 3), (5, 3)]
    inputs = {f"arg{i}": rng.normal(size=shape) for i, shape in enumerate(shapes)}
    check_gradient(LOOP, inputs, recompute=recompute)


@pytest.mark.parametrize(("recompute", "kept"), [(False, 2), (True, 1)])
def test_a_loop_keeps_rows_and_no_table_of_tables(recompute: bool, kept: int):
    """The state and the result of tanh, or the state alone; the table is not read back."""
    forward, back = loops(LOOP, recompute=recompute)
    assert [nn.shape_of(v) for v in forward.outputs] == [(3,)] + (1 + kept) * [(5, 3)]
    assert sum(isinstance(op, nn.TanhOp) for op in back.body.walk()) == recompute


def test_a_gradient_of_a_table_that_iterations_read_costs_a_row_an_iteration():
    _, back = loops(LOOP)
    names = [op.name for op in back.body.block.ops]
    assert "nn.scatter" not in names
    (summed,) = (
        op
        for op in back.body.block.ops
        if isinstance(op, nn.UpdateOp) and op.combiner.data == "sum"
    )
    assert nn.shape_of(summed.updates) == (1, 3)


def test_each_function_that_is_called_has_one_function_back():
    call = f"func.call @f(%{{}}) : ({KIND}) -> {KIND}"
    text = f"""
    func.func @f(%x: {KIND}) -> {KIND} {{
      %0 = nn.square %x : ({KIND}) -> {KIND}
      func.return %0 : {KIND}
    }}
    func.func @main(%x: {KIND}) -> {KIND} {{
      %0 = {call.format("x")}
      %1 = {call.format("0")}
      %2 = {call.format("1")}
      func.return %2 : {KIND}
    }}"""
    module = differentiated(text)
    assert [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)] == [
        "f",
        "f.backward",
        "main",
    ]
    calls = [op.callee.string_value() for op in module.walk() if isinstance(op, CallOp)]
    assert calls == 3 * ["f"] + 3 * ["f.backward"]
    found = run_reference(module, {"arg0": np.array([1.0, 2.0, 0.5])}).outputs["grad.arg0"]
    assert found.tolist() == [8, 8 * 2**7, 8 * 0.5**7]


def test_the_branch_that_is_not_taken_passes_nothing_back():
    text = f"""
    func.func @main(%x: {KIND}, %w: {KIND}, %c: {PREDICATE}) -> {KIND} {{
      %0 = control.if %c : {PREDICATE} -> ({KIND}) {{
        %1 = nn.log %x : ({KIND}) -> {KIND}
        control.yield %1 : {KIND}
      }} else {{
        control.yield %w : {KIND}
      }}
      func.return %0 : {KIND}
    }}"""
    inputs = {"arg0": np.zeros(3), "arg1": np.ones(3)}
    found = run_reference(differentiated(text), inputs | {"arg2": np.array(False)}).outputs
    assert found["grad.arg0"].tolist() == [0, 0, 0]
    assert found["grad.arg1"].tolist() == [1, 1, 1]
    found = run_reference(
        differentiated(text), inputs | {"arg0": np.full(3, 2.0), "arg2": np.array(True)}
    ).outputs
    assert found["grad.arg0"].tolist() == [0.5, 0.5, 0.5]
    assert found["grad.arg1"].tolist() == [0, 0, 0]


def test_a_composite_in_a_loop_is_decomposed_there():
    kind = "tensor<1x4x3x3xf64>"
    text = f"""
    func.func @main(%x: {kind}) -> {kind} {{
      %0 = control.repeat 2 (%x) : ({kind}) -> ({kind}) {{
      ^bb0(%a: {kind}):
        %1 = nn.lrn %a size 3 alpha 0.5 beta 0.75 bias 1.0 : ({kind}) -> {kind}
        control.yield %1 : {kind}
      }}
      func.return %0 : {kind}
    }}"""
    check_gradient(text, {"arg0": np.random.default_rng(1).normal(size=(1, 4, 3, 3))})


def test_a_while_on_the_way_is_refused_by_name():
    text = f"""
    func.func @main(%x: {KIND}, %c: {PREDICATE}) -> {KIND} {{
      %0 = control.while (%x) : ({KIND}) -> ({KIND}) {{
      ^bb0(%a: {KIND}):
        control.condition %c : {PREDICATE}
      }} do {{
      ^bb0(%a: {KIND}):
        %1 = nn.exp %a : ({KIND}) -> {KIND}
        control.yield %1 : {KIND}
      }} loc("search")
      func.return %0 : {KIND}
    }}"""
    with pytest.raises(
        InputError, match="^control.while at search repeats until a condition holds, so"
    ):
        differentiated(text)


def with_blobs(text: str, **arrays: np.ndarray) -> ModuleOp:
    context = new_context()
    for name, array in arrays.items():
        text = text.replace(f"<{name}>", f'<"{context.blobs.add(array).digest}">')
    return parse_module(text, context)


LOADED_EVERYWHERE = f"""
nn.state @w : {KIND} = <w>
func.func @inner(%x: {KIND}) -> {KIND} {{
  %w = nn.load @w : {KIND}
  %0 = nn.mul %w, %x : ({KIND}, {KIND}) -> {KIND}
  func.return %0 : {KIND}
}}
func.func @outer(%x: {KIND}) -> {KIND} {{
  %0 = func.call @inner(%x) : ({KIND}) -> {KIND}
  %1 = func.call @inner(%0) : ({KIND}) -> {KIND}
  func.return %1 : {KIND}
}}
func.func @main(%x: {KIND}) -> {KIND} {{
  %0 = func.call @outer(%x) : ({KIND}) -> {KIND}
  %1 = control.repeat 2 (%0) : ({KIND}) -> ({KIND}) {{
  ^bb0(%a: {KIND}):
    %w = nn.load @w : {KIND}
    %2 = nn.mul %w, %a : ({KIND}, {KIND}) -> {KIND}
    control.yield %2 : {KIND}
  }}
  %3 = nn.load @w : {KIND}
  %4 = nn.mul %3, %1 : ({KIND}, {KIND}) -> {KIND}
  func.return %4 : {KIND}
}}"""
"""x times w^5: two factors by calls in a call, two by iterations of a loop, and one."""


def test_a_state_has_a_gradient_wherever_it_is_loaded():
    w, x = np.array([0.5, -1.0, 2.0]), np.array([3.0, 2.0, 1.0])
    module = with_blobs(LOADED_EVERYWHERE, w=w)
    Differentiate().apply(new_context(), module)
    verify(module, NN_LEVEL)
    assert {op.parent_op().sym_name.data for op in module.walk() if isinstance(op, nn.LoadOp)} == {
        "main"
    }
    found = run_reference(module, {"arg0": x}).outputs
    assert found["out0"].tolist() == (x * w**5).tolist()
    assert found["grad.w"].tolist() == (5 * x * w**4).tolist()
    assert found["grad.arg0"].tolist() == (w**5).tolist()


def test_a_function_that_calls_itself_is_refused_by_name():
    text = f"""
    func.func @f(%x: {KIND}) -> {KIND} {{
      %0 = func.call @f(%x) : ({KIND}) -> {KIND} loc("again")
      func.return %0 : {KIND}
    }}
    func.func @main(%x: {KIND}) -> {KIND} {{
      %0 = func.call @f(%x) : ({KIND}) -> {KIND}
      func.return %0 : {KIND}
    }}"""
    with pytest.raises(InputError, match="^func.call at again: @f calls itself, and has no grad"):
        differentiated(text)


def test_a_gradient_through_a_call_has_a_gradient():
    """The second gradient of (x^3)^3 is 72 x^7: it goes through @f and through its gradient."""
    text = f"""
    func.func @f(%x: {KIND}) -> {KIND} {{
      %0 = nn.square %x : ({KIND}) -> {KIND}
      %1 = nn.mul %0, %x : ({KIND}, {KIND}) -> {KIND}
      func.return %1 : {KIND}
    }}
    func.func @main(%x: {KIND}) -> {KIND} {{
      %0 = func.call @f(%x) : ({KIND}) -> {KIND}
      %1 = func.call @f(%0) : ({KIND}) -> {KIND}
      func.return %1 : {KIND}
    }}"""
    module = differentiated(text)
    Differentiate(loss="grad.arg0").apply(new_context(), module)
    verify(module, NN_LEVEL)
    x = np.array([1.0, 2.0, 0.5])
    assert run_reference(module, {"arg0": x}).outputs["grad.arg0"].tolist() == (72 * x**7).tolist()
