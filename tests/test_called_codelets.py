"""Models and rules reach users' codelets by name, with the parameters that they leave out."""

from collections.abc import Generator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from some_extensions import abele, loads_taken_back

from abele.ir.errors import InputError
from abele.tools import compile_model

CODELET = '''
from abele.tools.extensions import codelet, ulps


@codelet(
    space="n",
    reads={"x": "n", "y": "n"},
    writes={"out": "n"},
    cycles=lambda n: 10 + 4 * n,
    bound=ulps(4, of="largest"),
)
def mix(x, y, *, rate=0.5, times=2):
    """rate * x + times * y."""
    return x.dtype.type(rate) * x + times * y
'''

RULE = """
rule sum: nn.add(x: ?[_], y: ?[_]) => blend.mix(x, y) {times = 1}
  where same_type(x, y), is_float(x)
"""

CALL = """
builtin.module {
  func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
    %0 = "stablehlo.custom_call"(%x, %y) <{call_target_name = "blend.mix"}>
        {mhlo.backend_config = {times = 3 : i64}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    func.return %0 : tensor<8xf32>
  }
}
"""

SUM = """
builtin.module {
  func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
    %0 = nn.add %x, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    func.return %0 : tensor<8xf32>
  }
}
"""

X, Y = (np.arange(8, dtype=np.float32) + i for i in range(2))


@pytest.fixture
def blend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "blend.py"
    path.write_text(CODELET)
    with loads_taken_back():
        yield path


def saved(**attributes: object) -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8]) for name in "xyz"]
    node = helper.make_node("mix", ["x", "y"], ["z"], "node", domain="blend", **attributes)
    graph = helper.make_graph([node], "g", values[:2], values[2:])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("blend", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), "model.onnx")
    return Path("model.onnx")


def test_a_node_may_leave_out_parameters(blend: Path):
    exe = compile_model(saved(times=3), "tiny:4", load=[blend])
    np.testing.assert_array_equal(exe.run({"x": X, "y": Y})["z"], 0.5 * X + 3 * Y)
    exe = compile_model(saved(times=3, rate=2.0), "tiny:4", load=[blend])
    np.testing.assert_array_equal(exe.run({"x": X, "y": Y})["z"], 2 * X + 3 * Y)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"times": 1.5}, "attribute times of blend.mix is 1.5; need an integer"),
        ({"times": 1, "rat": 2.0}, "blend.mix has no attribute 'rat'; did you mean rate"),
    ],
)
def test_a_node_that_does_not_fit_is_refused(
    blend: Path, attributes: dict[str, object], message: str
):
    with pytest.raises(InputError, match=rf"model.onnx: node 'node' \(mix\): {message}"):
        compile_model(saved(**attributes), "tiny:4", load=[blend])


def test_a_custom_call_leaves_out_parameters_that_have_a_default(blend: Path):
    Path("call.mlir").write_text(CALL)
    (found,) = (
        compile_model("call.mlir", "tiny:4", load=[blend]).run({"arg0": X, "arg1": Y}).values()
    )
    np.testing.assert_array_equal(found, 0.5 * X + 3 * Y)


def test_a_pipeline_may_name_the_pass_that_leads_a_custom_call_to_nn(blend: Path):
    Path("call.mlir").write_text(CALL)
    passes = "convert-stablehlo-to-nn,nn,partition,tile,exchange"
    exe = compile_model("call.mlir", "tiny:4", load=[blend], passes=passes)
    (found,) = exe.run({"arg0": X, "arg1": Y}).values()
    np.testing.assert_array_equal(found, 0.5 * X + 3 * Y)


def test_a_rule_makes_a_codelet_with_the_defaults_that_it_leaves_out(blend: Path):
    Path("sums.rw").write_text(RULE)
    Path("sum.mlir").write_text(SUM)
    done = abele("opt", "sum.mlir", "--load", blend, "--load", "sums.rw", "-p", "sums")
    assert done.exit_code == 0, done.output
    assert "blend.mix(%x, %y) rate 0.5 times 1" in done.output
