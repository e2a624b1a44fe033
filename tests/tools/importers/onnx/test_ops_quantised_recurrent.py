"""DynamicQuantizeLSTM agrees with onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from abele.backends.reference import run_reference
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx
from abele.tools.testing.onnx_graphs.runtimes import by_onnxruntime

STEPS, BATCH, FEATURES, HIDDEN = 5, 2, 3, 4
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def model(
    direction: str = "forward",
    dtype: type[np.generic] = np.int8,
    per_column: bool = False,
    scales: tuple[int, ...] | None = None,
    **attributes: object,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A layer whose weights are constants, and its inputs. scales: their shape, if another."""
    rng = np.random.default_rng(0)
    d = DIRECTIONS[direction]
    # Where the processor lacks an instruction, onnxruntime saturates sums of wider int8.
    low, high = (-64, 63) if dtype == np.int8 else (0, 255)
    each = scales if scales is not None else (d, 4 * HIDDEN) if per_column else (d,)

    def whole(*shape: int) -> np.ndarray:
        return rng.integers(low, high, shape, dtype, endpoint=True)

    middle = 0 if dtype == np.int8 else 128
    constants = {
        "W": whole(d, FEATURES, 4 * HIDDEN),
        "R": whole(d, HIDDEN, 4 * HIDDEN),
        "B": rng.standard_normal((d, 8 * HIDDEN)).astype(np.float32),
        "W_scale": rng.uniform(0.002, 0.01, each).astype(np.float32),
        "W_zero": np.full(each, middle, dtype),
        "R_scale": rng.uniform(0.002, 0.01, each).astype(np.float32),
        "R_zero": np.full(each, middle, dtype),
    }
    names = ["X", "W", "R", "B", "", "", "", "", "W_scale", "W_zero", "R_scale", "R_zero"]
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        names,
        ["Y", "Y_h", "Y_c"],
        "lstm",
        domain="com.microsoft",
        hidden_size=HIDDEN,
        direction=direction,
        **attributes,
    )
    x = rng.standard_normal((STEPS, BATCH, FEATURES)).astype(np.float32)
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, x.shape)],
        [helper.make_empty_tensor_value_info(name) for name in ("Y", "Y_h", "Y_c")],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), {"X": x}


@pytest.mark.parametrize("per_column", [False, True], ids=["per tensor", "per column"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_states_are_quantised_at_each_step(
    direction: str, dtype: type[np.generic], per_column: bool
):
    proto, inputs = model(direction, dtype, per_column)
    found = run_reference(import_onnx(proto, AbeleContext()), inputs).outputs
    expected = by_onnxruntime(proto, inputs)
    for name, other in expected.items():
        np.testing.assert_allclose(found[name], other, rtol=1e-5, atol=1e-5)


def test_scales_of_another_shape_are_refused():
    proto, _ = model(scales=(3,))
    with pytest.raises(InputError, match=r"operand 8 has shape \[3\]; need \[1\] or \[1, 16\]"):
        import_onnx(proto, AbeleContext())
