"""Valid shapes and parameters of operators that access elements by index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from ...driver.arrays import Array
from .draw import Draw, Form

NEGATIVE_INDICES = 11
"""The first opset in which indices may be counted from the end."""
OUT_OF_RANGE = 0.05
"""How often an index is out of range."""
ADDED_BY_SCATTERS = 16
"""The first opset in which a scatter may add or multiply."""
EXTREMES_OF_SCATTERS = 18
"""The first opset in which a scatter may take the minimum or maximum."""


def _seeded(draw: Draw) -> np.random.Generator:
    return np.random.default_rng(draw.random.randrange(1 << 30))


def _from_end(draw: Draw, indices: Array, sizes: Array | int) -> Array:
    """The same indices, with some of them counted from the end of their axes."""
    if draw.opset < NEGATIVE_INDICES or draw.chance(0.3):
        return indices
    return np.where(_seeded(draw).random(indices.shape) < 0.5, indices - sizes, indices)


def _astray(draw: Draw, indices: Array, sizes: Array | int) -> Array:
    """The same indices, with one of them out of range in one case of twenty."""
    if not indices.size or not draw.chance(OUT_OF_RANGE):
        return indices
    limits = np.asarray(sizes)
    wrong = np.broadcast_to(limits if draw.chance(0.5) else -limits - 1, indices.shape)
    at = np.unravel_index(draw.random.randrange(indices.size), indices.shape)
    astray = np.array(indices)
    astray[at] = wrong[at]
    return astray


def _reduction(draw: Draw) -> str | None:
    """The way in which a scatter merges updates with the data. None and "none" replace elements."""
    choices: list[str | None] = [None]
    # onnxruntime cannot merge these types.
    unmerged = ("tensor(bool)", "tensor(float16)")
    if draw.opset >= ADDED_BY_SCATTERS and draw.types["T"] not in unmerged:
        choices += ["none", "add", "mul"]
        if draw.opset >= EXTREMES_OF_SCATTERS:
            choices += ["max", "min"]
    return draw.one_of(*choices)


def _gather(draw: Draw) -> Form:
    axis = draw.random.randrange(draw.rank)
    n = draw.shape[axis]
    if not n:
        return Form(parameters={"axis": axis, "indices": np.zeros(0)})
    shape = draw.one_of((), (1,), (2,), (3,), (5,))
    low = -n if draw.opset >= NEGATIVE_INDICES else 0
    indices = [draw.random.randrange(low, n) for _ in range(prod(shape))]
    if draw.chance(0.3):
        indices = sorted(i % n for i in indices)
    given = _astray(draw, np.array(indices, np.int64).reshape(shape), n)
    return Form(parameters={"axis": draw.signed(axis), "indices": given})


def _partly(draw: Draw) -> list[int]:
    """A random shape with no axis longer than the first operand's."""
    return [n if draw.chance(0.6) else draw.random.randint(min(n, 1), n) for n in draw.shape]


def _gather_elements(draw: Draw) -> Form:
    axis = draw.random.randrange(draw.rank)
    n, shape = draw.shape[axis], _partly(draw)
    if draw.chance(0.4):
        shape[axis] = draw.one_of(1, 2, 5)
    indices = _astray(draw, _from_end(draw, _seeded(draw).integers(0, n, shape), n), n)
    return Form(parameters={"axis": draw.signed(axis), "indices": indices})


def _scatter_elements(draw: Draw) -> Form:
    """Updates of single elements.

    No element is replaced twice, because the standard leaves open which update wins.
    """
    axis = draw.random.randrange(draw.rank)
    n, shape, reduction = draw.shape[axis], _partly(draw), _reduction(draw)
    if reduction in (None, "none"):
        lines = np.broadcast_to(np.arange(n), [*shape[:axis], *shape[axis + 1 :], n])
        shuffled = np.moveaxis(_seeded(draw).permuted(lines, axis=-1), -1, axis)
        indices = np.take(shuffled, range(shape[axis]), axis)
    else:
        indices = _seeded(draw).integers(0, n, shape)
    parameters = {
        "axis": draw.signed(axis),
        "indices": _astray(draw, _from_end(draw, indices, n), n),
        "reduction": reduction,
    }
    return Form([None, tuple(shape)], parameters)


def _max_unpool(draw: Draw) -> Form:
    """Values for distinct elements of an image."""
    count = draw.rank - 2
    window = [draw.random.randint(1, 3) for _ in range(count)]
    strides = [draw.random.randint(1, 3) for _ in range(count)]
    lists = zip(draw.shape[2:], window, strides, strict=True)
    image = [*draw.shape[:2], *((n - 1) * s + k for n, k, s in lists)]
    if 0 in draw.shape:
        return Form([None, tuple(draw.shape)], {"kernel_shape": window})
    indices = _seeded(draw).permutation(prod(image))[: prod(draw.shape)].reshape(draw.shape)
    given = _astray(draw, indices, prod(image))
    return Form(parameters={"kernel_shape": window, "strides": strides, "I": given})


def _places(draw: Draw, sizes: Sequence[int], count: int, once: bool) -> Array:
    """Coordinates of random elements of a shape: [count, axes].

    Raises ValueError for an empty shape.

    Args:
        once: no two are equal, so there may be fewer.
    """
    total = prod(sizes)
    flat = draw.random.sample(range(total), min(count, total))
    if not once:
        flat = draw.random.choices(range(total), k=count)
    if not total:
        raise ValueError("an index into an empty axis")
    return np.stack(np.unravel_index(np.array(flat, np.int64), tuple(sizes)), -1)


def _gather_nd(draw: Draw) -> Form:
    batch = draw.random.randrange(min(draw.rank, 3)) if draw.opset >= 12 else 0
    batch = batch if draw.chance(0.5) else 0
    depth = draw.random.randint(1, draw.rank - batch)
    indexed = draw.shape[batch : batch + depth]
    each = draw.one_of((), (1,), (2,), (2, 2))
    shape = (*draw.shape[:batch], *each)
    places = _places(draw, indexed, prod(shape), once=False)
    given = _from_end(draw, places, np.array(indexed)).reshape(*shape, depth)
    indices = _astray(draw, given, np.array(indexed))
    return Form(parameters={"indices": indices, "batch_dims": batch or None})


def _scatter_nd(draw: Draw) -> Form:
    """Updates of elements or slices.

    None is replaced twice, because the standard leaves open which update wins.
    """
    depth = draw.random.randint(1, draw.rank)
    indexed, reduction = draw.shape[:depth], _reduction(draw)
    places = _places(draw, indexed, draw.one_of(1, 2, 4), once=reduction in (None, "none"))
    indices = _astray(draw, _from_end(draw, places, np.array(indexed)), np.array(indexed))
    if draw.chance(0.3):
        indices = indices[None]
    updates = (*indices.shape[:-1], *draw.shape[depth:])
    return Form([None, updates], {"indices": indices, "reduction": reduction})


def _one_hot(draw: Draw) -> Form:
    """Vectors of a few elements. Most integer indices are out of range."""
    if "int" not in draw.types["T1"]:
        raise ValueError("indices that are not integers")
    depth = draw.one_of(1, 2, 3, 5)
    axis = draw.signed(draw.random.randint(0, draw.rank), draw.rank + 1)
    parameters = {"depth": np.full(draw.one_of((), (1,)), depth), "axis": axis}
    return Form([None, (2,)], parameters)


def _eye_like(draw: Draw) -> Form:
    types = {"tensor(float)": 1, "tensor(int32)": 6, "tensor(int64)": 7}
    dtype = draw.one_of(None, *types.values())
    return Form(parameters={"dtype": dtype, "k": draw.one_of(None, 0, 1, -1, 2, -3)})


def _trilu(draw: Draw) -> Form:
    offset = draw.one_of(None, 0, 1, -1, 2, -2, 9, -9)
    k = None if offset is None else np.full(draw.one_of((), (1,)), offset)
    return Form(parameters={"k": k, "upper": draw.one_of(None, 0, 1)})


def _range(draw: Draw) -> Form:
    """A short range. Its step stays away from 0, even if an integer type cuts off its fraction."""
    step = draw.one_of(1, 1, 2, 3, -1, -2, 1.5, -2.5)
    start = draw.random.randint(-4, 4)
    limit = start + draw.random.randint(-1, 6) * step + draw.one_of(0, 0, 0.5)
    return Form(parameters={"start": start, "limit": limit, "delta": step})


def _tensor_scatter(draw: Draw) -> Form:
    """Updates of positions within the cache, or past its end and round to its start."""
    if 0 in draw.shape:
        raise ValueError("an empty cache")
    axis = draw.random.randrange(1, draw.rank)
    size, mode = draw.shape[axis], draw.one_of(None, "linear", "circular")
    length = draw.random.randint(1, size)
    most = size - 1 if mode == "circular" else size - length
    first = [draw.random.randint(0, most) for _ in range(draw.shape[0])]
    parameters = {
        "axis": axis - draw.rank,
        "mode": mode,
        "write_indices": draw.one_of(None, np.array(first)),
    }
    return Form([(*draw.shape[:axis], length, *draw.shape[axis + 1 :])], parameters)


def _tf_idf(draw: Draw) -> Form:
    """Counts of small numbers and of pairs of small numbers."""
    if 0 in draw.shape:
        raise ValueError("no items")
    singles = draw.random.sample(range(-3, 4), 3)
    pairs = draw.random.sample(range(-3, 4), 4)
    columns = draw.random.sample(range(6), 5)
    parameters = {
        "mode": draw.one_of("TF", "IDF", "TFIDF"),
        "min_gram_length": draw.one_of(1, 2),
        "max_gram_length": 2,
        "max_skip_count": draw.one_of(0, 1, 3),
        "ngram_counts": [0, 3],
        "ngram_indexes": columns,
        "pool_int64s": [*singles, *pairs],
        "pool_strings": None,
        "weights": draw.one_of(None, [0.5, 1.0, 2.0, -1.0, 3.0]),
    }
    return Form(parameters=parameters)


INDEXED: dict[str, Callable[[Draw], Form]] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
    "TfIdfVectorizer": _tf_idf,
    "MaxUnpool": _max_unpool,
    "OneHot": _one_hot,
    "EyeLike": _eye_like,
    "Trilu": _trilu,
    "Range": _range,
}
"""Valid combinations of shapes and parameters of these operators."""
