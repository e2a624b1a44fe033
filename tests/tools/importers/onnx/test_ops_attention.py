from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx

B, H, Q, S, D = 2, 4, 3, 5, 8
"""Batch, heads, queries, keys, and size of a head."""


def floats(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def model(inputs: dict[str, np.ndarray], outputs: int = 1, opset: int = 25, **attributes):
    """A model of one Attention. Its operands are inputs by their name in the standard."""
    order = ("q", "k", "v", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
    operands = [name if name in inputs else "" for name in order]
    while not operands[-1]:
        operands.pop()
    results = ["y", "present_key", "present_value", "qk"][:outputs]
    graph = helper.make_graph(
        [helper.make_node("Attention", operands, results, "attention", **attributes)],
        "graph",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in results],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def heads(queries: int = H, keys: int = H, seed: int = 0) -> dict[str, np.ndarray]:
    return {
        "q": floats(B, queries, Q, D, seed=seed),
        "k": floats(B, keys, S, D, seed=seed + 1),
        "v": floats(B, keys, S, D + 2, seed=seed + 2),
    }


def flat() -> dict[str, np.ndarray]:
    return {"q": floats(B, Q, H * D), "k": floats(B, S, 2 * D), "v": floats(B, S, 2 * D)}


MASK = floats(B, 1, Q, S, seed=9) > 0
MASK[1, 0, 2] = False

FORMS: dict[str, tuple[dict[str, np.ndarray], int, dict[str, Any]]] = {
    "four axes": (heads(), 1, {}),
    "three axes, shared keys": (flat(), 1, {"q_num_heads": H, "kv_num_heads": 2}),
    "shared keys and a mask for each head": (
        heads(keys=2) | {"attn_mask": floats(H, Q, S)},
        1,
        {},
    ),
    "a query without keys": (heads(keys=1) | {"attn_mask": MASK}, 4, {"qk_matmul_output_mode": 3}),
    "a mask of another type": (heads() | {"attn_mask": floats(Q, S, dtype=np.float16)}, 1, {}),
    "a short mask": (heads() | {"attn_mask": floats(Q, S - 1)}, 1, {"softcap": 2.0}),
    "a past": (
        heads() | {"past_key": floats(B, H, 4, D), "past_value": floats(B, H, 4, D + 2)},
        4,
        {"is_causal": 1, "qk_matmul_output_mode": 2, "scale": 0.5},
    ),
    "lengths": (
        heads() | {"nonpad_kv_seqlen": np.array([S, 2])},
        1,
        {"is_causal": 1, "left_window_size": 1},
    ),
    "a window": (heads(), 4, {"left_window_size": 0, "right_window_size": 1}),
    "a soft cap": (heads(), 4, {"softcap": 1.5, "qk_matmul_output_mode": 1}),
    "a softmax in float16": (heads(), 1, {"softmax_precision": TensorProto.FLOAT16}),
}


@pytest.mark.parametrize("form", FORMS)
def test_attention_computes_what_the_standard_says(form: str):
    inputs, outputs, attributes = FORMS[form]
    proto = model(inputs, outputs, **attributes)
    expected = ReferenceEvaluator(proto).run(None, inputs)
    found = run_reference(import_onnx(proto, AbeleContext()), inputs).outputs.values()
    tolerance = 2e-3 if "float16" in form else 2e-6
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


def test_a_softmax_that_always_has_a_key_is_one_operation():
    operations = {
        name: sum(isinstance(op, nn.SoftmaxOp) for op in import_onnx(proto, AbeleContext()).walk())
        for name, proto in {
            "causal": model(heads(), is_causal=1),
            "masked": model(FORMS["a query without keys"][0]),
        }.items()
    }
    assert operations == {"causal": 1, "masked": 0}


def test_shared_keys_are_not_repeated():
    module = import_onnx(model(heads(keys=1)), AbeleContext())
    assert not [op for op in module.walk() if isinstance(op, nn.ExpandOp)]


def test_a_token_at_the_end_of_a_past_needs_no_causal_mask():
    inputs = heads() | {"past_key": floats(B, H, 4, D), "past_value": floats(B, H, 4, D + 2)}
    inputs["q"], inputs["k"], inputs["v"] = (inputs[n][:, :, :1] for n in ("q", "k", "v"))
    module = import_onnx(model(inputs, 3, is_causal=1), AbeleContext())
    assert not [op for op in module.walk() if isinstance(op, nn.AddOp)]


def test_narrow_floats_are_nearer_to_exact_results_than_those_of_the_standards_reference():
    wide = heads()
    inputs = {name: array.astype(ml_dtypes.bfloat16) for name, array in wide.items()}
    exact = {name: array.astype(np.float64) for name, array in inputs.items()}
    (truth,) = ReferenceEvaluator(model(exact)).run(None, exact)
    (theirs,) = ReferenceEvaluator(model(inputs)).run(None, inputs)
    (mine,) = run_reference(import_onnx(model(inputs), AbeleContext()), inputs).outputs.values()

    def error(values: np.ndarray) -> float:
        return float(np.abs(values.astype(np.float64) - truth).mean())

    assert error(mine) < error(theirs)


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        (flat(), {"q_num_heads": 5, "kv_num_heads": 2}, r"5 heads of a tensor of \[2, 3, 32\]"),
        (heads(keys=3), {}, r"queries of \[2, 4, 3, 8\], keys of \[2, 3, 5, 8\]"),
        (heads() | {"attn_mask": floats(3, Q, S)}, {}, r"a mask of \[3, 3, 5\] for scores of"),
        (heads() | {"attn_mask": floats(Q, S + 1)}, {}, r"the last axis may have 5 at most"),
        (heads(), {"qk_matmul_output_mode": 4}, r"qk_matmul_output_mode 4; need 0 to 3"),
        (heads(), {"left_window_size": -2}, r"left_window_size -2; need -1 or more"),
        (heads(), {"q_num_heads": 2}, r"q_num_heads 2; operand 0 has 4 heads"),
        (
            heads() | {"past_key": floats(B, H, 4, D)},
            {},
            r"one of past_key and past_value; need both or none",
        ),
    ],
)
def test_shapes_that_contradict_each_other_are_refused(inputs, attributes, message: str):
    with pytest.raises(InputError, match=rf"node 'attention' \(Attention\): .*{message}"):
        import_onnx(model(inputs, **attributes), AbeleContext(), lenient=True)
