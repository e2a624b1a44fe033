"""Inputs and outputs of a program on the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType

from ...dialects.dtypes import numpy_dtype
from ...ir.support.arrays import Array
from ..host_arrays import host_array


@dataclass(frozen=True)
class Run:
    """The outputs and the states after a run, by name, in their tensors' shapes."""

    outputs: dict[str, Array]
    state: dict[str, Array]


def host_tensor(
    given: Mapping[str, Array], name: str, tensor: TensorType, what: str = "input"
) -> Array:
    """The array given under a name. Raises InputError if it is missing or has another type."""
    return host_array(given, name, numpy_dtype(tensor.element_type), tensor.get_shape(), what)
