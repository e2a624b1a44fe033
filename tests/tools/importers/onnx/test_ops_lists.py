"""Sequences and optionals, which are resolved at import."""

import numpy as np
import onnx
import pytest
from onnx import parser

from abele.backends.reference import run_reference
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx
from abele.tools.onnx_backend import AbeleBackend

F = np.float32


def model(inputs: str, outputs: str, nodes: str) -> onnx.ModelProto:
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]>\nmain ({inputs}) => ({outputs}) {{ {nodes} }}'
    )


def run(proto: onnx.ModelProto, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    return run_reference(import_onnx(proto, AbeleContext()), inputs).outputs


def test_a_sequence_is_built_changed_and_put_together():
    nodes = """
    one = Constant <value = int64 {1}> ()
    last = Constant <value = int64 {-1}> ()
    s = SequenceConstruct (x, y)
    t = SequenceInsert (s, z, one)
    n = SequenceLength (t)
    e = SequenceAt (t, last)
    u = SequenceErase (t, last)
    c = ConcatFromSequence <axis = 0> (u)
    d = ConcatFromSequence <axis = 1, new_axis = 1> (u)
    """
    outputs = "int64 n, float[2] e, float[4] c, float[2, 2] d"
    x, y, z = (np.array([i, -i], F) for i in (1, 2, 3))
    found = run(model("float[2] x, float[2] y, float[2] z", outputs, nodes), x=x, y=y, z=z)
    assert found["n"] == 3
    np.testing.assert_array_equal(found["e"], y)
    np.testing.assert_array_equal(found["c"], [*x, *z])
    np.testing.assert_array_equal(found["d"], np.stack([x, z], 1))


def test_a_tensor_is_split_into_a_sequence_that_a_graph_maps():
    nodes = """
    two = Constant <value = int64 {2}> ()
    s = SplitToSequence <axis = 0> (x, two)
    t = SequenceMap (s, b) <
      body = each (float[n] p, float q) => (float[n] r) { r = Mul (p, q) }
    >
    y = ConcatFromSequence <axis = 0> (t)
    """
    x = np.arange(5, dtype=F)
    found = run(model("float[5] x, float b", "float[5] y", nodes), x=x, b=np.array(2, F))
    np.testing.assert_array_equal(found["y"], 2 * x)


def test_a_position_that_is_data_looks_equal_tensors_up():
    nodes = "s = SequenceConstruct (x, y) e = SequenceAt (s, at)"
    proto = model("float[2] x, float[2] y, int64 at", "float[2] e", nodes)
    x, y = np.array([1, 2], F), np.array([3, 4], F)
    for at, need in ((0, x), (1, y)):
        np.testing.assert_array_equal(run(proto, x=x, y=y, at=np.array(at))["e"], need)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("s = SequenceConstruct (x, x) y = Relu (s)", "reads 's', which is a sequence; need a"),
        ("y = SequenceLength (x)", "operand 0 is a tensor; need a sequence"),
        (
            "i = Constant <value = int64 {2}> () s = SequenceConstruct (x, x) "
            "y = SequenceAt (s, i)",
            r"position 2 in a sequence of 2; need -2\.\.1",
        ),
        (
            "s = SequenceEmpty () y = ConcatFromSequence <axis = 0> (s)",
            "the sequence has no elements",
        ),
        (
            "o = Optional <type = float[2]> () y = OptionalGetElement (o)",
            "the optional holds no value",
        ),
    ],
)
def test_what_a_list_does_not_have_is_named(nodes: str, message: str):
    proto = model("float[2] x", "float[2] y", nodes)
    with pytest.raises(InputError, match=message):
        import_onnx(proto, AbeleContext(), lenient=True)


def test_the_backend_takes_and_returns_lists():
    nodes = "n = SequenceLength (s) t = SequenceInsert (s, x)"
    proto = model("seq(float[k]) s, float[2] x", "int64 n, seq(float[k]) t", nodes)
    x, parts = np.array([5, 6], F), [np.array([1], F), np.array([2, 3, 4], F)]
    prepared = AbeleBackend.prepare(proto)
    for count in (2, 1, 0):
        n, found = prepared.run([parts[:count], x])
        assert n == count
        assert [each.tolist() for each in found] == [p.tolist() for p in (*parts[:count], x)]
