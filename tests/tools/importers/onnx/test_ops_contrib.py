"""Each form of an operator of onnxruntime computes the same as onnxruntime."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from abele.backends.reference import run_reference
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import UnsupportedError, import_onnx

B, S, T, H, D = 2, 3, 5, 2, 4
"""Batch, tokens, tokens of keys, heads, and size of a head."""

Operands = list[np.ndarray | None]


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def many(*shapes: tuple[int, ...]) -> Operands:
    return [floats(*shape, seed=i) for i, shape in enumerate(shapes)]


def ints(*values: int, dtype: Any = np.int32) -> np.ndarray:
    return np.array(values, dtype)


def model(operator: str, operands: Operands, outputs: int, domain: str, **attributes: Any):
    inputs = {f"x{i}": array for i, array in enumerate(operands) if array is not None}
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(operands)]
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(operator, names, results, "node", domain=domain, **attributes)],
        "graph",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in results],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), inputs


def assert_as_onnxruntime(proto: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    expected = session.run(None, inputs)
    found = run_reference(import_onnx(proto, AbeleContext()), inputs).outputs.values()
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=2e-5)


E = H * D
CACHE = many((8, D // 2), (8, D // 2))

FORMS: dict[str, tuple[str, Operands, int, dict[str, Any]]] = {
    "matmul": ("FusedMatMul", many((2, 3, 4), (2, 4, 5)), 1, {"alpha": 0.5}),
    "matmul transposed": (
        "FusedMatMul",
        many((2, 4, 3), (5, 4)),
        1,
        {"transA": 1, "transB": 1},
    ),
    "matmul of batches": (
        "FusedMatMul",
        many((3, 2, 4), (5, 2, 4)),
        1,
        {"transBatchA": 1, "transBatchB": 1, "transB": 1},
    ),
    "matmul of a vector": ("FusedMatMul", many((4,), (4, 3)), 1, {"transA": 1}),
    "gelu": ("Gelu", many((2, 3)), 1, {}),
    "bias gelu": ("BiasGelu", many((2, 3), (3,)), 1, {}),
    "fast gelu": ("FastGelu", many((2, 3)), 1, {}),
    "fast gelu with bias": ("FastGelu", many((2, 3), (3,)), 1, {}),
    "quick gelu": ("QuickGelu", many((2, 3)), 1, {"alpha": 1.5}),
    "skip norm": (
        "SkipLayerNormalization",
        [*many((B, S, E), (B, S, E), (E,), (E,), (E,))],
        1,
        {"epsilon": 1e-3},
    ),
    "skip norm of a broadcast skip": (
        "SkipLayerNormalization",
        many((B, S, E), (S, E), (E,)),
        1,
        {},
    ),
    "skip rms norm": (
        "SkipSimplifiedLayerNormalization",
        many((B, S, E), (B, S, E), (E,), (E,)),
        1,
        {},
    ),
    "embeddings": (
        "EmbedLayerNormalization",
        [
            *(np.array([[3, 1, 2], [0, 5, 6]], np.int32), np.array([[0, 1, 1]] * 2, np.int32)),
            *many((7, E), (4, E), (2, E), (E,), (E,)),
            np.array([[1, 1, 0], [1, 1, 1]], np.int32),
        ],
        3,
        {},
    ),
    "embeddings at given positions": (
        "EmbedLayerNormalization",
        [
            *(np.array([[3, 1, 2], [0, 5, 6]], np.int32), None),
            *(floats(7, E), floats(4, E, seed=1), None, floats(E, seed=2), floats(E, seed=3)),
            *(None, np.array([[3, 1, 2], [0, 1, 2]], np.int32)),
        ],
        2,
        {},
    ),
    "attention": ("Attention", many((B, S, 6), (6, 3 * E), (3 * E,)), 1, {"num_heads": H}),
    "attention with a mask": (
        "Attention",
        [*many((B, S, 6), (6, 3 * E), (3 * E,)), np.array([[1, 1, 0], [1, 1, 1]], np.int32)],
        1,
        {"num_heads": H, "unidirectional": 1},
    ),
    "attention with lengths and a bias": (
        "Attention",
        [*many((B, S, 6), (6, 3 * E), (3 * E,)), ints(2, 3), None, floats(1, H, S, S)],
        1,
        {"num_heads": H, "scale": 0.3},
    ),
    "attention with ends and starts": (
        "Attention",
        [*many((B, S, 6), (6, 3 * E), (3 * E,)), ints(2, 3, 0, 1)],
        1,
        {"num_heads": H},
    ),
    "attention with a past": (
        "Attention",
        [*many((B, S, 6), (6, 3 * E), (3 * E,)), None, floats(2, B, H, 4, D)],
        2,
        {"num_heads": H, "unidirectional": 1},
    ),
    "attention of other sizes": (
        "Attention",
        many((B, S, 6), (6, 22), (22,)),
        1,
        {"num_heads": H, "qkv_hidden_sizes": [8, 8, 6]},
    ),
    "heads": ("MultiHeadAttention", many((B, S, E), (B, T, E), (B, T, E)), 1, {"num_heads": H}),
    "heads with a bias and a mask": (
        "MultiHeadAttention",
        [
            *many((B, S, E), (B, T, E), (B, T, E), (3 * E,)),
            np.array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 0]], np.int32),
            floats(B, H, S, T),
        ],
        1,
        {"num_heads": H},
    ),
    "heads of four axes": (
        "MultiHeadAttention",
        many((B, S, E), (B, H, T, D), (B, H, T, D)),
        1,
        {"num_heads": H},
    ),
    "heads with a past": (
        "MultiHeadAttention",
        [*many((B, S, E), (B, S, E), (B, S, E)), None, None, None, *many((B, H, 4, D)) * 2],
        3,
        {"num_heads": H, "unidirectional": 1},
    ),
    "rotation": (
        "RotaryEmbedding",
        [floats(B, S, E), np.array([[0, 1, 2], [5, 6, 7]]), *CACHE],
        1,
        {},
    ),
    "rotation of neighbours from an offset": (
        "RotaryEmbedding",
        [floats(B, H, S, D), np.array([3]), *CACHE],
        1,
        {"interleaved": 1},
    ),
    "rotation of a part": (
        "RotaryEmbedding",
        [floats(B, S, H * 6), np.array([3]), *CACHE],
        1,
        {"num_heads": H, "rotary_embedding_dim": D},
    ),
    "conv": (
        "FusedConv",
        many((1, 2, 5, 5), (3, 2, 3, 3), (3,), (1, 3, 5, 5)),
        1,
        {"activation": "Relu", "pads": [1, 1, 1, 1]},
    ),
    "conv with parameters": (
        "FusedConv",
        many((1, 2, 5, 5), (3, 2, 3, 3)),
        1,
        {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
    ),
    "gemm": (
        "FusedGemm",
        many((3, 4), (4, 5), (5,)),
        1,
        {"activation": "LeakyRelu", "activation_alpha": 0.3, "alpha": 0.5},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_computes_the_same_as_onnxruntime(form: str):
    operator, operands, outputs, attributes = FORMS[form]
    assert_as_onnxruntime(*model(operator, operands, outputs, "com.microsoft", **attributes))


@pytest.mark.parametrize("operator", ["LayerNormalization", "SimplifiedLayerNormalization"])
def test_norms_that_onnxruntime_adds_to_the_domain_of_onnx(operator: str):
    proto, inputs = model(operator, many((B, S, E), (E,)), 1, "")
    proto.opset_import[0].version = 13
    assert_as_onnxruntime(proto, inputs)


def test_the_sum_of_a_skip_is_a_result():
    operands = many((B, S, E), (B, S, E), (E,), (E,), (E,))
    proto, inputs = model("SkipLayerNormalization", operands, 4, "com.microsoft")
    proto.graph.node[0].output[1] = proto.graph.node[0].output[2] = ""
    del proto.graph.output[1:3]
    assert_as_onnxruntime(proto, inputs)


@pytest.mark.parametrize("count", [2, 3])
def test_heads_that_are_packed_into_one_operand_are_the_same_heads(count: int):
    """onnxruntime packs keys and values, or all three, for GPUs only."""
    apart = many((B, T, E), (B, T, E), (B, T, E))
    packed = np.stack([each.reshape(B, T, H, D) for each in apart[-count:]], axis=3)
    results = [
        next(iter(run_reference(import_onnx(proto, AbeleContext()), inputs).outputs.values()))
        for proto, inputs in (
            model("MultiHeadAttention", operands, 1, "com.microsoft", num_heads=H)
            for operands in (apart, [*apart[:-count], packed])
        )
    ]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("operator", "operands", "attributes", "message"),
    [
        ("Gelu", many((2,)), {"odd": 1}, r"attribute odd is not supported;"),
        (
            "Attention",
            many((B, S, 6), (6, 3 * E)),
            {"num_heads": H, "do_rotary": 1},
            r"do_rotary 1 is not supported; 0 is",
        ),
        (
            "Attention",
            [*many((B, S, 6), (6, 3 * E)), None, np.ones((B, 1, 9, 9), np.int32)],
            {"num_heads": H},
            r"a mask of \[2, 1, 9, 9\] is not supported",
        ),
        (
            "FusedGemm",
            many((2, 3), (3, 4)),
            {"activation": "Softmax"},
            r"activation Softmax is not supported; Relu, Tanh",
        ),
        ("MultiHeadAttention", many((B, S, E)), {"num_heads": H}, r"need a query, key and value"),
        ("Attention", many((B, S, 6), (6, 3 * E)), {"num_heads": 0}, r"num_heads 0; need 1"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(operator, operands, attributes, message):
    proto, _ = model(operator, operands, 1, "com.microsoft", **attributes)
    with pytest.raises((InputError, UnsupportedError), match=message):
        import_onnx(proto, AbeleContext())
