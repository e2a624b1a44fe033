"""If, Loop and Scan: what is decided at import, and what becomes a loop or a branch."""

import numpy as np
import onnx
import pytest
from onnx import parser

from abele.backends.faults import IterationLimit
from abele.backends.reference import run_reference
from abele.dialects import control
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.ir.support.limits import ITERATIONS
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.tools.importers import import_onnx
from abele.tools.importers.errors import NotConstantError
from abele.tools.onnx_backend import AbeleBackend

Array = np.ndarray


def model(inputs: str, outputs: str, nodes: str, opset: int = 16) -> onnx.ModelProto:
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]>\n'
        f"main ({inputs}) => ({outputs}) {{ {nodes} }}"
    )


def imported(proto: onnx.ModelProto) -> ModuleOp:
    module = import_onnx(proto, AbeleContext())
    verify(module)
    return module


def flow(module: ModuleOp) -> list[str]:
    return [op.name for op in module.walk() if op.name in FLOW]


FLOW = ("control.repeat", "control.while", "control.if")


def run(module: ModuleOp, *inputs: Array) -> list[Array]:
    (main,) = [op for op in module.ops if op.name == "func.func"]
    names = [each.data for each in main.attributes["arg_names"]]
    found = run_reference(module, dict(zip(names, inputs, strict=True))).outputs
    return list(found.values())


F = np.float32

# If

BRANCHES = """
y = If (c) <
  then_branch = yes () => (float[3] a) { two = Constant <value = float {2.0}> () a = Mul (x, two) },
  else_branch = no () => (float[3] b) { n = Neg (x) b = Add (n, x1) }
>"""


def test_a_branch_on_data_is_taken_in_a_run():
    proto = model("float[3] x, float[3] x1, bool c", "float[3] y", BRANCHES)
    module, x = imported(proto), np.array([1, 2, 3], F)
    assert flow(module) == ["control.if"]
    for c, need in ((True, 2 * x), (False, x)):
        (y,) = run(module, x, 2 * x, np.array(c))
        np.testing.assert_array_equal(y, need)
        (y,) = AbeleBackend.run_model(proto, [x, 2 * x, np.array(c)])
        np.testing.assert_array_equal(y, need)


OUT_OF_RANGE = """
seven = Constant <value_ints = [7, 0]> ()
y = If (c) <
  then_branch = yes () => (float[2] a) { a = Gather (x, seven) },
  else_branch = no () => (float[2] b) { b = Slice (x, z, t) }
>"""


def test_an_index_out_of_range_is_a_fault_only_where_its_branch_runs():
    nodes = "z = Constant <value_ints = [0]> () t = Constant <value_ints = [2]> ()" + OUT_OF_RANGE
    proto = model("float[3] x, bool c", "float[2] y", nodes)
    module, x = imported(proto), np.array([1, 2, 3], F)
    (y,) = run(module, x, np.array(False))
    np.testing.assert_array_equal(y, [1, 2])
    (y,) = AbeleBackend.run_model(proto, [x, np.array(False)])
    np.testing.assert_array_equal(y, [1, 2])
    with pytest.raises(InputError, match="index 7"):
        AbeleBackend.run_model(proto, [x, np.array(True)])
    outside = model("float[3] x", "float[2] y", OUT_OF_RANGE.split("y = If")[0] + GATHERED)
    with pytest.raises(InputError, match="index 7 of an axis of 3 elements"):
        imported(outside)


GATHERED = "y = Gather (x, seven)"


def test_a_branch_that_returns_a_value_of_the_graph_around_it_says_so():
    nodes = """x2 = Neg (x)
      y = If (c) < then_branch = yes () => (float[3] x2) { q = Neg (x) },
                   else_branch = no () => (float[3] b) { b = Neg (x2) } >"""
    with pytest.raises(InputError, match=r"returns 'x2', a value of the graph around it; need .*I"):
        imported(model("float[3] x, bool c", "float[3] y", nodes))


@pytest.mark.parametrize(("size", "name"), [(3, "nn.mul"), (4, "nn.neg")])
def test_a_branch_on_shapes_is_chosen_at_import(size: int, name: str):
    nodes = """
    s = Shape (z) three = Constant <value = int64[1] {3}> () e = Equal (s, three)
    c = Squeeze (e)"""
    proto = model(
        f"float[3] x, float[3] x1, float[{size}] z", "float[3] y", nodes + BRANCHES, opset=13
    )
    module = imported(proto)
    assert flow(module) == []
    assert name in [op.name for op in module.walk()]


def test_branches_of_different_ranks_need_a_condition_that_is_known():
    nodes = """
    y = If (c) <
      then_branch = yes () => (float[a] p) { p = Relu (x) },
      else_branch = no () => (float[b, d] q) {
        e = Constant <value_ints = [3, 1]> ()
        q = Reshape (x, e)
      }
    >"""
    proto = model("float[3] x, bool c", "float y", nodes)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    match = r"\(float32\[3\]\) or \(float32\[3, 1\]\)"
    with pytest.raises(NotConstantError, match=match) as caught:
        import_onnx(proto, AbeleContext())
    assert caught.value.inputs == ("c",)
    (y,) = AbeleBackend.run_model(proto, [np.array([1, -2, 3], F), np.array(False)])
    np.testing.assert_array_equal(y, [[1], [-2], [3]])


# Loop

COUNTED = """
turns = Constant <value = int64 {5}> ()
yes = Constant <value = bool {1}> ()
y, rows = Loop (turns, yes, x) <
  body = turn (int64 i, bool c, float[2] v) => (bool go, float[2] w, float[2] row) {
    go = Identity (c)
    f = Cast <to = 1> (i)
    w = Add (v, f)
    row = Mul (w, scale)
  }
>"""


def test_a_loop_of_a_known_number_of_iterations_collects_its_rows():
    proto = model("float[2] x, float[2] scale", "float[2] y, float[5, 2] rows", COUNTED)
    module, x, scale = imported(proto), np.array([1, 2], F), np.array([1, -1], F)
    assert flow(module) == ["control.repeat"]
    totals = x + np.cumsum(np.arange(5))[:, None]
    for found in (run(module, x, scale), AbeleBackend.run_model(proto, [x, scale])):
        np.testing.assert_array_equal(found[0], totals[-1])
        np.testing.assert_array_equal(found[1], totals * scale)


UNTIL = """
most = Constant <value = int64 {9223372036854775807}> ()
n, y = Loop (most, begin, zero, x) <
  body = turn (int64 i, bool c, float k, float[2] v) => (bool go, float m, float[2] w) {
    w = Add (v, v)
    one = Constant <value = float {1.0}> ()
    m = Add (k, one)
    s = ReduceMax <keepdims = 0> (w)
    go = Less (s, limit)
  }
>"""


def test_a_loop_ends_when_its_condition_fails():
    inputs = "float[2] x, float zero, float limit, bool begin"
    proto = model(inputs, "float n, float[2] y", UNTIL)
    module, x = imported(proto), np.array([1, 3], F)
    assert flow(module) == ["control.while"]
    for begin, limit, iterations in ((True, 20.0, 3), (True, 0.0, 1), (False, 20.0, 0)):
        given = x, np.array(0, F), np.array(limit, F), np.array(begin)
        n, y = run(module, *given)
        assert n == iterations
        np.testing.assert_array_equal(y, x * 2**iterations)


def test_a_loop_without_an_end_names_the_limit_of_iterations(monkeypatch: pytest.MonkeyPatch):
    inputs = "float[2] x, float zero, float limit, bool begin"
    module = imported(model(inputs, "float n, float[2] y", UNTIL))
    given = np.array([0, 0], F), np.array(0, F), np.array(1, F), np.array(True)
    monkeypatch.setenv(ITERATIONS.variable, "50")
    with pytest.raises(IterationLimit, match="at most 50 iterations are allowed"):
        run(module, *given)


GROWING = """
turns = Constant <value = int64 {3}> ()
y = Loop (turns, , x) <
  body = turn (int64 i, bool c, float[n] v) => (bool c, float[m] w) {
    w = Concat <axis = 0> (v, x)
  }
>"""


def test_a_loop_whose_values_grow_is_written_out():
    module = imported(model("float[2] x", "float[8] y", GROWING))
    assert flow(module) == []
    (y,) = run(module, np.array([1, 2], F))
    np.testing.assert_array_equal(y, [1, 2] * 4)


def test_a_growing_loop_of_very_many_iterations_is_refused():
    with pytest.raises(
        InputError, match=r"more than 1024 iterations, because .*'v', which is float32"
    ):
        imported(model("float[2] x", "float[n] y", GROWING.replace("{3}", "{5000}")))


def test_rows_need_a_known_number_of_iterations():
    nodes = COUNTED.replace("turns = Constant <value = int64 {5}> ()", "")
    proto = model("float[2] x, float[2] scale, int64 turns", "float[2] y, float[n, 2] rows", nodes)
    with pytest.raises(
        NotConstantError, match="number of iterations, which is the length"
    ) as caught:
        import_onnx(proto, AbeleContext())
    assert caught.value.inputs == ("turns",)


def test_a_loop_of_no_iterations_gives_no_rows():
    nodes = COUNTED.replace("{5}", "{0}")
    proto = model("float[2] x, float[2] scale", "float[2] y, float[0, 2] rows", nodes)
    y, rows = run(imported(proto), np.array([1, 2], F), np.ones(2, F))
    np.testing.assert_array_equal(y, [1, 2])
    assert rows.shape == (0, 2)


# Scan

SCANNED = """
last, sums, both = Scan <
  num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [0, 1],
  scan_output_axes = [1, 0], scan_output_directions = [0, 1],
  body = turn (float[2] s, float[2] a, float[2] b) => (float[2] t, float[2] u, float[2] v) {
    t = Add (s, a)
    u = Identity (t)
    v = Sub (a, b)
  }
> (first, x, z)"""


@pytest.mark.parametrize("steps", [1, 4])
def test_a_scan_reads_and_writes_along_axes_in_directions(steps: int):
    inputs = f"float[2] first, float[2, {steps}] x, float[{steps}, 2] z"
    outputs = f"float[2] last, float[2, {steps}] sums, float[{steps}, 2] both"
    module = imported(model(inputs, outputs, SCANNED))
    assert flow(module) == ["control.repeat"] * (steps > 1)
    random = np.random.default_rng(1)
    first, x, z = (random.integers(-9, 9, s).astype(F) for s in ((2,), (2, steps), (steps, 2)))
    last, sums, both = run(module, first, x, z)
    need = first[:, None] + np.cumsum(x, 1)
    np.testing.assert_array_equal(last, need[:, -1])
    np.testing.assert_array_equal(sums, need)
    np.testing.assert_array_equal(both, (x.T - z[::-1])[::-1])


def test_the_loops_of_the_device_do_not_grow_with_their_iterations():
    counts: set[int] = set()
    for steps in (5, 300):
        inputs = f"float[2] first, float[2, {steps}] x, float[{steps}, 2] z"
        outputs = f"float[2] last, float[2, {steps}] sums, float[{steps}, 2] both"
        module = imported(model(inputs, outputs, SCANNED))
        counts.add(sum(1 for _ in module.walk()))
        (loop,) = [op for op in module.walk() if isinstance(op, control.RepeatOp)]
        assert loop.iterations == steps
    assert len(counts) == 1
