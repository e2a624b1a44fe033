"""ATen operators that make tensors of numbers known at import, or of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np
import onnx

from .aten_node import I64, AtenNode, Importer, Results, number_dtype

Sizes = Callable[[AtenNode], list[int]]


def _own(node: AtenNode) -> list[int]:
    return node.integers("size")


def _of_self(node: AtenNode) -> list[int]:
    return list(node.shape("self"))


def _full(sizes: Sizes, value: float | None) -> Importer:
    """A tensor that repeats a number.

    Args:
        value: the number; None for the one in the argument fill_value.
    """

    def importer(node: AtenNode) -> Results:
        number: Any = node.get("fill_value") if value is None else value
        if not isinstance(number, bool | int | float):
            number = node.scalar(node.value("fill_value"), "fill_value")
        shape = sizes(node)
        if any(n < 0 for n in shape):
            raise node.bad(f"sizes {shape}; need 0 or more")
        with np.errstate(all="ignore"):
            one = np.array(number).astype(node.result_dtype())
        return node.filled(one, shape)

    return importer


def _arange(node: AtenNode) -> Results:
    start: Any = node.get("start", 0)
    end, step = node.get("end"), node.get("step", 1)
    numbers = [
        each if isinstance(each, int | float) else node.scalar(each, name)
        for each, name in ((start, "start"), (end, "end"), (step, "step"))
    ]
    if not all(np.isfinite(numbers)) or numbers[2] == 0:
        raise node.bad(f"from {numbers[0]} to {numbers[1]} by {numbers[2]}")
    first, last, by = numbers
    whole = all(isinstance(n, int) for n in numbers)
    count = -((first - last) // by) if whole else ceil((last - first) / by)
    count = max(0, int(count))
    node.check_table(count)
    dtype = node.wanted_dtype(I64 if whole else np.dtype(np.float32))
    return node.known((first + by * np.arange(count)).astype(dtype))


def _linspace(node: AtenNode) -> Results:
    start, end, steps = node.number("start"), node.number("end"), node.integer("steps")
    if steps < 0:
        raise node.bad(f"{steps} steps; need 0 or more")
    node.check_table(steps)
    return node.known(np.linspace(start, end, steps).astype(node.result_dtype()))


def _eye(node: AtenNode) -> Results:
    rows = node.integer("n")
    columns = node.integer("m", rows)
    if min(rows, columns) < 0:
        raise node.bad(f"{rows} by {columns}; need sizes of 0 or more")
    node.check_table(rows, columns)
    return node.known(np.eye(rows, columns).astype(node.result_dtype()))


def _scalar_tensor(node: AtenNode) -> Results:
    given: Any = node.get("s")
    if not isinstance(given, bool | int | float):
        return node.value("s")
    return node.known(np.array(given).astype(node.wanted_dtype(number_dtype(given))))


def _random(operator: str, sizes: Sizes, **fixed: float) -> Importer:
    """Random numbers of ONNX's operators."""

    def importer(node: AtenNode) -> Results:
        code = onnx.helper.np_dtype_to_tensor_dtype(node.result_dtype())
        return node.apply(operator, shape=sizes(node), dtype=code, **fixed)

    return importer


def _triangle_indices(*, upper: bool) -> Importer:
    def importer(node: AtenNode) -> Results:
        rows, columns = node.integer("row"), node.integer("col")
        offset = node.integer("offset", 0)
        node.check_table(max(rows, 0), max(columns, 0))
        ones = np.ones((rows, columns), np.bool_)
        kept = np.triu(ones, offset) if upper else np.tril(ones, offset)
        return node.known(np.stack(np.nonzero(kept)).astype(np.int64))

    return importer


CREATIONS: dict[str, Importer] = {
    "zeros": _full(_own, 0),
    "ones": _full(_own, 1),
    "full": _full(_own, None),
    "empty": _full(_own, 0),
    "empty_strided": _full(_own, 0),
    "zeros_like": _full(_of_self, 0),
    "ones_like": _full(_of_self, 1),
    "full_like": _full(_of_self, None),
    "empty_like": _full(_of_self, 0),
    "new_zeros": _full(_own, 0),
    "new_ones": _full(_own, 1),
    "new_full": _full(_own, None),
    "new_empty": _full(_own, 0),
    "new_empty_strided": _full(_own, 0),
    "zero": _full(_of_self, 0),
    "fill": lambda node: _filled(node),
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    "scalar_tensor": _scalar_tensor,
    "tril_indices": _triangle_indices(upper=False),
    "triu_indices": _triangle_indices(upper=True),
    "rand": _random("RandomUniform", _own),
    "randn": _random("RandomNormal", _own),
    "rand_like": _random("RandomUniform", _of_self),
    "randn_like": _random("RandomNormal", _of_self),
}
"""The importers of operators that make tensors. What is called empty is 0."""


def _filled(node: AtenNode) -> Results:
    given: Any = node.get("value")
    if not isinstance(given, bool | int | float):
        return node.expanded(node.converted(given, node.dtype("self")), node.shape("self"))
    return node.filled(np.array(given).astype(node.dtype("self")), node.shape("self"))
