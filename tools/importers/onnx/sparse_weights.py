"""Reads the sparse initialisers of an ONNX model: some values, and the indices where they lie."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
import onnx

from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from .tensors import check_stored, tensor_array, tensor_kind


def weights_of(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    """The initialisers of a graph. Those of sparse ones have no elements."""
    return [*graph.initializer, *map(without_elements, graph.sparse_initializer)]


def without_elements(sparse: onnx.SparseTensorProto) -> onnx.TensorProto:
    """The name, the element type and the shape of a sparse tensor."""
    values = sparse.values
    return onnx.TensorProto(name=values.name, data_type=values.data_type, dims=sparse.dims)


def check_sparse(sparse: onnx.SparseTensorProto, folder: Path | None, what: str) -> None:
    """Raise InputError if a sparse tensor's data is missing, or does not match its shape.

    Reads no external data, and no indices.

    Args:
        folder, what: as for tensor_array.
    """
    _check_kinds(sparse, what)
    check_stored(sparse.values, folder, f"{what}: values")
    if sparse.values.dims[0]:
        check_stored(sparse.indices, folder, f"{what}: indices")


def dense_array(sparse: onnx.SparseTensorProto, folder: Path | None, what: str) -> Array:
    """The array of a sparse tensor, with its zeros.

    Raises InputError if its data is missing or damaged, and for indices that are outside the
    shape, that repeat, or that are not sorted.

    Args:
        folder, what: as for tensor_array.
    """
    dtype, shape = _check_kinds(sparse, what)
    values = tensor_array(sparse.values, folder, f"{what}: values")
    try:
        dense = np.zeros(shape, dtype)
    except (ValueError, MemoryError):
        size = prod(shape) * dtype.itemsize
        raise InputError(f"{what}: {size} bytes with its zeros do not fit in memory") from None
    if len(values):
        indices = tensor_array(sparse.indices, folder, f"{what}: indices")
        dense.reshape(-1)[_places(indices, shape, what)] = values
    dense.flags.writeable = False
    return dense


def _check_kinds(
    sparse: onnx.SparseTensorProto, what: str
) -> tuple[np.dtype[np.generic], tuple[int, ...]]:
    """The dtype and shape of a sparse tensor. Raises InputError for parts that do not fit them."""
    dtype, shape = tensor_kind(without_elements(sparse), what)
    (_, given), indices = tensor_kind(sparse.values, f"{what}: values"), sparse.indices
    if not shape:
        raise InputError(f"{what}: a sparse tensor without axes; need one or more")
    if len(given) != 1:
        raise InputError(f"{what}: values of shape {list(given)}; need one axis")
    allowed = ([*given], [*given, len(shape)])
    if given[0] and indices.data_type != onnx.TensorProto.INT64:
        raise InputError(f"{what}: indices of element type {indices.data_type}; need int64")
    if given[0] and [*indices.dims] not in allowed:
        raise InputError(
            f"{what}: indices of shape {list(indices.dims)}; need {allowed[0]} or {allowed[1]}"
        )
    return dtype, shape


def _places(indices: Array, shape: tuple[int, ...], what: str) -> Array:
    """The places of values in a flat tensor: (values,).

    Args:
        indices: flat ones (values,), or one for each axis (values, axes).
    """
    sizes = shape if indices.ndim == 2 else (prod(shape),)
    by_axis = indices.reshape(len(indices), len(sizes))
    outside = ((by_axis < 0) | (by_axis >= np.array(sizes))).any(axis=1)
    if outside.any():
        wrong = by_axis[np.argmax(outside)].tolist()
        raise InputError(f"{what}: index {wrong} is outside shape {list(sizes)}")
    places = np.ravel_multi_index(tuple(by_axis.T), sizes)
    falls = places[1:] <= places[:-1]
    if falls.any():
        first = int(np.argmax(falls))
        before, after = by_axis[first].tolist(), by_axis[first + 1].tolist()
        raise InputError(
            f"{what}: index {after} follows {before}; need each index once, in ascending order"
        )
    return places
