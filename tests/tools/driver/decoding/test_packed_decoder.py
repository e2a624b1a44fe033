"""A decoder with weights of 4 bits, as onnxruntime-genai writes it."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.ir.context import AbeleContext
from abele.tools.driver.decoding.decoder import Decoder
from abele.tools.importers import import_onnx

MAKE = run_path(str(Path(__file__).parents[4] / "examples" / "make_packed_decoder.py"))
SMALL = {"layers": 1, "width": 32, "heads": 2, "groups": 1, "hidden": 48, "words": 61}
CONTEXT, TOKENS, PROMPT = 72, 64, [7, 3, 50, 3, 9, 11, 0, 60, 21]


def run(proto: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of onnxruntime."""
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


@pytest.mark.parametrize(
    ("bits", "element", "bound"),
    [
        (4, TensorProto.FLOAT, 1e-4),
        (8, TensorProto.FLOAT, 1e-4),
        (0, TensorProto.FLOAT, 1e-4),
        (4, TensorProto.FLOAT16, 2e-2),
    ],
)
def test_a_token_behind_a_cache_is_that_of_onnxruntime(bits: int, element: int, bound: float):
    sizes = MAKE["Sizes"](layers=2, bits=bits, element=element)
    proto, rng = MAKE["small"](sizes), np.random.default_rng(1)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    shape, rows, present = (1, sizes.groups, 16, sizes.head), 16, 7
    inputs: dict[str, Any] = {
        f"past_key_values.{i}.{each}": rng.standard_normal(shape).astype(dtype)
        for i in range(2)
        for each in ("key", "value")
    }
    inputs["input_ids"] = np.array([[5]])
    wanted = run(proto, inputs | {"attention_mask": np.ones((1, present), np.int64)})
    # onnxruntime knows the tokens by the size of the mask; here, by its numbers.
    mask = (np.arange(rows) < present).astype(np.int64)[None]
    dims = {"batch_size": 1, "sequence_length": 1}
    dims |= {"past_sequence_length": rows, "total_sequence_length": rows}
    module = import_onnx(proto, AbeleContext(), dims=dims)
    found = run_reference(module, inputs | {"attention_mask": mask}).outputs
    np.testing.assert_allclose(found["logits"], wanted["logits"], atol=bound)
    for name in wanted.keys() - {"logits"}:
        np.testing.assert_allclose(
            found[name][:, :, :present], wanted[name][:, :, :present], atol=bound
        )
    products = sum(isinstance(op, nn.PackedMatMulOp) for op in module.walk())
    assert products == (2 * 7 + 1 if bits else 0)


def test_64_tokens_of_packed_weights_are_those_of_onnxruntime():
    proto = MAKE["small"](MAKE["Sizes"](**SMALL, longest=80))
    decoder = Decoder.compiled(proto, "tiny:4", prompt=4, context=CONTEXT, tokens=32, cache=False)
    assert decoder.prompt == 4
    found = [*decoder.generate(PROMPT, TOKENS)]
    assert len(set(found)) > 5
    ids = np.array([[*PROMPT, *found]])
    cache = {
        each.name: np.zeros((1, 1, 0, 16), np.float32)
        for each in proto.graph.input
        if each.name.startswith("past")
    }
    scores = run(proto, {"input_ids": ids, "attention_mask": np.ones_like(ids), **cache})["logits"]
    assert scores[0].argmax(-1)[len(PROMPT) - 1 : -1].tolist() == found


def test_the_file_of_a_billion_weights_takes_no_room(tmp_path: Path):
    path = tmp_path / "model.onnx"
    MAKE["write_billion"](path, MAKE["Sizes"](words=4096, width=256))
    data = tmp_path / "model.onnx.data"
    assert data.stat().st_size > 1 << 21
    assert data.stat().st_blocks * 512 < 1 << 16
    dims = {"batch_size": 1, "sequence_length": 1}
    dims |= {"past_sequence_length": 8, "total_sequence_length": 8}
    module = import_onnx(path, AbeleContext(), dims=dims)
    assert sum(isinstance(op, nn.PackedMatMulOp) for op in module.walk()) == 2 * 7 + 1
