"""Operands whose size depends on values: no operator reads the padding that follows them.

Every padded result is overwritten in its padding, with NaN or with an index that no axis has.
"""

from __future__ import annotations

import re
from pathlib import Path
from runpy import run_path

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.dialects.dtypes import numpy_dtype
from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.driver.context import new_context
from abele.tools.driver.program import signature
from abele.tools.importers import import_onnx
from abele.tools.importers.building import Known
from abele.tools.importers.errors import NotConstantError
from abele.tools.importers.onnx import reader
from abele.tools.importers.onnx.node import Importer, Node, Results
from abele.tools.importers.onnx.ops_sized import SIZED, SIZED_OF_MICROSOFT
from abele.tools.importers.padding import existing, mark
from abele.tools.testing.onnx_graphs.runtimes import by_onnxruntime

HEADER = '<ir_version: 10, opset_import: ["" : 20]> g (float[6, 3] d, bool[6] c, float[5] v) => '


def model(body: str, result: str = "float[N, M] y") -> onnx.ModelProto:
    return parser.parse_model(f"{HEADER} ({result}) {{ p = Compress <axis = 0> (d, c) {body} }}")


def poisoned(node: Node, value: SSAValue) -> SSAValue:
    """The value with other padding."""
    sizes = node.graph.sizes[value]
    element = nn.element_of(value)
    poison = np.nan if isinstance(element, AnyFloat) else 99
    number = nn.ConstantOp(node.graph.context.blobs.add(np.array(poison, numpy_dtype(element))))
    exists = existing(node, value, sizes)
    other = node.append(nn.SelectOp(exists, value, node.add(number))).result
    return mark(node, other, sizes)


@pytest.fixture(autouse=True)
def poison(monkeypatch: pytest.MonkeyPatch) -> None:
    original = reader.read_sized

    def read(node: Node, importer: Importer) -> Results:
        results = original(node, importer)
        values = [results] if isinstance(results, SSAValue | Known) else list(results)
        return [poisoned(node, v) if v in node.graph.sizes else v for v in values]

    monkeypatch.setattr(reader, "read_sized", read)


DATA = np.random.default_rng(3).normal(size=(6, 3)).astype(np.float32)
VECTOR = np.array([0, 2.5, 0, -1, 3], np.float32)
CONDITIONS = (
    np.array([1, 0, 0, 1, 1, 0], bool),
    np.ones(6, bool),
    np.array([0, 0, 0, 0, 0, 1], bool),
)
AXES = "a = Constant <value_ints = [0]> ()"
ONE = "a = Constant <value_ints = [1]> ()"
INDEX = "z = NonZero (v) i = Squeeze (z, a)"

IMAGE = "ax = Constant <value_ints = [1, 3]> () im = Unsqueeze (p, ax) "
SHAPE = "sh = Shape (p) "
FILTER = (
    "fv = Constant <value_floats = [1.0, 2.0]> () fs = Constant <value_ints = [1, 1, 2, 1]> () "
    "f = Reshape (fv, fs) "
)
ROW = "r = Constant <value_floats = [1.0, 2.0, 3.0]> () "
POSITIONS = AXES + " i = NonZero (v) j = Squeeze (i, a) "

GRAPHS = {
    "a convolution of each sample": IMAGE + FILTER + "y = Conv (im, f)",
    "a transposed convolution": IMAGE + FILTER + "y = ConvTranspose (im, f)",
    "the largest in windows": IMAGE + "y = MaxPool <kernel_shape = [2, 1]> (im)",
    "means of windows": IMAGE + "y = AveragePool <kernel_shape = [2, 1]> (im)",
    "the mean of an image": IMAGE + "y = GlobalAveragePool (im)",
    "the largest of an image": IMAGE + "y = GlobalMaxPool (im)",
    "an image normalised": IMAGE + "o = Constant <value_floats = [1.0]> () "
    "y = InstanceNormalization (im, o, o)",
    "channels normalised": ROW + "y = BatchNormalization (p, r, r, r, r)",
    "channels as pixels": IMAGE + "t = Transpose <perm = [0, 2, 1, 3]> (im) "
    "y = DepthToSpace <blocksize = 1> (t)",
    "pixels as channels": IMAGE + "y = SpaceToDepth <blocksize = 1> (im)",
    "rows normalised": ROW + "y = LayerNormalization (p, r)",
    "zeros as many": SHAPE + "z = ConstantOfShape (sh) y = Add (z, p)",
    "a row as often": SHAPE + ROW + "y = Expand (r, sh)",
    "rows as vectors": "y = Flatten (p)",
    "an affine map": ROW + "e = Constant <value_ints = [3, 1]> () w = Reshape (r, e) "
    "y = Gemm (p, w)",
    "a product by letters": 'y = Einsum <equation = "ij,kj->ik"> (p, d)',
    "elements by index": "s = ArgMax <axis = 1> (p) y = GatherElements <axis = 1> (p, s)",
    "elements added by index": POSITIONS + "k = Cast <to = 1> (j) "
    'y = ScatterElements <reduction = "add"> (v, j, k)',
    "elements replaced by index": POSITIONS + "k = Cast <to = 1> (j) y = ScatterElements (v, j, k)",
    "rows replaced": ONE + " i = NonZero (v) j = Transpose (i) k = Cast <to = 1> (j) "
    "g = Squeeze (k, a) y = ScatterND (v, j, g)",
    "rows of zeros behind": "e = Constant <value_ints = [1, 0, 2, 0]> () y = Pad (p, e)",
    "two parts of rows": ONE + " e = Constant <value_ints = [1, 2]> () "
    "q, y = Split <axis = 1> (p, e)",
    "rows twice": "e = Constant <value_ints = [2, 1]> () y = Tile (p, e)",
    "a triangle": "y = Trilu (p)",
    "one of three": "e = Constant <value_ints = [0]> () i = NonZero (v) j = Squeeze (i, e) "
    "n = Constant <value_int = 5> () o = Constant <value_floats = [0.0, 1.0]> () "
    "y = OneHot (j, n, o)",
    "bytes and back": "s = Constant <value_float = 0.1> () q = QuantizeLinear (p, s) "
    "y = DequantizeLinear (q, s)",
    "the slices themselves": "y = Identity (p)",
    "a function of each element": "q = Exp (p) y = Sub (q, p)",
    "a row added to each": "r = Constant <value_floats = [1.0, 2.0, 3.0]> () y = Add (p, r)",
    "a sum": AXES + " y = ReduceSum <keepdims = 0> (p, a)",
    "a sum along another axis": ONE + " y = ReduceSum <keepdims = 0> (p, a)",
    "a sum of all": "y = ReduceSum (p)",
    "a maximum": AXES + " y = ReduceMax (p, a)",
    "a minimum": AXES + " y = ReduceMin (p, a)",
    "a product": AXES + " y = ReduceProd (p, a)",
    "a mean": AXES + " y = ReduceMean (p, a)",
    "a norm": AXES + " y = ReduceL2 (p, a)",
    "a logarithm of exponentials": AXES + " y = ReduceLogSumExp (p, a)",
    "where the largest is": "y = ArgMax <axis = 0> (p)",
    "where the smallest is": "y = ArgMin <axis = 0, keepdims = 0> (p)",
    "softmax": "y = Softmax <axis = 0> (p)",
    "a running sum from the end": "o = Constant <value_int = 0> () y = CumSum <reverse = 1> (p, o)",
    "the largest": ONE + " y, i = TopK <axis = 0> (p, a)",
    "the smallest": ONE + " y, i = TopK <axis = 0, largest = 0> (p, a)",
    "as many of the largest as are computed": ONE + " i = NonZero (v) s = Shape (i)"
    " k = Gather (s, a) y, j = TopK <axis = 0> (d, k)",
    "rows by index": AXES + INDEX + " y = Gather <axis = 0> (d, i)",
    "elements by coordinates": AXES + " z = NonZero (d) t = Transpose (z) y = GatherND (d, t)",
    "the last row": "e = Constant <value_ints = [-1]> () y = Gather <axis = 0> (p, e)",
    "a column": "e = Constant <value_int = 1> () y = Gather <axis = 1> (p, e)",
    "rows as columns": "y = Transpose (p)",
    "one axis": "e = Constant <value_ints = [-1]> () y = Reshape (p, e)",
    "rows in two parts": "e = Constant <value_ints = [0, 1, 3]> () y = Reshape (p, e)",
    "a further axis": AXES + " y = Unsqueeze (p, a)",
    "the first rows": AXES + " e = Constant <value_ints = [2]> () y = Slice (p, a, e, a)",
    "rows side by side": "y = Concat <axis = 1> (p, p)",
    "the shape": "y = Shape (p)",
    "the number of elements": "y = Size (p)",
    "a product of rows": "t = Transpose (p) y = MatMul (t, p)",
    "a product with a matrix": "t = Transpose (d) y = MatMul (p, t)",
    "a range": AXES + " s = Shape (p) n = Gather <axis = 0> (s, a) m = Squeeze (n, a)"
    " o = Constant <value_int = 1> () k = Constant <value_int = 2> () y = Range (o, m, k)",
    "what is not 0 of it": "q = Relu (p) y = NonZero (q)",
    "a part of it": "e = Constant <value_int = 0> () q = Gather <axis = 1> (p, e)"
    " o = Constant <value_float = 0.0> () g = Greater (q, o) y = Compress <axis = 0> (p, g)",
}

INTEGERS = {
    "where the largest is",
    "where the smallest is",
    "the shape",
    "the number of elements",
    "a range",
    "what is not 0 of it",
}
RANKS = {
    "a sum": "N",
    "a sum along another axis": "N",
    "where the smallest is": "N",
    "elements by coordinates": "N",
    "a column": "N",
    "one axis": "N",
    "rows in two parts": "N, M, K",
    "a further axis": "N, M, K",
    "the shape": "N",
    "the number of elements": "",
    "a range": "N",
    **dict.fromkeys(
        (
            *("a convolution of each sample", "a transposed convolution", "an image normalised"),
            *("the largest in windows", "means of windows", "the mean of an image"),
            *("the largest of an image", "channels as pixels", "pixels as channels"),
        ),
        "N, M, K, L",
    ),
    **dict.fromkeys(
        ("elements added by index", "elements replaced by index", "rows replaced"), "N"
    ),
}


def result_of(name: str) -> str:
    sizes, kind = RANKS.get(name, "N, M"), "int64" if name in INTEGERS else "float"
    return f"{kind}[{sizes}] y" if sizes else f"{kind} y"


@pytest.mark.parametrize("name", GRAPHS)
def test_an_operator_does_not_read_padding(name: str):
    proto = model(GRAPHS[name], result_of(name))
    module = import_onnx(proto, new_context())
    for condition in CONDITIONS:
        given = {"d": DATA, "c": condition, "v": VECTOR}
        inputs = {each.name: given[each.name] for each in signature(module).inputs}
        (expected,) = ReferenceEvaluator(proto).run(None, given)
        found = signature(module).trimmed(run_reference(module, inputs).outputs)["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, strict=True)


TABLE = (
    "t = Constant <value = uint8[5, 8] {" + ", ".join(map(str, range(40))) + "}> () "
    "s = Constant <value = float[5, 1] {0.5, 1.0, 2.0, 4.0, 8.0}> () "
)
ANGLES = "ca = Constant <value = float[6, 2] {" + ", ".join(f"0.{i}" for i in range(12)) + "}> () "
OF_MICROSOFT = {
    "a curve": "q = com.microsoft.Gelu (p) y = com.microsoft.QuickGelu (q)",
    "a curve of a sum": ROW + "q = com.microsoft.BiasGelu (p, r) y = com.microsoft.FastGelu (q, r)",
    "a sum normalised": ROW + "y = com.microsoft.SkipLayerNormalization (p, p, r)",
    "rows divided": ROW + "y = SimplifiedLayerNormalization (p, r)",
    "packed rows": AXES + " i = NonZero (v) j = Squeeze (i, a) " + TABLE + "y = "
    "com.microsoft.GatherBlockQuantized <block_size = 16, bits = 4, quantize_axis = 1> (t, j, s)",
    "turned rows": AXES + " o = Constant <value_ints = [1]> () e = Constant <value_ints = [4]> () "
    "q = Concat <axis = 1> (p, p) l = Slice (q, a, e, o) u = Unsqueeze (l, a) " + ANGLES + "w = "
    "com.microsoft.RotaryEmbedding <num_heads = 1> (u, a, ca, ca) y = Squeeze (w, a)",
}


@pytest.mark.parametrize("name", OF_MICROSOFT)
def test_an_operator_of_onnxruntime_does_not_read_padding(name: str):
    proto = model(OF_MICROSOFT[name])
    proto.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    module = import_onnx(proto, new_context())
    for condition in CONDITIONS:
        given = {"d": DATA, "c": condition, "v": VECTOR}
        inputs = {each.name: given[each.name] for each in signature(module).inputs}
        expected = by_onnxruntime(proto, given)["y"]
        found = signature(module).trimmed(run_reference(module, inputs).outputs)["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, strict=True)


EXAMPLES = Path(__file__).parents[4] / "examples"


def decoder(name: str) -> tuple[onnx.ModelProto, dict[str, int]]:
    """A decoder with a cache of one size, and the sizes of its inputs but for the new tokens."""
    if name == "genai":
        make = run_path(str(EXAMPLES / "make_packed_decoder.py"))
        whole = dict.fromkeys(("past_sequence_length", "total_sequence_length"), 8)
        return make["small"](make["Sizes"](layers=1, longest=8)), {"batch_size": 1, **whole}
    make = run_path(str(EXAMPLES / "make_decoders.py"))
    sizes = {"batch_size": 1, "max_length": 8}
    return make["MODELS"][name](make["Sizes"](layers=1, longest=8)), sizes


@pytest.mark.parametrize(("before", "count"), [(0, 4), (3, 1), (6, 2)])
@pytest.mark.parametrize("name", ["grouped", "packed", "scattered", "genai"])
def test_a_decoder_does_not_read_padding(name: str, before: int, count: int):
    """Tokens that do not exist change no score, and no row of a cache, also at its end."""
    proto, sizes = decoder(name)
    rng, total = np.random.default_rng(1), before + count
    exact = import_onnx(proto, new_context(), dims={**sizes, "sequence_length": count})
    given: dict[str, np.ndarray] = {}
    for each in signature(exact).inputs:
        given[each.name] = rng.normal(size=each.shape).astype(each.dtype)
    given["input_ids"] = rng.integers(0, 97, (1, count))
    given["attention_mask"] = (np.arange(8) < total).astype(np.int64)[None]
    given["write_indices"], given["nonpad_kv_seqlen"] = np.array([before]), np.array([total])
    given = {each.name: given[each.name] for each in signature(exact).inputs}
    wanted = run_reference(exact, given).outputs
    module = import_onnx(proto, new_context(), dims={**sizes, "sequence_length": (1, 4)})
    padded = signature(module).padded(given)
    outputs = run_reference(module, padded).outputs
    found = signature(module).trimmed(outputs)
    for key, array in wanted.items():
        np.testing.assert_allclose(found[key], array, rtol=1e-4, atol=1e-5, strict=True)


def test_every_operator_that_reads_padding_is_tried():
    similar = {
        "LRN",
        "ReduceL1",
        "ReduceSumSquare",
        "ReduceLogSum",
        "LogSoftmax",
        "CumProd",
        "Flatten",
    }
    # Unique refuses padding; the others have tests of their own.
    others = {"RMSNormalization", "Unique", "Scatter", "NonMaxSuppression", "If", "Loop"}
    others |= {"Attention", "TensorScatter"}
    bodies = (*GRAPHS.values(), *OF_MICROSOFT.values())
    tried = {word for body in bodies for word in re.split(r"[ (.]", body)}
    missing = set(SIZED) - set(reader.ELEMENTWISE) - tried - similar - others
    assert not missing
    of_decoders = {"MatMulNBits", "GroupQueryAttention", "SkipSimplifiedLayerNormalization"}
    assert not set(SIZED_OF_MICROSOFT) - tried - of_decoders


def test_what_cannot_keep_padding_from_its_result_names_the_inputs_that_decide_the_size():
    proto = model("y = Unique (p)", "float[N] y")
    with pytest.raises(NotConstantError, match=r"size of axis 0 of operand 0 'p' depends.*\(c\)"):
        import_onnx(proto, new_context())
    with pytest.raises(NotConstantError, match=r"operator Hardmax .* axis 0 of operand 0"):
        import_onnx(model("y = Hardmax (p)"), new_context())


def test_a_scan_refuses_padding():
    proto = model(
        "z = Constant <value_floats = [0.0, 0.0, 0.0]> () "
        "l, y = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] r) => "
        "(float[3] t, float[3] u) { t = Add (s, r) u = Identity (r) }> (z, p)"
    )
    with pytest.raises(NotConstantError, match=r"operator Scan .* axis 0 of operand 1 'p'.*\(c\)"):
        import_onnx(proto, new_context())


def test_a_size_is_folded_where_the_values_that_decide_it_are_known():
    proto = model("y = Unique (p)", "float[N] y")
    module = import_onnx(proto, new_context(), values={"c": CONDITIONS[0]})
    (each,) = signature(module).outputs
    assert each.shape == (9,)


@pytest.mark.parametrize("at", ["nn", "tile", "exchange"])
def test_the_host_trims_outputs_at_every_level(at: str):
    proto = model("t = Transpose (p)", "float[N, 3] p, float[3, N] t")
    exe = compile_model(proto, "tiny:4")
    assert [(each.name, each.shape) for each in exe.outputs] == [("p", (6, 3)), ("t", (3, 6))]
    found = exe.run({"d": DATA, "c": CONDITIONS[0], "v": VECTOR}, at=at)
    np.testing.assert_array_equal(found["p"], DATA[CONDITIONS[0]], strict=True)
    np.testing.assert_array_equal(found["t"], DATA[CONDITIONS[0]].T, strict=True)


def test_a_size_of_something_that_is_no_result_is_refused():
    module = import_onnx(model("y = Identity (p)"), new_context())
    module.attributes["abele.result_sizes"] = nn.integers([1])
    with pytest.raises(InputError, match=r'abele.result_sizes: .* need \["result", axis, "size"\]'):
        signature(module)
