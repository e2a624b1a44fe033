"""One program with a call, a repeat, an if and a while, at every level."""

from pathlib import Path

import numpy as np
import pytest

from abele.backends.faults import IterationLimit
from abele.dialects import control
from abele.tools import Executable, compile_model

RECURRENT = Path(__file__).parent.parent / "examples" / "recurrent.mlir"

LEVELS = ("nn", "partition", "tile", "exchange")
CONTROL = {"control.repeat", "control.if", "control.while", "func.call"}


@pytest.fixture(scope="module", params=["tiny:4", "tiny:16"])
def recurrent(request: pytest.FixtureRequest) -> Executable:
    return compile_model(RECURRENT, request.param)


def settled(x: np.ndarray, hidden: np.ndarray, exe: Executable) -> tuple[np.ndarray, int]:
    """What the program says, in NumPy and float64."""
    states = {
        op.sym_name.data: op.value.array.astype(np.float64)
        for op in exe.module_at("nn").walk()
        if op.name == "nn.state"
    }
    drive = x.astype(np.float64) @ states["input"] + states["bias"]
    change, iterations = 1e3, 0
    while change > 1e-3:
        following = hidden
        for _ in range(2):
            following = np.tanh(following @ states["recurrent"] + drive)
        change = np.square(following - hidden).sum()
        hidden = (hidden + following) / 2 if change > 0.5 else following
        iterations += 1
    return hidden, iterations


@pytest.mark.parametrize("level", LEVELS)
def test_all_four_forms_of_control_flow_exist_at_every_level(recurrent: Executable, level: str):
    found = {op.name for op in recurrent.module_at(level).walk()}
    assert found >= CONTROL


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_converges_as_numpy_does(recurrent: Executable, level: str):
    recurrent.reset()
    hidden = np.zeros((1, 8))
    for value in (1.0, 0.3, -2.0):
        x = np.full((1, 4), value, np.float32)
        hidden, iterations = settled(x, hidden, recurrent)
        results = recurrent.run({"x": x}, at=level)
        assert results["turns"].tolist() == [iterations]
        np.testing.assert_allclose(results["hidden"], hidden, atol=1e-5)


def test_the_number_of_iterations_depends_on_the_input(recurrent: Executable):
    iterations: set[int] = set()
    for value in (0.0, 0.3, 3.0):
        recurrent.reset()
        x = np.full((1, 4), value, np.float32)
        iterations.add(int(recurrent.run({"x": x})["turns"][0]))
    assert len(iterations) > 1


def test_a_second_run_begins_where_the_first_ended(recurrent: Executable):
    recurrent.reset()
    x = {"x": np.ones((1, 4), np.float32)}
    first, second = recurrent.run(x), recurrent.run(x)
    assert second["turns"][0] < first["turns"][0]
    recurrent.reset()
    assert recurrent.run(x)["turns"][0] == first["turns"][0]


def test_the_strict_machine_agrees_to_the_bit(recurrent: Executable):
    recurrent.reset()
    x = {"x": np.ones((1, 4), np.float32)}
    np.testing.assert_array_equal(
        recurrent.run(x, strict=True)["hidden"], recurrent.run(x)["hidden"]
    )


def test_the_repeat_keeps_its_count(recurrent: Executable):
    for level in LEVELS:
        repeats = [
            op.iterations
            for op in recurrent.module_at(level).walk()
            if isinstance(op, control.RepeatOp)
        ]
        assert repeats == [2]


ENDLESS = """func.func @main(%x: tensor<i1>) -> tensor<i1> {
  %0 = control.while(%x) : (tensor<i1>) -> tensor<i1> {
  ^bb0(%a: tensor<i1>):
    control.condition %x : tensor<i1>
  } do {
  ^bb0(%a: tensor<i1>):
    control.yield %a : tensor<i1>
  }
  func.return %0 : tensor<i1>
}"""


@pytest.mark.parametrize(
    ("options", "limit", "variable"),
    [
        ({}, "200,000 iterations", "ABELE_MOST_TURNS"),
        ({"strict": True}, "20,000 strict iterations", "ABELE_MOST_STRICT_TURNS"),
    ],
)
def test_an_endless_loop_meets_a_limit_also_in_a_strict_run(tmp_path, options, limit, variable):
    path = tmp_path / "endless.mlir"
    path.write_text(ENDLESS)
    exe = compile_model(path, "tiny:2")
    with pytest.raises(IterationLimit, match=rf"at most {limit} are allowed \({variable} changes"):
        exe.run({"arg0": np.array(True)}, **options)
