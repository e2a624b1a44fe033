"""Inputs and outputs of a program on the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType

from ...dialects.dtypes import numpy_dtype
from ...ir.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True)
class Run:
    """The outputs and the states after a run, by name, in their tensors' shapes."""

    outputs: dict[str, Array]
    state: dict[str, Array]


def host_tensor(
    given: Mapping[str, Array], name: str, tensor: TensorType, what: str = "input"
) -> Array:
    """The array given under a name. Raises InputError if it is missing or of another type."""
    if name not in given:
        raise InputError(f'no {what} "{name}"; given: {", ".join(map(str, given)) or "none"}')
    values = np.asarray(given[name])
    dtype, shape = numpy_dtype(tensor.element_type), tensor.get_shape()
    if values.dtype != dtype or values.shape != shape:
        raise InputError(
            f'{what} "{name}": {values.dtype}{list(values.shape)}; need {dtype}{list(shape)}'
        )
    return values
