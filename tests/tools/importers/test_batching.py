from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper, parser

from abele.backends.reference import run_reference
from abele.dialects.levels import NN
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.ir.verify import verify
from abele.tools.importers import UnsupportedError, import_onnx


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model(text: str, shape: str = "1,4,6", **weights: np.ndarray) -> onnx.ModelProto:
    """A model of the input x and the output y. Names in capitals are weights."""
    made = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 18]> model (float[{shape}] x) => (y) {{ {text} }}'
    )
    made.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in weights.items())
    return made


def run(proto: onnx.ModelProto, x: np.ndarray, **options: Any) -> np.ndarray:
    module = import_onnx(proto, AbeleContext(), **options)
    verify(module, NN)
    return run_reference(module, {"x": x}).outputs["y"]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


FLAT = model("h = Relu (x) f = Reshape (h, S) y = MatMul (f, W)", S=ints(1, -1), W=floats(24, 5))
KEPT = model("f = Reshape (x, S) y = Reshape (f, T)", S=ints(1, 24, 1), T=ints(1, 4, 6))
HEADS = model(
    "s = Reshape (x, S) t = Transpose <perm = [0, 2, 1, 3]> (s) k = Transpose <perm=[0,1,3,2]> (t)"
    "a = MatMul (t, k) p = Softmax (a) o = MatMul (p, t) u = Transpose <perm = [0, 2, 1, 3]> (o)"
    "y = Reshape (u, T)",
    S=ints(1, 4, 2, 3),
    T=ints(1, 4, 6),
)
TOKENS_FIRST = model(
    "t = Transpose <perm = [1, 0, 2]> (x) h = Reshape (t, S) k = Transpose <perm = [1, 2, 0]> (h)"
    "q = Transpose <perm = [1, 0, 2]> (h) a = MatMul (q, k) o = MatMul (a, q)"
    "u = Transpose <perm = [1, 0, 2]> (o) v = Reshape (u, T) y = Transpose <perm = [1, 0, 2]> (v)",
    S=ints(4, 2, 3),
    T=ints(4, 1, 6),
)
TWO = model("f = Reshape (x, S) y = Reshape (f, T)", "2,4,6", S=ints(2, 24), T=ints(8, 6))
IMAGE = model(
    "c = Conv <pads = [1, 1, 1, 1]> (x, W) p = GlobalAveragePool (c) y = Reshape (p, S)",
    "1,3,4,4",
    W=floats(5, 3, 3, 3),
    S=ints(1, 5),
)


@pytest.mark.parametrize("proto", [FLAT, KEPT, HEADS, TOKENS_FIRST, IMAGE])
def test_each_sample_is_computed_as_it_is_alone(proto: onnx.ModelProto):
    sizes = [each.dim_value for each in proto.graph.input[0].type.tensor_type.shape.dim]
    x = floats(3, *sizes[1:])
    together = run(proto, x, batch=3)
    apart = np.concatenate([run(proto, x[i : i + 1]) for i in range(3)])
    np.testing.assert_allclose(together, apart, rtol=1e-5, atol=1e-6)


def test_the_number_of_samples_may_also_shrink():
    x = floats(1, 4, 6)
    np.testing.assert_array_equal(run(TWO, x, batch=1), x.reshape(4, 6))


def test_a_free_number_of_samples_is_given_as_well():
    proto = model("y = Reshape (x, S)", "N,4,6", S=ints(1, -1))
    assert run(proto, floats(3, 4, 6), batch=3).shape == (3, 24)


def test_inputs_whose_first_axis_has_another_size_are_shared():
    proto = model("y = Add (x, z)")
    proto.graph.input.append(onnx.helper.make_tensor_value_info("z", TensorProto.FLOAT, [6]))
    module = import_onnx(proto, AbeleContext(), batch=3)
    inputs = {"x": floats(3, 4, 6), "z": floats(6)}
    found = run_reference(module, inputs).outputs["y"]
    np.testing.assert_array_equal(found, inputs["x"] + inputs["z"])


@pytest.mark.parametrize(
    "proto",
    [
        model("y = ReduceMean (x, A)", A=ints(0)),
        model("y = Softmax <axis = 0> (x)"),
        model("y = CumSum (x, A)", A=ints(0)[0]),
        model("y = LayerNormalization <axis = 0> (x, W)", W=floats(1, 4, 6)),
        model("y = MeanVarianceNormalization <axes = [0, 1]> (x)"),
        model("y = Slice (x, A, B)", A=ints(0), B=ints(1)),
        model("y = Gather (x, A)", A=np.array(0)),
        model("y = Concat <axis = 0> (x, W)", W=floats(1, 4, 6)),
    ],
    ids=lambda proto: proto.graph.node[0].op_type,
)
def test_a_node_that_mixes_samples_is_refused_by_name(proto: onnx.ModelProto):
    proto.graph.node[0].name = "here"
    with pytest.raises(UnsupportedError, match=r"--batch 3: node 'here' .* works for 1 only"):
        run(proto, floats(3, 4, 6), batch=3)


def test_a_weight_for_each_sample_is_refused_by_name():
    proto = model("y = Add (x, W)", "2,4", W=floats(2, 4))
    proto.graph.node[0].name = "here"
    with pytest.raises(InputError, match="node 'here'"):
        run(proto, floats(3, 4), batch=3)


def test_a_model_without_axes_has_no_samples():
    with pytest.raises(InputError, match=r"--batch 3: no input has an axis for samples"):
        proto = model("y = Relu (x)")
        proto.graph.input[0].type.tensor_type.shape.ClearField("dim")
        run(proto, floats(), batch=3)
