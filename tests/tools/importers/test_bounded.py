"""Models whose sizes have bounds: for every length, they compute what they do for this size alone.

The padding of inputs holds NaN, or an index that no axis has.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from abele.backends.faults import IndexFault
from abele.backends.reference import run_reference
from abele.ir.errors import InputError
from abele.tools.driver.context import new_context
from abele.tools.driver.program import signature
from abele.tools.importers import import_onnx
from abele.tools.importers.errors import NotConstantError

INPUTS = (
    "float[2, past, 4] a, float[2, new, 4] b, float[3, past] c, int64[past] i, "
    "float[2, total, 4] d, float[new, past] e"
)
RUNS = ((0, 1), (1, 1), (2, 3), (4, 2), (5, 3))


def model(body: str, result: str) -> onnx.ModelProto:
    text = f'<ir_version: 10, opset_import: ["" : 23]> g ({INPUTS}) => ({result}) {{ {body} }}'
    proto = parser.parse_model(text)
    for each in proto.graph.input:
        for dim in each.type.tensor_type.shape.dim:
            if dim.dim_param == "total":
                dim.dim_param = "past + new"
    return proto


def arrays(past: int, new: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(past * 10 + new)
    shapes = {
        "a": (2, past, 4),
        "b": (2, new, 4),
        "c": (3, past),
        "d": (2, past + new, 4),
        "e": (new, past),
    }
    found = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return {**found, "i": random.integers(0, 2, past)}


def poisoned(padded: Mapping[str, object], given: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Inputs in their largest shapes, with other padding."""
    found = dict(padded)
    for name, array in given.items():
        wide = np.array(padded[name])
        wide[...] = np.nan if wide.dtype.kind == "f" else 99
        wide[tuple(slice(n) for n in array.shape)] = array
        found[name] = wide
    return found


POSITIONS = "s = Shape <start = 1, end = 2> (a) n = Squeeze (s) "
ENDS = "t = Shape <start = 1, end = 2> (b) m = Squeeze (t) k = Add (n, m) "
ZERO = "z = Constant <value_int = 0> () o = Constant <value_int = 1> () "
VECTORS = "zv = Constant <value_ints = [0]> () ov = Constant <value_ints = [1]> () "
LAST_ROW = VECTORS + (
    "t = Transpose <perm = [1, 0, 2]> (d) w = Constant <value_ints = [-1]> () "
    "q = Constant <value_ints = [1, 2, 4]> () x = ConstantOfShape (q) "
)

GRAPHS = {
    "a join": "y = Concat <axis = 1> (a, b)",
    "a join of three": "y = Concat <axis = 1> (b, a, b)",
    "a join that begins with one row": "w = Constant <value_floats = [1.0, 2.0]> () "
    "u = Constant <value_ints = [2, 1, 1]> () v = Reshape (w, u) "
    "q = Constant <value_ints = [2, 1, 4]> () x = Expand (v, q) y = Concat <axis = 1> (x, a, x)",
    "an operand as long as a join": "p = Concat <axis = 1> (a, b) y = Add (p, d)",
    "positions": POSITIONS + ENDS + ZERO + "y = Range (n, k, o)",
    "positions backwards": POSITIONS + ENDS + ZERO + "h = Constant <value_int = -1> () "
    "y = Range (k, z, h)",
    "a mask by position": POSITIONS + ENDS + ZERO + VECTORS + "r = Range (n, k, o) "
    "j = Range (z, k, o) u = Unsqueeze (r, ov) l = LessOrEqual (j, u) y = Cast <to = 1> (l)",
    "scores of attention": "p = Concat <axis = 1> (a, b) t = Transpose <perm = [0, 2, 1]> (p) "
    "s = MatMul (b, t) w = Softmax <axis = -1> (s) y = MatMul (w, p)",
    "the mean of what exists": VECTORS + "y = ReduceMean <keepdims = 0> (d, ov)",
    "the mean of all": "y = ReduceMean <keepdims = 0> (d)",
    "rows joined": "u = Constant <value_ints = [-1, 4]> () y = Reshape (b, u)",
    "rows joined and split": "u = Constant <value_ints = [-1, 4]> () v = Reshape (d, u) "
    "s = Shape (d) y = Reshape (v, s)",
    "heads": "u = Constant <value_ints = [0, 0, 2, 2]> () v = Reshape (d, u) "
    "y = Transpose <perm = [0, 2, 1, 3]> (v)",
    "all elements": "u = Constant <value_ints = [-1]> () v = Reshape (d, u) "
    "w = Constant <value_float = 2.0> () y = Pow (v, w)",
    "what follows the last rows": POSITIONS + VECTORS + "u = Neg (ov) h = Constant <value_ints = "
    "[9223372036854775807]> () y = Slice (d, u, h, ov)",
    "rows from a length on": POSITIONS + VECTORS + "h = Constant <value_ints = [100]> () "
    "y = Slice (d, s, h, ov)",
    "rows up to a length": POSITIONS + VECTORS + "y = Slice (d, zv, s, ov)",
    "every second row": VECTORS + "h = Constant <value_ints = [100]> () "
    "w = Constant <value_ints = [2]> () y = Slice (d, ov, h, ov, w)",
    "rows from the end": VECTORS + "h = Constant <value_ints = [-100]> () u = Neg (ov) "
    "y = Slice (d, u, h, ov, u)",
    "rows of a table up to a length": POSITIONS + VECTORS + "w = Constant <value_ints = [8]> () "
    "zs = Constant <value_int = 0> () r = ConstantOfShape <value = int64[1] {3}> (w) "
    "l = CumSum (r, zs) y = Slice (l, zv, s, zv)",
    "two parts": POSITIONS + VECTORS + ENDS + "w = Concat <axis = 0> (s, t) "
    "f, g = Split <axis = 1> (d, w) y = Sub (f, f)",
    "zeros as long": VECTORS + "s = Shape (d) w = ConstantOfShape (s) y = Add (w, d)",
    "a row repeated": POSITIONS + "w = Constant <value_floats = [1.0]> () y = Expand (w, s)",
    "a row repeated for each": VECTORS + "s = Shape (d) f = ReduceMax (d, ov) y = Expand (f, s)",
    "the last row": "w = Constant <value_ints = [-1]> () y = Gather <axis = 1> (b, w)",
    "elements from the end": "w = Constant <value_ints = [-1, -1]> () "
    "u = Constant <value_ints = [2, 1, 1]> () v = Reshape (w, u) "
    "q = Constant <value_ints = [2, 1, 4]> () x = Expand (v, q) "
    "y = GatherElements <axis = 1> (b, x)",
    "coordinates from the end": LAST_ROW + "u = Unsqueeze (w, ov) y = GatherND (t, u)",
    "updates by coordinates from the end": LAST_ROW
    + "u = Unsqueeze (w, ov) y = ScatterND (t, u, x)",
    "updates of elements from the end": LAST_ROW + "u = Constant <value_ints = [1, 1, 1]> () "
    "v = Reshape (w, u) j = Expand (v, q) y = ScatterElements <axis = 0> (t, j, x)",
    "the mask of dropout": "x, y0 = Dropout (b) y = Cast <to = 1> (y0)",
    "rows by index": "w = Constant <value_floats = [3.0, 4.0]> () y = Gather (w, i)",
    "counts by index": ZERO + VECTORS + "w = Constant <value_floats = [0.0, 0.0]> () "
    'f = Cast <to = 1> (i) y = ScatterElements <reduction = "add"> (w, i, f)',
    "rows replaced": VECTORS + "w = Constant <value_floats = [7.0, 8.0]> () f = Cast <to = 1> (i) "
    "u = Unsqueeze (i, ov) y = ScatterND (w, u, f)",
    "padding of the model": "w = Constant <value_ints = [0, 1, 0, 0, 2, 0]> () "
    "f = Constant <value_float = 5.0> () y = Pad (a, w, f)",
    "the sizes": "s = Shape (d) y = Cast <to = 1> (s)",
    "half of the size": ZERO + POSITIONS + ENDS + "w = Constant <value_int = 2> () h = Div (k, w) "
    "y = Range (z, h, o)",
    "the larger size": ZERO + POSITIONS + ENDS + "h = Max (n, m) y = Range (z, h, o)",
    "rows repeated": "w = Constant <value_ints = [1, 2, 1]> () y = Tile (b, w)",
    "a normalisation": "w = Constant <value_floats = [1.0, 2.0, 3.0, 4.0]> () "
    "y = LayerNormalization (d, w, w)",
    "roots of squares": "w = Constant <value_floats = [1.0, 2.0, 3.0, 4.0]> () "
    "y = RMSNormalization (d, w)",
    "sums from the end": "w = Constant <value_int = 1> () y = CumSum <reverse = 1> (d, w)",
    "the largest": VECTORS + "y, j = TopK <axis = 1> (b, ov)",
    "where the largest is": "j = ArgMax <axis = 1> (b) y = Cast <to = 1> (j)",
    "a choice": "w = Constant <value_float = 0.0> () g = Greater (d, w) y = Where (g, d, w)",
    "an affine map": "w = Constant <value_floats = [1.0, 2.0, 3.0]> () u = Transpose (c) "
    "v = Constant <value_ints = [3, 1]> () x = Reshape (w, v) y = Gemm (u, x)",
    "outer products": 'y = Einsum <equation = "bik,bjk->bij"> (a, d)',
    "what is not 0": "j = NonZero (d) y = Cast <to = 1> (j)",
    "a lower triangle": "y = Trilu <upper = 0> (d)",
}
RANKS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("positions", "positions backwards", "all elements", "a row repeated", "the sizes"),
            *("rows by index", "counts by index", "rows replaced", "half of the size"),
            *("the larger size", "rows of a table up to a length"),
        ),
        "A",
    ),
    "the mean of all": "",
    **dict.fromkeys(
        (
            *("a mask by position", "the mean of what exists", "rows joined", "an affine map"),
            "what is not 0",
        ),
        "A, B",
    ),
    "heads": "A, B, C, D",
}
INTEGERS = {
    "positions",
    "positions backwards",
    "half of the size",
    "the larger size",
    "rows of a table up to a length",
}


def result_of(name: str) -> str:
    sizes = RANKS.get(name, "A, B, C")
    kind = "int64" if name in INTEGERS else "float"
    return f"{kind}[{sizes}] y" if sizes else f"{kind} y"


@pytest.mark.parametrize("name", GRAPHS)
def test_every_length_gives_what_the_size_alone_gives(name: str):
    proto = model(GRAPHS[name], result_of(name))
    module = import_onnx(proto, new_context(), dims={"past": (0, 5), "new": "1..3"})
    own = signature(module)
    for past, new in RUNS:
        given = arrays(past, new)
        (expected,) = ReferenceEvaluator(proto).run(None, given)
        named = {t.name: given[t.name] for t in own.inputs if t.name in given}
        full = poisoned(own.padded({**named, "past": past, "new": new}), named)
        full = {t.name: np.asarray(full[t.name], t.dtype) for t in own.inputs}
        found = own.trimmed(run_reference(module, full).outputs)["y"]
        np.testing.assert_allclose(
            found, expected, rtol=1e-4, atol=1e-5, strict=True, err_msg=f"{past}, {new}"
        )


def test_a_size_that_is_no_sum_of_others_is_a_length_of_its_own():
    """Two lengths that nothing proves equal broadcast as they do in the run, or are a fault."""
    text = (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[m, 2] a, float[n, 2] b) => '
        "(float[k, 2] y) { y = Add (a, b) }"
    )
    proto = parser.parse_model(text)
    module = import_onnx(proto, new_context(), dims={"m": (0, 4), "n": (1, 6)})
    own, random = signature(module), np.random.default_rng(0)
    for m, n in ((1, 1), (3, 3), (1, 6), (4, 1), (0, 1)):
        given = {
            name: random.normal(size=(size, 2)).astype(np.float32)
            for name, size in (("a", m), ("b", n))
        }
        (expected,) = ReferenceEvaluator(proto).run(None, given)
        full = {name: np.asarray(each) for name, each in own.padded(given).items()}
        found = own.trimmed(run_reference(module, full).outputs)["y"]
        np.testing.assert_array_equal(found, expected, strict=True)
    full = own.padded({"a": np.zeros((2, 2), np.float32), "b": np.zeros((3, 2), np.float32)})
    with pytest.raises(IndexFault, match="at y/"):
        run_reference(module, {name: np.asarray(each) for name, each in full.items()})


def test_a_number_out_of_its_bounds_is_a_fault_that_names_it():
    module = import_onnx(
        model(GRAPHS["a join"], result_of("a join")),
        new_context(),
        dims={"past": (2, 5), "new": (1, 3)},
    )
    own = signature(module)
    full = {name: np.asarray(each) for name, each in own.padded(arrays(3, 1)).items()}
    for wrong in (6, 1, -1):
        with pytest.raises(IndexFault, match=r"at past: index 6 of an axis of 6 elements"):
            run_reference(module, {**full, "past": np.array(wrong, np.int32)})


def test_what_needs_one_size_for_all_runs_says_which_dimension():
    proto = model("y = Hardmax <axis = 1> (a)", "float[A, B, C] y")
    with pytest.raises(NotConstantError, match=r"operator Hardmax .*need one size .*--dim past=1"):
        import_onnx(proto, new_context(), dims={"past": (0, 5), "new": 1})


def test_weights_whose_size_depends_on_the_run_are_refused():
    text = (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[1, 2, 5] x, float[3, 2, n] w) => '
        "(float[1, 3, k] y) { y = Conv (x, w) }"
    )
    match = r"operator Conv .*the size of axis 2 of operand 1 'w' depends on inputs \(n\)"
    with pytest.raises(NotConstantError, match=match):
        import_onnx(parser.parse_model(text), new_context(), dims={"n": (1, 3)})


def test_updates_for_a_part_of_an_axis_whose_size_depends_on_the_run_are_refused():
    text = (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[n, 2] x, int64[1, 2] i, float[1, 2] u)'
        " => (float[m, 2] y) { y = ScatterElements <axis = 1> (x, i, u) }"
    )
    match = r"operator ScatterElements .*the size of axis 0 of operand 0 'x' depends on inputs"
    with pytest.raises(NotConstantError, match=match):
        import_onnx(parser.parse_model(text), new_context(), dims={"n": (1, 3)})


def test_before_opset_13_softmax_over_several_axes_gives_the_axes_back():
    text = (
        '<ir_version: 8, opset_import: ["" : 11]> g (float[6, n, 3] x) => (float[6, n, 3] y) '
        "{ y = Softmax <axis = 0> (x) }"
    )
    proto = parser.parse_model(text)
    module = import_onnx(proto, new_context(), dims={"n": (0, 4)})
    own = signature(module)
    for n in (1, 2, 4):
        given = {"x": np.random.default_rng(n).normal(size=(6, n, 3)).astype(np.float32)}
        full = {name: np.asarray(each) for name, each in own.padded(given).items()}
        found = own.trimmed(run_reference(module, full).outputs)["y"]
        whole = np.exp(given["x"] - given["x"].max())
        np.testing.assert_allclose(found, whole / whole.sum(), rtol=1e-5, strict=True)


def test_bounds_that_are_none_are_refused():
    proto = model(GRAPHS["a join"], result_of("a join"))
    for wrong in ((5, 2), "0..", "..4", "a..b", (1, 2, 3), -1, 1.5, True):
        with pytest.raises(InputError, match=r"--dim past=.*need an integer, 0 or more, or bounds"):
            import_onnx(proto, new_context(), dims={"past": wrong, "new": 1})  # type: ignore
    with pytest.raises(InputError, match=r"add --dim new=1$"):
        import_onnx(proto, new_context(), dims={"past": (0, 5)})


def test_bounds_of_one_axis_have_its_name():
    text = (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[n, 2] a) => (float[2, k] y) '
        "{ y = Transpose (a) }"
    )
    module = import_onnx(parser.parse_model(text), new_context(), dims={"a:0": (0, 3)})
    assert [each.name for each in signature(module).lengths] == ["a:0"]
