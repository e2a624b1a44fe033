"""Numbers of stablehlo.rng: their range, their moments, and what they depend on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from abele.backends.reference import run_reference
from abele.dialects.random_states import SEED, STEP, set_seed
from abele.ir.support.errors import InputError
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp
from abele.passes.convert_stablehlo_to_nn import ConvertStablehloToNn
from abele.tools import compile_model
from abele.tools.driver.context import new_context

COUNT = 4000


def draw(result: str, distribution: str, element: str = "f32", count: int = COUNT) -> str:
    return f"""
    %{result} = "stablehlo.rng"(%a, %b, %n) <{{rng_distribution =
        #stablehlo<rng_distribution {distribution}>}}>
        : (tensor<{element}>, tensor<{element}>, tensor<1xi64>) -> tensor<{count}x{element}>"""


def text_of(*draws: str, element: str = "f32", count: int = COUNT) -> str:
    names = [each.split()[0] for each in draws]
    kinds = ", ".join([f"tensor<{count}x{element}>"] * len(names))
    return f"""
builtin.module {{
  func.func @main(%a: tensor<{element}>, %b: tensor<{element}>) -> ({kinds}) {{
    %n = "stablehlo.constant"() <{{value = dense<{count}> : tensor<1xi64>}}> : () -> tensor<1xi64>
    {" ".join(draws)}
    func.return {", ".join(names)} : {kinds}
  }}
}}"""


def lowered(*draws: str, element: str = "f32") -> ModuleOp:
    context = new_context()
    module = parse_module(text_of(*draws, element=element), context)
    ConvertStablehloToNn().apply(context, module)
    module.verify()
    return module


def given(a: float, b: float, dtype: str = "float32") -> dict[str, np.ndarray]:
    return {"arg0": np.array(a, dtype), "arg1": np.array(b, dtype)}


def test_uniform_numbers_lie_between_their_limits():
    found = run_reference(lowered(draw("u", "UNIFORM")), given(2, 5)).outputs["out0"]
    assert (found.min() >= 2, found.max() < 5) == (True, True)
    assert found.mean() == pytest.approx(3.5, abs=0.1)
    assert found.std() == pytest.approx(3 / 12**0.5, abs=0.05)
    assert len(np.unique(found)) > 0.99 * COUNT


@pytest.mark.parametrize(("element", "dtype"), [("f32", "float32"), ("f64", "float64")])
def test_normal_numbers_have_a_mean_and_a_deviation(element: str, dtype: str):
    module = lowered(draw("g", "NORMAL", element), element=element)
    found = run_reference(module, given(1, 2, dtype)).outputs["out0"]
    assert found.dtype == dtype
    assert found.mean() == pytest.approx(1, abs=0.15)
    assert found.std() == pytest.approx(2, abs=0.1)
    assert ((found - 1) ** 4).mean() / found.var() ** 2 == pytest.approx(3, abs=0.4)


def test_operations_runs_and_seeds_draw_other_numbers():
    module = lowered(draw("u", "UNIFORM"), draw("v", "UNIFORM"))
    first = run_reference(module, given(0, 1))
    drawn = [first.outputs["out0"], first.outputs["out1"]]
    assert first.state[STEP] == 1
    drawn.append(run_reference(module, given(0, 1), state=first.state).outputs["out0"])
    assert set_seed(module, 7)
    drawn.append(run_reference(module, given(0, 1)).outputs["out0"])
    for i, one in enumerate(drawn):
        for other in drawn[:i]:
            assert abs(np.corrcoef(one, other)[0, 1]) < 0.06
    again = run_reference(module, given(0, 1), state={SEED: np.array(0, np.uint32)})
    np.testing.assert_array_equal(again.outputs["out0"], drawn[0])


def test_numbers_are_those_of_onnx(tmp_path: Path):
    """Both draw from the same bits, on the machine too."""
    node = helper.make_node("RandomUniform", [], ["y"], low=1.0, high=3.0, shape=[16])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [16])
    graph = helper.make_graph([node], "drawn", [], [output])
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset]), tmp_path / "m.onnx")
    (tmp_path / "m.mlir").write_text(text_of(draw("u", "UNIFORM", count=16), count=16))
    models = [compile_model(tmp_path / name, target="tiny:2") for name in ("m.onnx", "m.mlir")]
    for _ in range(2):
        (wanted,) = models[0].run({}).values()
        (found,) = models[1].run(given(1, 3)).values()
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("draws", "element", "message"),
    [
        (draw("u", "UNIFORM", "i32"), "i32", "drawing i32 is not supported; floats are"),
        (
            """
    %u = "stablehlo.case"(%i) ({"""
            + draw("v", "UNIFORM")
            + f""" "stablehlo.return"(%v) : (tensor<{COUNT}xf32>) -> ()
    }}, {{"""
            + draw("w", "NORMAL")
            + f""" "stablehlo.return"(%w) : (tensor<{COUNT}xf32>) -> ()
    }}) : (tensor<i32>) -> tensor<{COUNT}xf32>""",
            "f32",
            "drawing in a loop or branch is not supported",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(draws: str, element: str, message: str):
    context = new_context()
    text = text_of(draws, element=element)
    if "%i" in draws:
        text = text.replace("%n = ", CHOICE + "%n = ", 1)
    with pytest.raises(InputError, match=message):
        ConvertStablehloToNn().apply(context, parse_module(text, context))


CHOICE = """%i = "stablehlo.convert"(%a) : (tensor<f32>) -> tensor<i32>
    """
