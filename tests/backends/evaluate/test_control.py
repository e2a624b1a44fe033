import numpy as np
import pytest
from tile_programs import context, parse

from abele.backends.evaluate.control import Walker
from abele.backends.evaluate.partition import run_partition
from abele.backends.evaluate.tile import run_tile
from abele.backends.faults import IterationLimit
from abele.backends.machine import Machine
from abele.backends.target import resolve_target
from abele.ir.errors import InputError

T = "!partition.tensor<4xf32, [4 by 2] (d0) of [4]>"
P = "!partition.tensor<i1, [] () of []>"
SHIFT = "space <[i = 4] (i) of [4] -> (i) of [4]> body <shift [1.0]> plan <split [2]>"
FIRST_BELOW = "space <[] () of [] -> () of []> body <identity> plan <split []>"
HEAD = "#abele.space<[i = 1] (i) of [4] -> (i) of [1]>"


def partition_program(body: str, *functions: str) -> str:
    return (
        "".join(functions)
        + f'func.func @main(%x: {T}, %p: {P}) -> {T} attributes {{arg_names = ["x", "p"], '
        + 'result_names = ["y"]} {\n'
        + body
        + "}\n"
    )


def run(text: str, x: list[float], p: bool = True) -> list[float]:
    inputs = {"x": np.array(x, np.float32), "p": np.array(p)}
    return run_partition(parse(text), inputs).outputs["y"].tolist()


SHIFTED = f"partition.compute(%v) {SHIFT} : ({T}) -> {T}"


def test_repeat_passes_on_the_values_that_each_iteration_yields():
    text = partition_program(
        f"%y = control.repeat 5 (%x) : ({T}) -> ({T}) {{ ^bb0(%v: {T}):\n"
        f"%w = {SHIFTED}\ncontrol.yield %w : {T} }}\nfunc.return %y : {T}\n"
    )
    assert run(text, [0, 1, 2, 3]) == [5, 6, 7, 8]


def test_repeat_without_iterations_returns_its_initial_values():
    text = partition_program(
        f"%y = control.repeat 0 (%x) : ({T}) -> ({T}) {{ ^bb0(%v: {T}):\n"
        f"%w = {SHIFTED}\ncontrol.yield %w : {T} }}\nfunc.return %y : {T}\n"
    )
    assert run(text, [0, 1, 2, 3]) == [0, 1, 2, 3]


@pytest.mark.parametrize(("p", "expected"), [(True, 1), (False, 0)])
def test_if_runs_one_side_and_sees_values_from_outside(p: bool, expected: float):
    text = partition_program(
        f"%y = control.if %p : {P} -> ({T}) {{ %w = {SHIFTED.replace('%v', '%x')}\n"
        f"control.yield %w : {T} }} else {{ control.yield %x : {T} }}\nfunc.return %y : {T}\n"
    )
    assert run(text, [0] * 4, p) == [expected] * 4


def test_functions_are_called_with_values():
    text = partition_program(
        f"%a = func.call @shift(%x) : ({T}) -> {T}\n%b = func.call @shift(%a) : ({T}) -> {T}\n"
        f"func.return %b : {T}\n",
        f"func.func @shift(%v: {T}) -> {T} {{ %w = {SHIFTED}\nfunc.return %w : {T} }}\n",
    )
    assert run(text, [0, 0, 1, 1]) == [2, 2, 3, 3]


LESS = (
    "space <[] () of [], () of [] -> () of []> body <less> plan <split []> : "
    "(!partition.tensor<f32, [] () of []>, !partition.tensor<f32, [] () of []>) -> " + P
)
S = "!partition.tensor<f32, [] () of []>"
ADD = f"space <[] () of [], () of [] -> () of []> body <add> plan <split []> : ({S}, {S}) -> {S}"


def while_program() -> str:
    return (
        f'func.func @main(%i: {S}, %n: {S}, %s: {S}) -> ({S}) attributes {{arg_names = ["i", "n", '
        f'"s"], result_names = ["y"]}} {{\n'
        f"%r = control.while (%i) : ({S}) -> ({S}) {{ ^bb0(%a: {S}):\n"
        f"%c = partition.compute(%a, %n) {LESS}\ncontrol.condition %c : {P} }} do {{\n"
        f"^bb0(%a: {S}):\n%b = partition.compute(%a, %s) {ADD}\ncontrol.yield %b : {S} }}\n"
        f"func.return %r : {S} }}\n"
    )


def scalars(**values: float) -> dict[str, np.ndarray]:
    return {name: np.array(value, np.float32) for name, value in values.items()}


@pytest.mark.parametrize(("n", "expected"), [(10, 12), (-1, 0)])
def test_while_tests_before_each_iteration(n: float, expected: float):
    result = run_partition(parse(while_program()), scalars(i=0, n=n, s=3))
    assert result.outputs["y"] == expected


def test_a_while_without_end_is_stopped():
    module = parse(while_program())

    def execute(op, operands):
        return [True] * len(op.results)

    walker: Walker[bool] = Walker(module, execute, bool, iteration_limit=20)
    with pytest.raises(
        IterationLimit,
        match="control.while at unknown line in @main: still running; at most 20 iterations",
    ):
        walker.call("main", [True, True, True])


def test_values_are_dropped_after_their_last_use():
    module = parse(
        partition_program(
            "".join(
                f"%{b} = {SHIFTED.replace('%v', '%' + a)}\n" for a, b in ("xa", "ab", "bc", "cd")
            )
            + f"func.return %d : {T}\n"
        )
    )
    alive = 0
    most = 0

    class Value:
        def __init__(self):
            nonlocal alive, most
            alive += 1
            most = max(most, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

    walker: Walker[Value] = Walker(module, lambda op, operands: [Value()], bool)
    walker.call("main", [Value(), Value()])
    # The caller holds two; an operand and its result make four.
    assert most == 4


def test_a_missing_function_is_named():
    with pytest.raises(InputError, match="no function @main; there are f"):
        Walker(parse("func.func @f() { func.return }"), lambda op, _: [], bool).call("main")


# Programs without values


def program(level: str, address: str) -> str:
    x, i1 = "tensor<4xf32> layout <[4 by 2] (d0) of [4]>", "tensor<i1> layout <[] () of []>"
    one = "tensor<1xf32> layout <[] (0) of [1]>"
    at = iter(range(0, 800, 8))

    def variable(name: str, rest: str) -> str:
        place = f"at {next(at)} " if address else ""
        return f"{level}.variable @{name} {place}: {rest}\n"

    def step(name: str, copies: list[str], computes: list[str]) -> str:
        if level == "exchange":
            moves = "".join(f"exchange.move {c}\n" for c in copies)
            runs = "".join(f"exchange.compute {c}\n" for c in computes)
            return f'exchange.superstep @{name} {{ exchange.sync "internal"\n{moves}{runs} }}\n'
        text = "".join(f"exchange.move {c}\n" for c in copies)
        runs = "".join(f"exchange.compute {c}\n" for c in computes)
        return text + (f"tile.compute_set @{name} {{ {runs} }}\n" if computes else "")

    def host(name: str, *ops: str) -> str:
        text = "".join(f"tile.{op}\n" for op in ops)
        if level == "tile":
            return text
        return f'exchange.superstep @{name} {{ exchange.sync "external"\n{text} }}\n'

    head = f"moves [{HEAD}]"
    return (
        variable("x", x)
        + variable("x1", x)
        + variable("first", one)
        + variable("limit", one)
        + variable("more", i1)
        + variable("flag", i1)
        + "func.func @shift() {\n"
        + step("shift", [], [f"{SHIFT} reads [@x] writes @x1"])
        + step("back", ["[@x1] -> @x"], [])
        + "func.return }\n"
        + "func.func @main() {\n"
        + host(
            "inputs",
            'input "x" -> @x : tensor<4xf32>',
            'input "limit" -> @limit : tensor<1xf32>',
            'input "flag" -> @flag : tensor<i1>',
        )
        + "control.repeat 2 () : () -> () {\n"
        + "func.call @shift() : () -> ()\ncontrol.yield }\n"
        + "control.while () : () -> () {\n"
        + step(
            "test",
            [f"[@x] -> @first {head}"],
            [
                "space <[] (0) of [1], (0) of [1] -> () of []> body <less> plan <split []> "
                "reads [@first, @limit] writes @more"
            ],
        )
        + "%c = exchange.read @more : i1\ncontrol.condition %c : i1 } do {\n"
        + "func.call @shift() : () -> ()\ncontrol.yield }\n"
        + "%f = exchange.read @flag : i1\n"
        + "control.if %f : i1 { func.call @shift() : () -> ()\ncontrol.yield }"
        + " else { control.yield }\n"
        + host("outputs", 'output @x -> "y" : tensor<4xf32>')
        + "func.return }\n"
    )


RUNS = {
    "tile": lambda module, inputs: run_tile(module, inputs).outputs,
    "exchange": lambda module, inputs: Machine(module, resolve_target("tiny"), strict=True).run(
        inputs
    ),
}


@pytest.mark.parametrize("level", RUNS)
@pytest.mark.parametrize(("limit", "flag", "expected"), [(7, True, 8), (0, False, 2), (3, True, 4)])
def test_program_levels_follow_their_predicates(
    level: str, limit: float, flag: bool, expected: float
):
    module = parse(program(level, "at" if level == "exchange" else ""), context())
    inputs = {
        "x": np.arange(4, dtype=np.float32),
        "limit": np.array([limit], np.float32),
        "flag": np.array(flag),
    }
    y = RUNS[level](module, inputs)["y"]
    assert y.tolist() == [expected, expected + 1, expected + 2, expected + 3]
