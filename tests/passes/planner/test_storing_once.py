"""Readers share a weight where a copy of it does not fit, or saves no cycles."""

from math import prod

import numpy as np
import onnx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from some_tensors import small_integers

from abele.dialects import nn, partition
from abele.ir.errors import DoesNotFit
from abele.passes.planner import storing_once
from abele.passes.planner.network import NetworkPlan
from abele.passes.planner.storing_once import rank
from abele.passes.plans import copies_of_weights
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable

ROOMY, TIGHT = "tiny:16", "tiny:16,memory.bytes_per_tile=32000"


def tied(
    rows: int = 512, width: int = 64, tokens: int = 8, dtype: str = "float32"
) -> onnx.ModelProto:
    """A lookup in a table, a relu, and the product with the transposed table."""
    table = small_integers(0, (rows, width), dtype)
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["rows"], name="embedded"),
        helper.make_node("Relu", ["rows"], ["hidden"], name="hidden"),
        helper.make_node("Transpose", ["words"], ["turned"], name="turned", perm=[1, 0]),
        helper.make_node("MatMul", ["hidden", "turned"], ["logits"], name="logits"),
    ]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes,
        "tied",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [tokens])],
        [helper.make_tensor_value_info("logits", kind, [tokens, rows])],
        [numpy_helper.from_array(table, "words")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compiled(target: str, model: onnx.ModelProto | None = None) -> Executable:
    return compile_model(model or tied(), target, cache=False)


def stored(exe: Executable) -> int:
    """How often the tiles keep the table, in any order."""
    (gather,) = (op for op in exe.module_at("nn").walk() if isinstance(op, nn.GatherOp))
    size = prod(nn.shape_of(gather.operands[0]))
    blobs = [
        op.initial if isinstance(op, partition.StateOp) else op.value
        for op in exe.module_at("partition").walk()
        if isinstance(op, partition.StateOp | partition.ConstantOp)
    ]
    return [blob.array.size for blob in blobs].count(size)


def test_a_copy_stays_where_it_saves_cycles_and_fits():
    roomy, tight = compiled(ROOMY), compiled(TIGHT)
    assert (stored(roomy), stored(tight)) == (2, 1)
    assert roomy.profile["cycles"] < tight.profile["cycles"]
    ids = np.array([0, 511, 3, 3, 77, 128, 300, -1])
    found, expected = (exe.run({"ids": ids})["logits"] for exe in (tight, roomy))
    assert found.tobytes() == expected.tobytes()


def test_without_sharing_the_tight_program_does_not_fit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(copies_of_weights, "SMALLEST", 1 << 40)
    with pytest.raises(DoesNotFit, match="turned"):
        compiled(TIGHT)


@settings(max_examples=5, phases=(Phase.generate,))
@given(
    rows=st.sampled_from([260, 401]),
    width=st.sampled_from([128, 131]),
    tokens=st.sampled_from([1, 5, 16]),
    dtype=st.sampled_from(["float32", "float16"]),
    seed=st.integers(0, 9),
)
def test_sharing_changes_no_byte(rows: int, width: int, tokens: int, dtype: str, seed: int):
    """Integers whose sums are exact, as another plan adds in another order."""
    model = tied(rows, width, tokens, dtype)
    ids = np.random.default_rng(seed).integers(-rows, rows, tokens)
    apart = compiled(ROOMY, model)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(storing_once, "rank", lambda network, usable: 0)
        shared = compiled(ROOMY, model)
    assert stored(shared) == 1
    assert (
        shared.run({"ids": ids})["logits"].tobytes() == apart.run({"ids": ids})["logits"].tobytes()
    )


@pytest.mark.parametrize(
    ("one", "other"), [((100, 9.0), (101, 5.0)), ((100, 5.0), (60, 9.0)), ((60, 5.0), (100, 5.0))]
)
def test_what_fits_comes_first_and_then_cycles(one: tuple[int, float], other: tuple[int, float]):
    """Of two programs on a tile of 100 bytes, the first is at least as good."""
    assert rank(_network(*one), 100) <= rank(_network(*other), 100)


def _network(size: int, cycles: float) -> NetworkPlan:
    return NetworkPlan({}, {}, cycles, size, 0, {})
