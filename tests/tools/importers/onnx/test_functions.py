import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, parser

from abele.backends.reference import run_reference
from abele.dialects.levels import NN
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.ir.provenance import origin_names
from abele.ir.verify import verify
from abele.tools.importers import UnsupportedError, import_onnx
from abele.tools.importers.onnx import functions

HEADS = {"q_num_heads": 2, "kv_num_heads": 2}


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def outputs_of(model: onnx.ModelProto, *inputs: np.ndarray, **options) -> list[np.ndarray]:
    module = import_onnx(model, AbeleContext(), **options)
    verify(module, NN)
    names = [each.name for each in model.graph.input]
    given = dict(zip(names, inputs, strict=True))
    return list(run_reference(module, given).outputs.values())


def assert_as_onnxruntime(model: onnx.ModelProto, *inputs: np.ndarray) -> None:
    names = [each.name for each in model.graph.input]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, dict(zip(names, inputs, strict=True)))
    for mine, other in zip(outputs_of(model, *inputs), expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


def one(operator: str, *shapes: tuple[int, ...], opset: int = 28, **attributes) -> onnx.ModelProto:
    names = [f"x{i}" for i in range(len(shapes))]
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], "outer", **attributes)],
        "graph",
        [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
            for n, s in zip(names, shapes, strict=True)
        ],
        [helper.make_empty_tensor_value_info("y")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def calling(functions_: str, call: str = "y = own.Twice (x)", inputs: str = "float[2,3] x"):
    """A model that imports the domain `own`, and defines functions in it."""
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 22, "own" : 1]>'
        f"model ({inputs}) => (float[N,M] y) {{ {call} }}\n{functions_}"
    )


LEAK = "b = LeakyRelu <alpha: float = @alpha> (a)"
HEAD = '<domain: "own", opset_import: ["" : 22, "own" : 1]>'
TWICE = HEAD + "Twice (a) => (b) { b = Add (a, a) }"


# Operators of ONNX


@pytest.mark.parametrize(
    ("model", "shapes"),
    [
        (one("MeanVarianceNormalization", (2, 3, 4, 5), opset=13), [(2, 3, 4, 5)]),
        (
            one(
                "Attention",
                (1, 3, 8),
                (1, 5, 8),
                (1, 5, 8),
                q_num_heads=2,
                kv_num_heads=2,
                opset=23,
            ),
            [(1, 3, 8), (1, 5, 8), (1, 5, 8)],
        ),
        (
            one("RotaryEmbedding", (1, 2, 3, 4), (1, 3, 2), (1, 3, 2), opset=23),
            [(1, 2, 3, 4), (1, 3, 2), (1, 3, 2)],
        ),
    ],
)
def test_an_operator_with_a_function_body_is_inlined(model, shapes):
    assert_as_onnxruntime(model, *(floats(*s, seed=i) for i, s in enumerate(shapes)))


def test_an_attribute_that_is_left_out_has_the_default_of_the_operator():
    model = one("SwiGLU", (2, 3), (2, 3))
    x, y = floats(2, 3), floats(2, 3, seed=1)
    (found,) = outputs_of(model, x, y)
    np.testing.assert_allclose(found, x / (1 + np.exp(-x)) * y, rtol=1e-5)


def test_operations_of_a_body_are_named_after_the_outer_node():
    module = import_onnx(one("SwiGLU", (2, 3), (2, 3)), AbeleContext())
    names = {name for op in module.walk() for name in origin_names(op)} - {"main"}
    assert "outer" in names
    assert all(name == "outer" or name.startswith("outer/") for name in names)


# Functions of a model


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (TWICE, "y = own.Twice (x)"),
        (TWICE, "y0 = own.Twice (x) y = own.Twice (y0)"),
        (
            HEAD + "Four (a) => (b) { c = own.Twice (a) b = own.Twice (c) }\n" + TWICE,
            "y = own.Four (x)",
        ),
    ],
)
def test_a_function_of_the_model_is_inlined(text: str, call: str):
    assert_as_onnxruntime(calling(text, call), floats(2, 3))


LEAKY = HEAD + "Leaky <alpha: float = 0.25> (a) => (b) {" + LEAK + "}"


@pytest.mark.parametrize(
    ("call", "alpha"),
    [("y = own.Leaky (x)", 0.25), ("y = own.Leaky <alpha = 0.5> (x)", 0.5)],
)
def test_attributes_are_bound_to_the_outer_node_or_to_their_defaults(call: str, alpha: float):
    x = floats(2, 3)
    (found,) = outputs_of(calling(LEAKY, call), x)
    np.testing.assert_array_equal(found, np.where(x < 0, np.float32(alpha) * x, x))


def test_a_parameter_that_is_left_out_is_left_out_inside():
    text = HEAD + "Bounded (a, most) => (b) { b = Clip (a, , most) }"
    x = 5 * floats(2, 3)
    (found,) = outputs_of(calling(text, "y = own.Bounded (x)"), x)
    np.testing.assert_array_equal(found, x)


def test_nodes_that_no_named_result_needs_are_not_imported():
    text = HEAD + "Pair (a) => (b, c) { b = Add (a, a) c = ImageDecoder (a) }"
    x = floats(2, 3)
    (found,) = outputs_of(calling(text, "y = own.Pair (x)"), x)
    np.testing.assert_array_equal(found, x + x)


def test_an_unsupported_node_of_a_body_is_named_below_the_outer_node():
    text = HEAD + "Odd (a) => (b) { b = ImageDecoder (a) }"
    model = calling(text, "y = own.Odd (x)")
    model.graph.node[0].name = "call"
    with pytest.raises(UnsupportedError, match=r"node 'call/ImageDecoder': operator ImageDecoder"):
        outputs_of(model, floats(2, 3))


@pytest.mark.parametrize(
    ("text", "call", "message"),
    [
        (
            HEAD + "A (a) => (b) { b = own.B (a) }\n" + HEAD + "B (a) => (b) { b = own.A (a) }",
            "y = own.A (x)",
            r"the function calls itself: A calls B calls A",
        ),
        (
            HEAD + "A (a) => (b) { b = own.A (a) }",
            "y = Relu (x)",
            r"the function calls itself: A calls A",
        ),
        (TWICE, "y = own.Twice (x, x)", r"operand 1 'x': the function has 1"),
        (
            HEAD + "Leaky <alpha> (a) => (b) {" + LEAK + "}",
            "y = own.Leaky (x)",
            r"attribute alpha is missing; the function needs it",
        ),
        (
            HEAD + "Twice (a) => (b) { b = Add (a, c) }",
            "y = own.Twice (x)",
            r"node '.*/Add' \(Add, in the function body of Twice\) reads 'c', which is not",
        ),
        (
            HEAD + "Twice (a) => (b) { c = Add (a, a) }",
            "y = own.Twice (x)",
            r"result 0 of node 'y' \(Twice\) reads 'b'",
        ),
        (
            HEAD + "Twice (a, a) => (b) { b = Add (a, a) }",
            "y = own.Twice (x, x)",
            r"function 'Twice': two parameters are called 'a'",
        ),
    ],
)
def test_a_broken_function_is_an_error_that_names_the_node(text: str, call: str, message: str):
    with pytest.raises(InputError, match=message):
        outputs_of(calling(text, call), floats(2, 3))


def test_functions_that_grow_exponentially_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ABELE_MOST_INLINED_NODES", "100")
    text = "\n".join(
        HEAD + f"F{i} (a) => (b) {{ c = own.F{i + 1} (a) b = own.F{i + 1} (c) }}" for i in range(9)
    )
    last = HEAD + "F9 (a) => (b) { b = Neg (a) }"
    monkeypatch.setattr(functions, "inlined", None)
    refusal = "functions of 1,534 nodes, .*; at most 100 inlined nodes are allowed"
    with pytest.raises(InputError, match=refusal):
        outputs_of(calling(f"{text}\n{last}", "y = own.F0 (x)"), floats(2, 3))


def test_nodes_of_bodies_that_onnx_defines_count_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ABELE_MOST_INLINED_NODES", "2")
    nodes = "t = Constant <value_ints = [0, 2]> () b = NegativeLogLikelihoodLoss (a, t)"
    call = HEAD + f"F (a) => (b) {{ {nodes} }}"
    with pytest.raises(InputError, match=r"functions of \d+ nodes, .*; at most 2 inlined nodes"):
        outputs_of(calling(call, "y = own.F (x)"), floats(2, 3))


def test_functions_inside_one_another_have_a_deepest_level(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(functions, "DEEPEST", 2)
    text = "\n".join(HEAD + f"F{i} (a) => (b) {{ b = own.F{i + 1} (a) }}" for i in range(2))
    last = HEAD + "F2 (a) => (b) { b = Neg (a) }"
    with pytest.raises(InputError, match=r"3 functions inside one another; need 2 or fewer"):
        outputs_of(calling(f"{text}\n{last}", "y = own.F0 (x)"), floats(2, 3))
