"""Models whose sizes only a run knows, made from models whose sizes are fixed.

The generators draw models of fixed sizes, so they need not know what an operator does with other
ones. Here an axis of an input gets a size that each run chooses, or one that depends on values: a
mask chooses the elements among more of them. The values stay those of the fixed model, so the
results do too, whatever operators follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from ...driver.arrays import Array
from ...driver.signature import Signature
from .graph import ModelCase, copy_of

MOST_MORE = 3
"""The most elements by which a bound is larger than the size of a run."""

FIRST_COMPRESS = 9
"""The first opset in which Compress chooses elements."""


def opened(graph: ModelCase, random: Random) -> ModelCase | None:
    """The model with a size that only a run knows; None if no input has an axis.

    Often all axes of this size get it, because operators need equal sizes.
    """
    axes = [
        (name, axis, size)
        for name, array in graph.inputs.items()
        for axis, size in enumerate(array.shape)
    ]
    if not axes:
        return None
    chosen = random.choice(axes)
    every = [each for each in axes if each[2] == chosen[2]]
    taken = every if random.random() < 0.6 else [chosen]
    depends_on_values = graph.opset >= FIRST_COMPRESS and random.random() < 0.4
    if depends_on_values:
        # Two masks would give two lengths, which nothing proves equal.
        found = _chosen_by_a_mask(graph, *chosen, random)
    else:
        found = _of_each_run(graph, [(name, axis) for name, axis, _ in taken], chosen[2], random)
    for output in found.proto.graph.output:
        for dim in output.type.tensor_type.shape.dim:
            dim.Clear()
    return replace(found, sketch=None, is_opened=True)


def _of_each_run(
    graph: ModelCase, axes: list[tuple[str, int]], size: int, random: Random
) -> ModelCase:
    """The model with one size along some axes of inputs, which each run chooses."""
    proto = copy_of(graph.proto)
    del proto.graph.value_info[:]
    name = _unused(graph, "length")
    for info in proto.graph.input:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            if (info.name, axis) in axes:
                dim.dim_param = name
    most = size + random.randint(0, MOST_MORE)
    least = random.choice([0, 1, size])
    bounds = min(least, size), most
    return replace(graph, proto=proto, dims={**graph.dims, name: bounds})


def _chosen_by_a_mask(
    graph: ModelCase, name: str, axis: int, size: int, random: Random
) -> ModelCase:
    """The model with an input that is chosen from a larger one by a mask."""
    proto = copy_of(graph.proto)
    del proto.graph.value_info[:]
    array, whole, mask = graph.inputs[name], _unused(graph, "whole"), _unused(graph, "mask")
    count = size + random.randint(0, MOST_MORE)
    places = sorted(random.sample(range(count), size))
    chosen = np.zeros(count, np.bool_)
    chosen[places] = True
    shape = (*array.shape[:axis], count, *array.shape[axis + 1 :])
    larger = np.full(shape, poison(array.dtype), array.dtype)
    larger[(*[slice(None)] * axis, places)] = array
    node = helper.make_node("Compress", [whole, mask], [name], axis=axis)
    proto.graph.node.insert(0, node)
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    kept = [each for each in proto.graph.input if each.name != name]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    proto.graph.input.append(helper.make_tensor_value_info(whole, code, shape))
    proto.graph.input.append(helper.make_tensor_value_info(mask, TensorProto.BOOL, [count]))
    # onnx infers no type for the result of Compress.
    sizes = [None if i == axis else n for i, n in enumerate(array.shape)]
    proto.graph.value_info.append(helper.make_tensor_value_info(name, code, sizes))
    inputs = {n: a for n, a in graph.inputs.items() if n != name}
    return replace(graph, proto=proto, inputs={**inputs, whole: larger, mask: chosen})


def _unused(graph: ModelCase, name: str) -> str:
    """A name that nothing in a model has."""
    text = graph.text
    while name in text:
        name += "_"
    return name


def poison(dtype: np.dtype[Any]) -> Any:
    """What padding holds in tests: the element that most operators spread."""
    if dtype.kind == "b":
        return True
    return np.nan if dtype.kind not in "iu" else np.iinfo(dtype).max


def poisoned(signature: Signature, given: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs in their largest shapes, with padding that holds poison."""
    found = {name: np.asarray(each) for name, each in signature.padded(given).items()}
    padded = {each.argument for each in signature.argument_sizes}
    for name in padded:
        array = np.full(found[name].shape, poison(found[name].dtype), found[name].dtype)
        array[tuple(map(slice, given[name].shape))] = given[name]
        found[name] = array
    return {tensor.name: found[tensor.name] for tensor in signature.inputs}
