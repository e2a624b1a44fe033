"""Facts about operators that ONNX's schemas do not contain: valid shapes and parameters.

Everything else comes from the schemas. The operands of an operator that is not listed in FORMS
broadcast with each other.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ...importers.onnx.ops_random import RANDOM
from .attention import ATTENTION, ATTENTION_RANKS
from .draw import Draw, Form, Parameter, Shape
from .images import IMAGE_RANKS, IMAGE_SHAPES, IMAGES
from .indexed import INDEXED
from .pool import DTYPES
from .quantised import quantised_forms
from .recurrent import RECURRENT, RECURRENT_RANKS
from .selected import SELECTED, SELECTED_RANKS, SELECTED_SHAPES
from .signals import MADE_FROM_NUMBERS, SIGNAL_RANKS, SIGNAL_SHAPES, SIGNALS

# Parameters that do not depend on the operator


def _axes(draw: Draw) -> list[int]:
    return [draw.signed(a) for a in draw.some_axes()]


PARAMETERS: dict[str, Callable[[Draw], Parameter]] = {
    "axis": lambda draw: draw.signed(draw.random.randrange(draw.rank)),
    "axes": _axes,
    "perm": lambda draw: draw.random.sample(range(draw.rank), draw.rank),
    "start": lambda draw: draw.random.randint(-draw.rank - 1, draw.rank + 1),
    "end": lambda draw: draw.random.randint(-draw.rank - 1, draw.rank + 1),
    "alpha": lambda draw: draw.one_of(0.5, 1.0, 2.0, -0.75, 0.01),
    "beta": lambda draw: draw.one_of(0.5, 1.0, 2.0, -0.75),
    "p": lambda draw: draw.one_of(1, 2),
    "gamma": lambda draw: draw.one_of(0.5, 1.0, 2.0),
    "epsilon": lambda draw: draw.one_of(1e-5, 1e-3, 0.1),
    "value": lambda draw: np.array([draw.one_of(0.0, 1.5, -2.0)], np.float32),
}
"""Values of attributes and constant operands, by name."""

NEVER_SET = frozenset(("consumed_inputs", "round_mode", "saturate", "seed", "stash_type"))
"""Attributes that have no effect on the types used here, or only one legal value."""

# Windows


def _window(draw: Draw) -> dict[str, Parameter]:
    """Parameters of a window over an image [n, c, ...]."""
    image = draw.shape[2:]
    if 0 in draw.shape:
        # onnxruntime refuses most of these. Its convolution without channels does not end.
        raise ValueError("a window over an empty image")
    kernel = [draw.random.randint(1, min(4, n + 1)) for n in image]
    stride = [draw.one_of(1, 1, 2, 3) for _ in image]
    dilation = [draw.one_of(1, 1, 1, 2) for _ in image]
    mode = draw.one_of("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    low, high = [0] * len(image), [0] * len(image)
    for i, n in enumerate(image):
        if mode == "VALID":
            kernel[i] = min(kernel[i], n)
        if dilation[i] * (kernel[i] - 1) + 1 > n:
            dilation[i] = 1
        short = max(0, dilation[i] * (kernel[i] - 1) + 1 - n)
        if draw.chance(0.6) or short:
            low[i] = draw.random.randint(0, kernel[i] - 1)
            high[i] = draw.random.randint(max(0, min(kernel[i] - 1, short - low[i])), kernel[i] - 1)
    found: dict[str, Parameter] = {
        "kernel_shape": kernel,
        "strides": stride if any(s > 1 for s in stride) or draw.chance(0.5) else None,
        "dilations": dilation if any(d > 1 for d in dilation) or draw.chance(0.5) else None,
        "auto_pad": mode if mode != "NOTSET" or draw.chance(0.2) else None,
        "pads": [*low, *high] if mode == "NOTSET" and any((*low, *high)) else None,
    }
    return found


def _pool(draw: Draw) -> Form:
    return Form(parameters=_window(draw))


def _lp_pool(draw: Draw) -> Form:
    """A pooling window that stays inside the image: onnxruntime pads such norms differently."""
    return Form(parameters={**_window(draw), "p": draw.one_of(None, 1, 2, 3), "ceil_mode": None})


def _col2im(draw: Draw) -> Form:
    """Columns of windows over a small image: as many columns as window positions."""
    for _ in range(20):
        image = [draw.random.randint(2, 5) for _ in range(draw.one_of(1, 2, 2))]
        block = [draw.random.randint(1, 2) for _ in image]
        stride = [draw.one_of(1, 1, 2) for _ in image]
        low = [draw.one_of(0, 1) for _ in image]
        high = [draw.one_of(0, 1) for _ in image]
        lists = zip(image, block, stride, low, high, strict=True)
        places = prod((n + lo + hi - k) // s + 1 for n, k, s, lo, hi in lists)
        if draw.shape[2] == places and draw.shape[1] % prod(block) == 0 and 0 not in draw.shape:
            parameters = {
                "image_shape": image,
                "block_shape": block,
                "strides": stride,
                "pads": [*low, *high],
                "dilations": None,
            }
            return Form(parameters=parameters)
    raise ValueError("no image with such columns")


def _columns(draw: Draw) -> Shape:
    return (draw.one_of(1, 2), draw.one_of(4, 8), draw.one_of(4, 6, 9, 12))


def _det(draw: Draw) -> Form:
    if draw.shape[-1] != draw.shape[-2] or 0 in draw.shape:
        raise ValueError("no square matrix")
    return Form()


def _square(draw: Draw) -> Shape:
    n = draw.random.randint(1, 4)
    return (*draw.one_of((), (2,), (2, 3)), n, n)


def _center_crop_pad(draw: Draw) -> Form:
    """Sizes as int64, the type that onnxruntime's replacement function requires."""
    draw.types["Tind"] = "tensor(int64)"
    axes = draw.some_axes(least=1)
    sizes = [max(1, draw.shape[a] + draw.random.randint(-3, 3)) for a in axes]
    if axes == list(range(draw.rank)) and draw.chance(0.5):
        return Form(parameters={"shape": sizes, "axes": None})
    return Form(parameters={"shape": sizes, "axes": [draw.signed(a) for a in axes]})


def _whole_image(draw: Draw) -> Form:
    """A window over the whole image. onnxruntime refuses an empty image."""
    if 0 in draw.shape:
        raise ValueError("a window over an empty image")
    return Form()


def _factor(draw: Draw, n: int) -> int:
    """A random divisor of n, often 1."""
    return int(draw.one_of(1, *(d for d in range(1, n + 1) if n % d == 0)))


def _conv(draw: Draw) -> Form:
    parameters = _window(draw)
    kernel = parameters["kernel_shape"]
    if (parameters["auto_pad"] or "").startswith("SAME"):
        # onnxruntime refuses SAME padding with dilations.
        parameters["dilations"] = None
    group = _factor(draw, draw.shape[1])
    made = group * draw.one_of(1, 2, 3)
    if draw.chance(0.5):
        parameters["kernel_shape"] = None
    parameters["group"] = group if group > 1 or draw.chance(0.3) else None
    return Form([(made, draw.shape[1] // group, *kernel), (made,)], parameters)


def _conv_transpose(draw: Draw) -> Form:
    parameters = _window(draw)
    kernel, image = parameters["kernel_shape"], draw.shape[2:]
    stride = parameters["strides"] or [1] * len(image)
    dilation = parameters["dilations"] or [1] * len(image)
    group = _factor(draw, draw.shape[1])
    full = [
        s * (n - 1) + d * (k - 1) + 1
        for s, n, d, k in zip(stride, image, dilation, kernel, strict=True)
    ]
    pads = parameters["pads"] or [0] * (2 * len(image))
    if any(n <= lo + hi for n, lo, hi in zip(full, pads, pads[len(image) :], strict=False)):
        parameters["pads"] = None
    parameters["group"] = group if group > 1 or draw.chance(0.3) else None
    parameters["output_padding"] = parameters["output_shape"] = None
    if draw.chance(0.3):
        parameters["output_padding"] = [draw.random.randrange(s) for s in stride]
    elif draw.chance(0.2):
        parameters["output_shape"] = [max(1, n - draw.random.randint(0, 2)) for n in full]
        parameters["pads"] = None
    if draw.chance(0.5):
        parameters["kernel_shape"] = None
    made = draw.one_of(1, 2, 3)
    return Form([(draw.shape[1], made, *kernel), (group * made,)], parameters)


# Products


def _gemm(draw: Draw) -> Form:
    turned, other = draw.chance(0.4), draw.chance(0.4)
    m, k = draw.shape[::-1] if turned else draw.shape
    n = draw.size()
    bias = draw.one_of((m, n), (n,), (1, n), (m, 1), (1,), ())
    if draw.opset < 7:
        bias = (m, n)
    parameters = {"transA": int(turned), "transB": int(other)}
    return Form([(n, k) if other else (k, n), bias], parameters)


def _matmul(draw: Draw) -> Form:
    k = draw.shape[-1]
    if draw.chance(0.2):
        return Form([(k,)])
    batch = [n if draw.chance(0.7) else 1 for n in draw.shape[:-2]]
    batch = batch[draw.one_of(0, len(batch)) :]
    if draw.chance(0.2):
        batch = [draw.one_of(2, 3), *([1] * (draw.rank - 2) if draw.chance(0.5) else batch)]
    return Form([(*batch, k, draw.size())])


# Normalizations


def _channels(draw: Draw) -> Form:
    return Form([draw.shape[1:2]] * 4)


def _batch_norm(draw: Draw) -> Form:
    learns = draw.opset >= 14 and draw.chance(0.4)
    parameters = {
        "training_mode": 1 if learns else None,
        "momentum": draw.one_of(None, 0.9, 0.25),
        # Before opset 7, a node is in training mode unless is_test is 1. The attribute spatial,
        # for statistics per element, was removed later, so it is never set.
        "is_test": 1,
        "spatial": None,
    }
    return Form([draw.shape[1:2]] * 4, parameters, results=3 if learns else 1)


def _layer_norm(draw: Draw) -> Form:
    axis = draw.random.randrange(draw.rank)
    return Form([draw.shape[axis:]] * 2, {"axis": draw.signed(axis)})


def _rms_norm(draw: Draw) -> Form:
    axis = draw.random.randrange(draw.rank)
    return Form([draw.shape[axis:]], {"axis": draw.signed(axis)})


def _group_norm(draw: Draw) -> Form:
    groups = _factor(draw, draw.shape[1])
    of_each = (groups if draw.opset < 21 else draw.shape[1],)
    return Form([of_each, of_each], {"num_groups": groups})


def _einsum(draw: Draw) -> Form:
    """A batched matrix product, a product of vectors, or a transposed sum of one operand."""
    letters = "abcdefgh"[: draw.rank]
    batch, inner = letters[:-1], letters[-1]
    equation, rest = draw.one_of(
        (f"{letters},{inner}z->{batch}z", [(draw.shape[-1], draw.size())]),
        (f"{letters},{letters}->{batch}", [draw.shape]),
        (f"...{inner},{inner}->...", [draw.shape[-1:]]),
        (f"{letters}->{letters[::-1]}", []),
        (f"{letters}->{batch[::-1]}", []),
    )
    return Form(rest, {"equation": equation})


def _mean_variance(draw: Draw) -> Form:
    # onnxruntime replaces the operator by a function with constants of float32.
    if draw.types["T"] != "tensor(float)":
        raise ValueError("another type than float32")
    # onnx's checker refuses a node without axes, although they have a default.
    return Form(parameters={"axes": [draw.signed(a) for a in draw.some_axes(least=1)]})


def _lrn(draw: Draw) -> Form:
    parameters = {
        "size": draw.one_of(1, 3, 5),
        "alpha": draw.one_of(None, 1e-4, 0.5),
        "beta": draw.one_of(None, 0.75, 0.5),
        "bias": draw.one_of(None, 1.0, 1.5),
    }
    return Form(parameters=parameters)


def _softmax(draw: Draw) -> Form:
    return Form(parameters={"axis": draw.signed(draw.random.randrange(draw.rank))})


# Movements


def _concat(draw: Draw) -> Form:
    axis = draw.random.randrange(draw.rank)
    others = [
        (*draw.shape[:axis], draw.size(), *draw.shape[axis + 1 :])
        for _ in range(draw.one_of(0, 1, 1, 2, 3))
    ]
    return Form(others, {"axis": draw.signed(axis)})


def _slice(draw: Draw) -> Form:
    axes = draw.some_axes(least=1)
    if draw.chance(0.3):
        axes = list(range(len(axes)))
    starts: list[int] = []
    ends: list[int] = []
    steps: list[int] = []
    for axis in axes:
        n = draw.shape[axis]
        step = draw.one_of(1, 1, 2, 3, -1, -1, -2) if draw.opset >= 10 else 1
        reach = range(-n - 2, n + 3)
        first, last = sorted(draw.random.choices(range(n + 1), k=2))
        if draw.chance(0.3):
            first, last = draw.random.choice(reach), draw.random.choice(reach)
        elif step < 0:
            first, last = last - 1 if last else 0, first - 1 if first else -n - 1
        elif draw.chance(0.2):
            last = np.iinfo(np.int32).max
        starts.append(first)
        ends.append(last)
        steps.append(step)
    plain = all(s == 1 for s in steps) and draw.chance(0.5)
    whole = axes == list(range(len(axes))) and plain
    signed = [draw.signed(a) if draw.opset >= 10 else a for a in axes]
    parameters = {
        "starts": starts,
        "ends": ends,
        "axes": None if whole else signed,
        "steps": None if plain else steps,
    }
    return Form(parameters=parameters)


def _split(draw: Draw) -> Form:
    axis = draw.random.randrange(draw.rank)
    n = draw.shape[axis]
    count = draw.random.randint(1, min(4, max(n, 1)))
    parameters: dict[str, Parameter] = {"axis": draw.signed(axis), "split": None}
    parameters["num_outputs"] = None
    even = n % count == 0 or draw.opset >= 18
    if even and draw.chance(0.5):
        # Parts of equal size. From opset 18 on, the last may be smaller, but not empty.
        count = count if -(-n // count) * (count - 1) < n else 1
        parameters["num_outputs"] = count
    else:
        cuts = sorted(draw.random.choices(range(n + 1), k=count - 1))
        parameters["split"] = [b - a for a, b in zip((0, *cuts), (*cuts, n), strict=True)]
    return Form(parameters=parameters, results=count)


def _pad(draw: Draw) -> Form:
    modes = ("constant", "constant", "reflect", "edge", *(("wrap",) if draw.opset >= 19 else ()))
    mode = draw.one_of(*modes)
    axes = draw.some_axes(least=1) if draw.opset >= 18 and draw.chance(0.5) else range(draw.rank)
    low, high = ([_padding(draw, draw.shape[a], mode) for a in axes] for _ in range(2))
    given = draw.opset >= 18 and (len(axes) < draw.rank or draw.chance(0.3))
    if list(axes) != list(range(draw.rank)):
        given = True
    value = draw.one_of(0, 1, 3) if mode == "constant" and draw.chance(0.5) else None
    parameters = {
        "pads": [*low, *high],
        "mode": mode if mode != "constant" or draw.chance(0.5) else None,
        "constant_value": value,
        "value": None if value is None else float(value),
        "axes": [draw.signed(a) for a in axes] if given else None,
    }
    return Form(parameters=parameters)


def _padding(draw: Draw, n: int, mode: str) -> int:
    if mode == "reflect":
        return draw.random.randint(0, min(3, max(n - 1, 0)))
    if mode != "constant" and not n:
        return 0
    if mode == "wrap":
        return draw.random.randint(0, min(3, n))
    return draw.one_of(0, 0, 1, 2, 3, -1 if n > 2 else 0)


def _reshape(draw: Draw) -> Form:
    shape: list[int] = []
    rest = prod(draw.shape)
    for _ in range(draw.random.randint(0, 3)):
        shape.append(_factor(draw, rest) if rest else draw.one_of(1, 2))
        rest //= shape[-1] or 1
    if rest != 1:
        shape.append(rest)
    draw.random.shuffle(shape)
    for i, n in enumerate(shape):
        if i < draw.rank and draw.shape[i] == n and draw.chance(0.4):
            shape[i] = 0
    if shape and 0 not in draw.shape and draw.chance(0.4):
        shape[draw.random.randrange(len(shape))] = -1
    zero = 0 if 0 in shape or draw.chance(0.7) else 1
    return Form(parameters={"shape": shape, "allowzero": zero or None})


def _expand(draw: Draw) -> Form:
    shape = [n if n != 1 or draw.chance(0.5) else draw.size() for n in draw.shape]
    shape = [1 if draw.chance(0.2) else n for n in shape]
    if draw.chance(0.3):
        shape = [draw.one_of(1, 2, 3), *shape]
    elif draw.chance(0.2):
        shape = shape[draw.random.randint(0, len(shape)) :]
    return Form(parameters={"shape": shape})


def _tile(draw: Draw) -> Form:
    return Form(parameters={"repeats": [draw.one_of(1, 1, 2, 3) for _ in draw.shape]})


def _squeeze(draw: Draw) -> Form:
    ones = [i for i, n in enumerate(draw.shape) if n == 1]
    axes = draw.random.sample(ones, draw.random.randint(0, len(ones)))
    if draw.opset < UNORDERED_AXES:
        axes = sorted(axes)
    given = [draw.signed(a) for a in axes]
    return Form(parameters={"axes": given if axes or draw.chance(0.3) else None})


UNORDERED_AXES = 13
"""The first opset in which onnx infers the right shape if the axes of Squeeze are not ascending."""


def _unsqueeze(draw: Draw) -> Form:
    more = draw.random.randint(1, 2)
    rank = draw.rank + more
    axes = draw.random.sample(range(rank), more)
    return Form(parameters={"axes": [draw.signed(a, rank) for a in axes]})


def _flatten(draw: Draw) -> Form:
    axis = draw.random.randint(0, draw.rank)
    return Form(parameters={"axis": axis if axis == draw.rank else draw.signed(axis)})


def _blocks(draw: Draw) -> Form:
    """A block size that divides the shape.

    For DepthToSpace, its square divides the channels; for SpaceToDepth, it divides both sizes of
    the image.
    """
    _, c, h, w = draw.shape
    depth = draw.schema.name == "DepthToSpace"
    fits = [b for b in (1, 2, 3) if (c % (b * b) == 0 if depth else h % b == w % b == 0)]
    mode = draw.one_of(None, "DCR", "CRD") if draw.opset >= 11 else None
    return Form(parameters={"blocksize": fits[-1] if draw.chance(0.7) else 1, "mode": mode})


def _blocked(draw: Draw) -> Shape:
    """A shape that can be cut into blocks with more than one element."""
    b = draw.one_of(1, 2, 2, 3)
    if draw.schema.name == "DepthToSpace":
        return (draw.one_of(1, 2), b * b * draw.one_of(1, 2, 3), draw.one_of(1, 2, 3), 2)
    return (draw.one_of(1, 2), draw.one_of(1, 2, 3), b * draw.one_of(1, 2, 3), b)


# Constants and other operators


def _constant(draw: Draw) -> Form:
    if draw.opset < 12 or draw.chance(0.4):
        dtype = draw.one_of(np.float32, np.float32, np.float16, np.int64, np.int32, np.bool_)
        shape = draw.one_of((), (1,), (draw.size(),), (2, 3))
        values = [draw.random.randint(-3, 3) for _ in range(prod(shape))]
        return _constant_form("value", np.array(values, dtype).reshape(shape))
    name = draw.one_of("value_float", "value_floats", "value_int", "value_ints")
    kind = float if "float" in name else int
    count = draw.random.randint(1, 4)
    values = [kind(draw.random.randint(-3, 3)) for _ in range(count)]
    return _constant_form(name, values if name.endswith("s") else values[0])


def _constant_form(name: str, value: Parameter) -> Form:
    """A constant, given by one of its mutually exclusive attributes."""
    kinds = ("value", "value_float", "value_floats", "value_int", "value_ints")
    kinds += ("value_string", "value_strings", "sparse_value")
    return Form(parameters={**dict.fromkeys(kinds), name: value})


def _constant_of_shape(draw: Draw) -> Form:
    shape = [draw.size() for _ in range(draw.random.randint(0, 3))]
    dtype = draw.one_of(np.float32, np.float16, np.int64, np.int32, np.bool_)
    value = np.array([draw.one_of(0, 1, 3)], dtype) if draw.chance(0.7) else None
    return Form(parameters={"input": shape, "value": value})


def _bit_shift(draw: Draw) -> Form:
    """Shifts by fewer bits than the elements have: larger shifts are undefined in C++."""
    most = 8 * DTYPES[draw.types["T"]].itemsize
    shape = draw.broadcast()
    bits = [draw.random.randrange(most) for _ in range(prod(shape))]
    parameters = {"Y": np.reshape(bits, shape), "direction": draw.one_of("LEFT", "RIGHT")}
    return Form(parameters=parameters)


def _mod(draw: Draw) -> Form:
    """Remainders. For floats, fmod is set: the result has the sign of the first operand."""
    whole = "int" in draw.types["T"]
    return Form(parameters={"fmod": draw.one_of(None, 0, 1) if whole else 1})


def _gelu(draw: Draw) -> Form:
    return Form(parameters={"approximate": draw.one_of(None, "none", "tanh")})


def _clip(draw: Draw) -> Form:
    if draw.opset >= 11:
        return Form([(), ()])
    low, high = draw.one_of((-1.5, 1.0), (0.0, 6.0), (-3.0, -1.0), (None, 1.0), (0.0, None))
    return Form(parameters={"min": low, "max": high})


def _dropout(draw: Draw) -> Form:
    learns = draw.opset >= 12 and draw.chance(0.15)
    ratio = 0.0 if learns else draw.one_of(0.0, 0.3, 0.5)
    parameters = {"ratio": ratio, "training_mode": learns if draw.chance(0.5) or learns else None}
    return Form(parameters={**parameters, "is_test": 1})


def _variadic(draw: Draw) -> Form:
    """Up to four operands. Before opset 8, all of them have the same shape."""
    shape = None if draw.opset >= 8 else draw.shape
    return Form([shape] * draw.one_of(0, 1, 1, 2, 3))


def _prelu(draw: Draw) -> Form:
    shape = tuple(n if draw.chance(0.6) else 1 for n in draw.shape)
    return Form([shape[draw.random.randint(0, len(shape)) :]])


FORMS: dict[str, Callable[[Draw], Form]] = {
    "MaxPool": _pool,
    "AveragePool": _pool,
    "LpPool": _lp_pool,
    "Col2Im": _col2im,
    "Det": _det,
    "CenterCropPad": _center_crop_pad,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _channels,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "Einsum": _einsum,
    "LRN": _lrn,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Hardmax": _softmax,
    "Concat": _concat,
    "Slice": _slice,
    "Split": _split,
    "Pad": _pad,
    "Reshape": _reshape,
    "Expand": _expand,
    "Tile": _tile,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Flatten": _flatten,
    "DepthToSpace": _blocks,
    "SpaceToDepth": _blocks,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Clip": _clip,
    "Dropout": _dropout,
    "PRelu": _prelu,
    "BitShift": _bit_shift,
    "Mod": _mod,
    "Gelu": _gelu,
    "MeanVarianceNormalization": _mean_variance,
    **INDEXED,
    **IMAGES,
    **quantised_forms(_conv, _matmul),
    **RECURRENT,
    **ATTENTION,
    **SIGNALS,
    **SELECTED,
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), _whole_image),
    **dict.fromkeys(("Sum", "Max", "Min", "Mean"), _variadic),
}
"""Valid combinations of shapes and parameters, for operators in which they depend on each other."""

RANKS: dict[str, tuple[int, int]] = {
    "Conv": (3, 5),
    "ConvTranspose": (3, 5),
    "MaxPool": (3, 5),
    "MaxUnpool": (3, 5),
    "AveragePool": (3, 5),
    "LpPool": (3, 5),
    "Col2Im": (3, 3),
    "Det": (2, 4),
    "GlobalAveragePool": (3, 5),
    "GlobalMaxPool": (3, 5),
    "GlobalLpPool": (3, 5),
    "InstanceNormalization": (3, 5),
    "GroupNormalization": (3, 5),
    "MeanVarianceNormalization": (4, 4),
    "RMSNormalization": (1, 5),
    "Einsum": (1, 4),
    "BatchNormalization": (2, 5),
    "LRN": (4, 4),
    "Gemm": (2, 2),
    "MatMul": (1, 5),
    "ConvInteger": (4, 4),
    "QLinearConv": (4, 4),
    "MatMulInteger": (2, 4),
    "QLinearMatMul": (2, 4),
    "QuantizeLinear": (0, 4),
    "DequantizeLinear": (0, 4),
    "DepthToSpace": (4, 4),
    "SpaceToDepth": (4, 4),
    "Unsqueeze": (0, 3),
    "Flatten": (0, 5),
    "OneHot": (0, 3),
    "EyeLike": (2, 2),
    "Trilu": (2, 5),
    "Scatter": (1, 4),
    "ScatterElements": (1, 4),
    "ScatterND": (1, 4),
    "TensorScatter": (2, 4),
    "TfIdfVectorizer": (1, 2),
    "GatherElements": (1, 4),
    "GatherND": (1, 4),
    **dict.fromkeys(("Slice", "Pad", "Tile"), (1, 5)),
    **IMAGE_RANKS,
    **RECURRENT_RANKS,
    **ATTENTION_RANKS,
    **SIGNAL_RANKS,
    **SELECTED_RANKS,
}
"""The least and the greatest number of axes of the first operand.

An operator that is not listed accepts any number, but at least 1 if it has an attribute axis.
"""

MOST_AXES = 5
"""Axes of a new value, at most."""

FIRST_SHAPES: dict[str, Callable[[Draw], Shape]] = {
    "DepthToSpace": _blocked,
    "SpaceToDepth": _blocked,
    **IMAGE_SHAPES,
    **SIGNAL_SHAPES,
    **SELECTED_SHAPES,
    "Col2Im": _columns,
    "Det": _square,
}
"""Shapes for the first operand of operators that accept few shapes."""

NOT_INFERRED = frozenset(("GroupNormalization", "MeanVarianceNormalization"))
"""Operators whose result has the type of the first operand, which onnx does not infer.

Models contain these types.
"""

DRAWING = frozenset(RANDOM)
"""Operators that draw random numbers, which differ between any two programs."""

NO_OPERAND = frozenset(("ConstantOfShape", "Range", *MADE_FROM_NUMBERS))
"""Operators whose first operand is a parameter."""

POSITIVE = frozenset(("var", "input_var"))
"""Names of operands that must be positive."""

OVERWRITTEN = frozenset(("mean", "var", "input_mean", "input_var"))
"""Names of operands that no other node may read, because onnxruntime overwrites them with the
statistics that a normalization computes in training mode."""

DIVISORS = frozenset((("Div", "B"), ("Mod", "B")))
"""Operators and operands that must not be 0 in integers, because onnxruntime refuses to divide."""
