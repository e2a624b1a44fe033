"""ONNX operators that move elements, reshape tensors, or make constants."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import prod

import numpy as np
import onnx
from xdsl.ir import SSAValue

from ....dialects import nn
from ..building import Known, Value
from .node import Importer, Node, Results
from .tensors import Array, tensor_texts


def _reshaped(node: Node, shape: list[int]) -> Results:
    """Operand 0 in another shape, known at import or not."""
    value = node.value(0)
    if isinstance(value, Known) and prod(value.shape) == prod(shape):
        make = value.make
        if value.state is None:
            return Known(node.name, tuple(shape), value.dtype, lambda: make().reshape(shape))
    return node.add(nn.ReshapeOp(node[0], shape))


def _reshape(node: Node) -> Results:
    shape = node.parameter("shape", 1, 5)
    if shape is None:
        raise node.bad("the shape is missing")
    if (known := node.reshaped(node.shape(0))) is not None:
        return _reshaped(node, list(known))
    source = node.shape(0)
    if not node.flag("allowzero"):
        for i, n in enumerate(shape):
            if n == 0:
                if i >= len(source):
                    raise node.bad(f"shape {shape}: entry {i} is 0 but {list(source)} is shorter")
                shape[i] = source[i]
    if shape.count(-1) > 1 or any(n < -1 for n in shape):
        raise node.bad(f"shape {shape}; need sizes, and -1 at most once")
    if -1 in shape:
        rest = prod(n for n in shape if n != -1)
        if rest == 0 or prod(source) % rest:
            raise node.bad(f"shape {shape}: {prod(source)} elements do not divide by {rest}")
        shape[shape.index(-1)] = prod(source) // rest
    return _reshaped(node, shape)


def _flatten(node: Node) -> Results:
    shape = node.shape(0)
    axis = node.axis(node.integer("axis", 1), len(shape), end=True)
    return _reshaped(node, [prod(shape[:axis]), prod(shape[axis:])])


def _squeeze(node: Node) -> Results:
    shape = node.shape(0)
    axes = node.parameter("axes", 1, 13)
    gone = (
        [i for i, n in enumerate(shape) if n == 1]
        if axes is None
        else [node.axis(a, len(shape)) for a in axes]
    )
    for axis in gone:
        if shape[axis] != 1:
            raise node.bad(f"axis {axis} has size {shape[axis]}; need 1")
    return _reshaped(node, [n for i, n in enumerate(shape) if i not in gone])


def _unsqueeze(node: Node) -> Results:
    given = node.parameter("axes", 1, 13)
    if given is None:
        raise node.bad("the axes are missing")
    shape = list(node.shape(0))
    axes = sorted(node.axis(a, len(shape) + len(given)) for a in given)
    if len(set(axes)) != len(axes):
        raise node.bad(f"axes {given} repeat")
    for axis in axes:
        shape.insert(axis, 1)
    return _reshaped(node, shape)


def _transpose(node: Node) -> Results:
    rank = len(node.shape(0))
    order = node.integers("perm", range(rank)[::-1])
    if order == list(range(rank)):
        return node.value(0)
    made = node.add(nn.TransposeOp(node[0], order))
    weight = node.graph.dequantised.get(node[0])
    if weight is not None:
        node.graph.dequantised[made] = weight.transposed()
    return made


def _concat(node: Node) -> Results:
    parts = node.all()
    axis = node.axis(node.integer("axis"), len(nn.shape_of(parts[0])))
    filled = [p for p in parts if nn.shape_of(p)[axis]] or parts[:1]
    return filled[0] if len(parts) == 1 else node.add(nn.ConcatOp(filled, axis))


def _slice(node: Node) -> Results:
    shape = node.shape(0)
    rank = len(shape)
    if node.opset < 10:
        begin, end = node.integers("starts"), node.integers("ends")
        axes = node.integers("axes", range(len(begin)))
        steps = [1] * len(begin)
    else:
        begin, end = node.array_integers(1, "starts"), node.array_integers(2, "ends")
        axes = node.array_integers(3, "axes") if node.has(3) else list(range(len(begin)))
        steps = node.array_integers(4, "steps") if node.has(4) else [1] * len(begin)
    if not len(begin) == len(end) == len(axes) == len(steps):
        raise node.bad(
            f"{len(begin)} starts, {len(end)} ends, {len(axes)} axes, {len(steps)} steps; "
            "need as many of each"
        )
    starts, strides, sizes = [0] * rank, [1] * rank, list(shape)
    for first, last, axis, step in zip(begin, end, axes, steps, strict=True):
        if step == 0:
            raise node.bad("a step is 0; need any other")
        i = node.axis(axis, rank)
        taken = _taken(first, last, step, shape[i])
        starts[i], strides[i], sizes[i] = (taken.start if len(taken) else 0), step, len(taken)
    return _sliced(node, node[0], starts, strides, sizes)


def _taken(first: int, last: int, step: int, size: int) -> range:
    """The elements of a slice. A start before all elements stands for the first, even for a
    negative step.

    Python differs: it takes such a backward slice as empty.
    """
    first, last = (n + size if n < 0 else n for n in (first, last))
    least, most = (0, size) if step > 0 else (-1, size - 1)
    return range(min(max(first, 0), most), min(max(last, least), most), step)


def _sliced(
    node: Node, value: SSAValue, starts: list[int], steps: list[int], sizes: list[int]
) -> SSAValue:
    if tuple(sizes) == nn.shape_of(value) and all(s == 1 for s in steps):
        return value
    return node.add(nn.SliceOp(value, starts, steps, sizes))


def _split(node: Node) -> Results:
    shape = node.shape(0)
    axis = node.axis(node.integer("axis", 0), len(shape))
    count = len(node.proto.output)
    sizes = node.parameter("split", 1, 13)
    if sizes is None:
        count = node.integer("num_outputs", count)
        if count < 1:
            raise node.bad(f"num_outputs {count}; need 1 or more")
        part = -(-shape[axis] // count)
        sizes = [max(0, min(part, shape[axis] - i * part)) for i in range(count)]
    if sum(sizes) != shape[axis] or len(sizes) < len(node.proto.output):
        raise node.bad(
            f"split {sizes} for {len(node.proto.output)} results; axis {axis} has {shape[axis]}"
        )
    parts: list[Value] = []
    for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
        starts = [start if i == axis else 0 for i in range(len(shape))]
        extent = [size if i == axis else n for i, n in enumerate(shape)]
        if not size:
            starts[axis] = 0
        parts.append(_sliced(node, node[0], starts, [1] * len(shape), extent))
    return parts


def _pad(node: Node) -> Results:
    rank = len(node.shape(0))
    pads = node.parameter("pads", 1, 11)
    if pads is None:
        raise node.bad("the pads are missing")
    if node.opset < 11:
        value = node.number("value", 0.0)
    else:
        value = node.array_scalar(2, "constant_value") if node.has(2) else 0.0
    axes = node.array_integers(3, "axes") if node.has(3) else list(range(rank))
    if len(pads) != 2 * len(axes):
        raise node.bad(f"pads {pads}; need {2 * len(axes)}, two per axis")
    low, high = [0] * rank, [0] * rank
    for axis, lo, hi in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        low[node.axis(axis, rank)], high[node.axis(axis, rank)] = lo, hi
    mode = node.text("mode", "constant")
    return node.add(nn.PadOp(node[0], low, high, mode=mode, value=value))


def _center_crop_pad(node: Node) -> Results:
    """Crop or pad axes at both ends. An odd element is cropped or added at the end."""
    rank, wanted = len(node.shape(0)), node.array_integers(1, "shape")
    axes = node.integers("axes", range(rank))
    if len(wanted) != len(axes) or any(n < 0 for n in wanted):
        raise node.bad(f"shape {wanted}; need {len(axes)} sizes, one per axis")
    low, high = [0] * rank, [0] * rank
    for given, size in zip(axes, wanted, strict=True):
        axis = node.axis(given, rank)
        more = size - node.shape(0)[axis]
        low[axis] = more // 2 if more > 0 else -(-more // 2)
        high[axis] = more - low[axis]
    return node.add(nn.PadOp(node[0], low, high))


def _expand(node: Node) -> Results:
    wanted, shape = node.array_integers(1, "shape"), node.shape(0)
    rank = max(len(wanted), len(shape))
    source = [1] * (rank - len(shape)) + list(shape)
    target = [1] * (rank - len(wanted)) + wanted
    return _expanded(
        node, node[0], [n if m == 1 else m for n, m in zip(source, target, strict=True)]
    )


def _expanded(node: Node, value: SSAValue, shape: list[int]) -> SSAValue:
    return value if nn.shape_of(value) == tuple(shape) else node.add(nn.ExpandOp(value, shape))


def _tile(node: Node) -> Results:
    """Insert an axis before each axis, along which the tensor is repeated."""
    repeats, shape = node.array_integers(1, "repeats"), node.shape(0)
    if len(repeats) != len(shape) or any(r < 0 for r in repeats):
        raise node.bad(f"repeats {repeats}; need {len(shape)}, one per axis")
    paired = node.reshape(node[0], [n for size in shape for n in (1, size)])
    wide = [n for pair in zip(repeats, shape, strict=True) for n in pair]
    grown = _expanded(node, paired, wide)
    return node.reshape(grown, [r * n for r, n in zip(repeats, shape, strict=True)])


def _depth_to_space(node: Node) -> Results:
    n, c, h, w = _image(node)
    b = node.integer("blocksize")
    if b < 1 or c % (b * b):
        raise node.bad(f"blocksize {b} with {c} channels; its square must divide them")
    rows = node.text("mode", "DCR") == "DCR"
    split = (n, b, b, c // b**2, h, w) if rows else (n, c // b**2, b, b, h, w)
    order = (0, 3, 4, 1, 5, 2) if rows else (0, 1, 4, 2, 5, 3)
    moved = node.add(nn.TransposeOp(node.reshape(node[0], split), order))
    return node.reshape(moved, (n, c // b**2, h * b, w * b))


def _space_to_depth(node: Node) -> Results:
    n, c, h, w = _image(node)
    b = node.integer("blocksize")
    if b < 1 or h % b or w % b:
        raise node.bad(f"blocksize {b} of an image of {h} by {w}; it must divide both")
    blocks = node.reshape(node[0], (n, c, h // b, b, w // b, b))
    rows = node.text("mode", "DCR") == "DCR"
    moved = node.add(nn.TransposeOp(blocks, (0, 3, 5, 1, 2, 4) if rows else (0, 1, 3, 5, 2, 4)))
    return node.reshape(moved, (n, c * b * b, h // b, w // b))


def _image(node: Node) -> tuple[int, ...]:
    if len(node.shape(0)) != 4:
        raise node.bad(f"image of shape {list(node.shape(0))}; need four axes")
    return node.shape(0)


NUMBERS: dict[str, Callable[[onnx.AttributeProto], Array]] = {
    "value_float": lambda a: np.array(a.f, np.float32),
    "value_floats": lambda a: np.array(a.floats, np.float32),
    "value_int": lambda a: np.array(a.i, np.int64),
    "value_ints": lambda a: np.array(a.ints, np.int64),
}
"""The attributes of a Constant that are not tensors, as arrays."""


def _own_texts(node: Node, name: str) -> Array:
    """The strings in an attribute of a Constant: an array without axes, or with one."""
    is_list = name.endswith("s")
    texts = node.texts(name) if is_list else [node.text(name)]
    return np.array(texts, np.dtype(object)).reshape((len(texts),) if is_list else ())


def _constant(node: Node) -> Results:
    if node.has_attribute("value"):
        tensor = node.attributes["value"].t
        if tensor.data_type == onnx.TensorProto.STRING:
            return node.graph.known_texts(node.name, tensor_texts(tensor, str(node)))
        return node.known(node.tensor("value"))
    for name in ("value_string", "value_strings"):
        if node.has_attribute(name):
            return node.graph.known_texts(node.name, _own_texts(node, name))
    for name, array in NUMBERS.items():
        if node.has_attribute(name):
            return node.known(array(node.attributes[name]))
    raise node.unsupported(f"a value of kind {sorted(node.attributes)}", "need numbers")


def _constant_of_shape(node: Node) -> Results:
    shape = node.array_integers(0, "shape")
    value = node.tensor("value") if node.has_attribute("value") else np.zeros(1, np.float32)
    if value.size != 1 or any(n < 0 for n in shape):
        raise node.bad(f"shape {shape} of a value of {value.size} elements; need sizes, and one")
    return node.filled(value.reshape(()), shape)


def _shape(node: Node) -> Results:
    shape = node.shape(0)
    rank = len(shape)
    first, last = node.integer("start", 0), node.integer("end", rank)
    return Known.of(node.name, np.array(shape[slice(first, last)], np.int64))


def _size(node: Node) -> Results:
    return Known.of(node.name, np.array(prod(node.shape(0)), np.int64))


MOVEMENTS: dict[str, Importer] = {
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Concat": _concat,
    "Slice": _slice,
    "Split": _split,
    "Pad": _pad,
    "CenterCropPad": _center_crop_pad,
    "Expand": _expand,
    "Tile": _tile,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Shape": _shape,
    "Size": _size,
}
