"""Compares values with the types that a model declares for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx

from ..building import Value, dtype_of, shape_of
from ..front_end import ANY
from .node import Held, Listed, Maps, Maybe, Texts
from .tensors import dtype_or_none
from .valid import LENIENT


class Declared:
    """The types that a model declares for its values, by name.

    Attributes:
        values: the declarations. A name may have several.
        dims: sizes of symbolic dimensions, which replace the symbols of every declared shape.
            Symbols without a size, and sizes below 0, allow any size.
    """

    def __init__(self, values: Iterable[onnx.ValueInfoProto], dims: Mapping[str, int]) -> None:
        self._dims = dims
        self._types: dict[str, list[onnx.TypeProto]] = {}
        for value in values:
            self._types.setdefault(value.name, []).append(value.type)

    def problem(self, name: str, value: Held, open_axes: Collection[int] = ()) -> str:
        """The difference between a value's type and its declared type; "" if there is none.

        Declarations of sequences, of maps too, and of optionals are ignored.

        Args:
            open_axes: those whose sizes depend on values; any declared size is right for them.
        """
        if isinstance(value, Listed | Maybe | Maps):
            return ""
        text, value = isinstance(value, Texts), _plain(value)
        for type_ in self._types.get(name, ()):
            kind = np.dtype(object) if text else dtype_of(value)
            if not self._is_true(type_, kind, shape_of(value), open_axes):
                own = f"{_name(kind)}{list(shape_of(value))}"
                return f"{name!r} is {own}; the model declares {self._text(type_)}; {LENIENT}"
        return ""

    def _is_true(
        self,
        type_: onnx.TypeProto,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        open_axes: Collection[int],
    ) -> bool:
        kind = type_.WhichOneof("value")
        if kind != "tensor_type":
            return kind is None
        tensor = type_.tensor_type
        if tensor.elem_type and dtype_or_none(tensor.elem_type) != dtype:
            return False
        if not tensor.HasField("shape"):
            return True
        sizes = tuple(self._sizes(tensor.shape))
        return len(sizes) == len(shape) and all(
            i in open_axes or n is None or n == m
            for i, (n, m) in enumerate(zip(sizes, shape, strict=True))
        )

    def _sizes(self, shape: onnx.TensorShapeProto) -> Iterator[int | None]:
        for dimension in shape.dim:
            if dimension.HasField("dim_value"):
                yield dimension.dim_value if dimension.dim_value >= 0 else None
            else:
                name = dimension.dim_param
                yield None if name == ANY else self._dims.get(name)

    def _text(self, type_: onnx.TypeProto) -> str:
        kind = type_.WhichOneof("value") or "no type"
        if kind != "tensor_type":
            return f"a {kind.removesuffix('_type')}"
        tensor = type_.tensor_type
        dtype = dtype_or_none(tensor.elem_type)
        name = f"elements of type {tensor.elem_type}" if dtype is None else _name(dtype)
        if not tensor.HasField("shape"):
            return name
        sizes = ("?" if n is None else str(n) for n in self._sizes(tensor.shape))
        return f"{name}[{', '.join(sizes)}]"


def _plain(value: Value | Texts) -> Value:
    return value.places if isinstance(value, Texts) else value


def _name(dtype: np.dtype[Any]) -> str:
    """The name of an element type. onnx's one for strings is object."""
    return "str" if dtype.kind == "O" else dtype.name
