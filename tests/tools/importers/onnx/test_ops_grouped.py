"""GroupQueryAttention agrees with onnxruntime on the output and on the keys that exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from abele.backends.faults import IndexFault
from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.driver.compile import compile_model
from abele.tools.importers import import_onnx
from abele.tools.testing.onnx_graphs.runtimes import by_onnxruntime

HEADS, FEW = 4, 2


def model(
    tokens: int,
    lengths: list[int],
    old: int | None = None,
    *,
    size: int = 16,
    packed: bool = False,
    known: tuple[str, ...] = ("total",),
    total: int = 0,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A node and its inputs. lengths: of each sequence. old: rows of the cache; None for none."""
    random, batch = np.random.default_rng(0), len(lengths)

    def floats(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    given: dict[str, np.ndarray | None] = dict.fromkeys(("q", "k", "v", "past_k", "past_v"))
    if packed:
        given["q"] = floats(batch, tokens, (HEADS + 2 * FEW) * size)
    else:
        given["q"] = floats(batch, tokens, HEADS * size)
        given["k"], given["v"] = (floats(batch, tokens, FEW * size) for _ in "kv")
    if old is not None:
        given["past_k"], given["past_v"] = (floats(batch, FEW, old, size) for _ in "kv")
    given["lengths"] = np.array(lengths, np.int32) - 1
    given["total"] = np.array(total or (old or 0) + tokens, np.int32)
    if attributes.get("do_rotary"):
        given["cos"], given["sin"] = (floats(64, size // 2) for _ in "cs")
    node = helper.make_node(
        "GroupQueryAttention",
        [name if array is not None else "" for name, array in given.items()],
        ["y", "key", "value"],
        "node",
        domain="com.microsoft",
        num_heads=HEADS,
        kv_num_heads=FEW,
        **attributes,
    )
    arrays = {name: array for name, array in given.items() if array is not None}
    inputs = {name: array for name, array in arrays.items() if name not in known}
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in node.output],
        [numpy_helper.from_array(arrays[name], name) for name in known],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), inputs


ROTARY = {"do_rotary": 1}


@pytest.mark.parametrize(
    ("tokens", "lengths", "old", "options"),
    [
        (4, [4, 4], None, {"size": 8}),
        (4, [4, 4], 0, {"size": 8, "softcap": 5.0, "scale": 0.5}),
        (4, [4, 4], None, {**ROTARY, "packed": True}),
        (4, [4, 4], None, {**ROTARY, "rotary_interleaved": 1}),
        (5, [3, 5], None, {**ROTARY, "packed": True}),
        (1, [7], 6, ROTARY),
        (1, [7, 7], 6, {**ROTARY, "known": ("total", "lengths")}),
        (1, [4, 7], 6, ROTARY),
        (1, [4, 7], 6, {**ROTARY, "known": ("total", "lengths")}),
        (1, [4, 7], 6, {**ROTARY, "local_window_size": 2}),
        (6, [6, 6], None, {"size": 8, "local_window_size": 3}),
        (1, [5], 8, {**ROTARY, "total": 5}),
        (1, [5], 8, {**ROTARY, "total": 5, "known": ()}),
        (1, [3, 8], 8, {**ROTARY, "total": 8, "known": ()}),
        (1, [3, 8], 8, {**ROTARY, "total": 8, "known": ("total", "lengths")}),
        (1, [3, 8], 8, {**ROTARY, "total": 8, "known": (), "local_window_size": 3}),
        (4, [2, 4], 8, {**ROTARY, "total": 4, "known": ()}),
        (4, [2, 4], 8, {**ROTARY, "total": 4}),
        (3, [7], 8, {**ROTARY, "total": 7, "known": ()}),
        (1, [5], 8, {**ROTARY, "total": 5, "known": (), "packed": True, "softcap": 2.0}),
        (3, [11], 8, ROTARY),
    ],
)
def test_heads_share_keys_of_a_cache(
    tokens: int, lengths: list[int], old: int | None, options: dict[str, Any]
):
    proto, inputs = model(tokens, lengths, old, **options)
    expected = by_onnxruntime(proto, inputs)
    found = run_reference(import_onnx(proto, AbeleContext()), inputs).outputs
    for name, array in found.items():
        assert array.shape == expected[name].shape
        for own, other, length in zip(array, expected[name], lengths, strict=True):
            # What comes after the end of a sequence may be anything.
            real = own[:length] if name == "y" else own[:, :length]
            theirs = other[: len(real)] if name == "y" else other[:, :length]
            np.testing.assert_allclose(real, theirs, atol=1e-5)


def test_a_cache_with_room_is_updated_and_not_copied():
    proto, _ = model(1, [5], 8, total=5, known=())
    module = import_onnx(proto, AbeleContext())
    updates = [op for op in module.walk() if isinstance(op, nn.UpdateOp)]
    assert len(updates) == 2
    assert not any(isinstance(op, nn.GatherAlongOp) for op in module.walk())


def test_a_cache_without_room_is_a_fault():
    proto, inputs = model(1, [9], 8, total=9, known=())
    with pytest.raises(IndexFault):
        run_reference(import_onnx(proto, AbeleContext()), inputs)


def test_heads_that_cannot_share_keys_are_refused():
    proto, _ = model(4, [4], size=8)
    for attribute in proto.graph.node[0].attribute:
        if attribute.name == "kv_num_heads":
            attribute.i = 3
    with pytest.raises(InputError, match="num_heads 4, kv_num_heads 3; need a multiple"):
        import_onnx(proto, AbeleContext())


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("before", "count"), [(0, 1), (0, 5), (2, 3), (5, 3), (7, 1)])
def test_a_run_may_choose_how_many_tokens_follow_a_cache(
    before: int, count: int, known: bool, packed: bool
):
    """The rows of tokens that do not exist are not written, also at the end of the cache. Nor have
    they angles: there are as many as positions."""
    old, most = 8, 5
    options: dict[str, Any] = {**ROTARY, "packed": packed, "known": ("total",) if known else ()}
    length = before + count
    proto, inputs = model(count, [length], old, total=old if known else length, **options)
    tables = {name: inputs[name][:old] for name in ("cos", "sin")}
    # onnxruntime takes the total for the number of keys.
    exact, _ = model(count, [length], old, total=length, **options)
    if known:
        whole = numpy_helper.from_array(np.array(length, np.int32), "total")
        exact.graph.initializer[0].CopyFrom(whole)
    for each in proto.graph.input:
        shape = each.type.tensor_type.shape
        if each.name in ("q", "k", "v"):
            shape.dim[1].dim_param = "new"
        elif each.name in tables:
            shape.dim[0].dim_value = old
    exe = compile_model(proto, "tiny:2", dims={"new": (1, most)}, cache=False)
    found = exe.run({**inputs, **tables}, at="nn")
    wanted = by_onnxruntime(exact, inputs)
    np.testing.assert_allclose(found["y"], wanted["y"], atol=1e-5)
    for name in ("key", "value"):
        np.testing.assert_allclose(
            found[name][:, :, :length], wanted[name][:, :, :length], atol=1e-5
        )
        past = inputs[f"past_{name[0]}"]
        np.testing.assert_array_equal(found[name][:, :, length:], past[:, :, length:])


def test_a_cache_that_grows_by_as_many_tokens_as_a_run_chooses_is_refused():
    proto, _ = model(3, [9], 6)
    for each in proto.graph.input:
        if each.name in ("q", "k", "v"):
            each.type.tensor_type.shape.dim[1].dim_param = "new"
    with pytest.raises(InputError, match=r"the number of tokens behind a cache of 6 .*new"):
        import_onnx(proto, AbeleContext(), dims={"new": (1, 3)})
