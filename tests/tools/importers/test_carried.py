"""Values with padding enter and leave branches and loops."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from abele.backends.reference import run_reference
from abele.tools.driver.context import new_context
from abele.tools.driver.program import signature
from abele.tools.importers import import_onnx

HEADER = '<ir_version: 10, opset_import: ["" : 21]> g (float[6, 3] d, bool[6] c, bool f) => '
ROWS = "p = Compress <axis = 0> (d, c) "
FIRST = (
    "go = Constant <value = bool {1}> () zv = Constant <value_ints = [0]> () "
    "ov = Constant <value_ints = [1]> () "
)

GRAPHS = {
    "branches of two sizes": FIRST + "y = If (f) <then_branch = a () => (float[2, 3] q) "
    "{ e = Constant <value_ints = [2]> () q = Slice (d, zv, e, zv) }, "
    "else_branch = b () => (float[5, 3] q) { e = Constant <value_ints = [5]> () "
    "q = Slice (d, zv, e, zv) }>",
    "a branch that chooses rows": "y = If (f) <then_branch = a () => (float[n, 3] q) "
    "{ q = Compress <axis = 0> (d, c) }, else_branch = b () => (float[m, 3] q) { q = Neg (d) }>",
    "branches of one open size": ROWS + "x = If (f) <then_branch = a () => (float[n, 3] q) "
    "{ q = Exp (p) }, else_branch = b () => (float[n, 3] q) { q = Neg (p) }> y = Add (x, p)",
    "a loop over chosen rows": ROWS + "t = Constant <value_int = 3> () "
    "z = Loop (t, go, p) <body = b (int64 i, bool g, float[n, 3] x) => (bool h, float[n, 3] w) "
    "{ h = Identity (g) w = Mul (x, x) }> y = ReduceSum <keepdims = 0> (z, zv)",
    "a loop that chooses rows": FIRST + "t = Constant <value_int = 3> () "
    "y = Loop (t, go, d) <body = b (int64 i, bool g, float[n, 3] x) => (bool h, float[n, 3] w) "
    "{ h = Identity (g) s = ReduceMax <keepdims = 0> (x, ov) m = ReduceMean <keepdims = 0> (s) "
    "k = GreaterOrEqual (s, m) w = Compress <axis = 0> (x, k) }>",
    "as many iterations as rows": FIRST + ROWS + "s = Shape <end = 1> (p) n = Squeeze (s) "
    "o = Constant <value_floats = [0.0]> () "
    "l, y = Loop (n, go, o) <body = b (int64 i, bool g, float[1] x) => "
    "(bool h, float[1] w, float[3] r) { h = Identity (g) r = Gather (p, i) "
    "u = ReduceSum (r, zv) w = Add (x, u) }>",
}
GRAPHS["a loop over chosen rows"] = FIRST + GRAPHS["a loop over chosen rows"]
RESULTS = {"a loop over chosen rows": "float[N] y"}


@pytest.mark.parametrize("name", GRAPHS)
def test_control_flow_keeps_padding_from_results(name: str):
    text = f"{HEADER} ({RESULTS.get(name, 'float[N, M] y')}) {{ {GRAPHS[name]} }}"
    proto = parser.parse_model(text)
    module = import_onnx(proto, new_context())
    own, random = signature(module), np.random.default_rng(3)
    for chosen in ([1, 0, 0, 1, 1, 0], [1] * 6, [0, 0, 0, 0, 0, 1]):
        for first in (True, False):
            given = {
                "d": random.normal(size=(6, 3)).astype(np.float32),
                "c": np.array(chosen, bool),
                "f": np.array(first),
            }
            (expected,) = ReferenceEvaluator(proto).run(None, given)
            inputs = {each.name: given[each.name] for each in own.inputs}
            found = own.trimmed(run_reference(module, inputs).outputs)["y"]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, strict=True)
