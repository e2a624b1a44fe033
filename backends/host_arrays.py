"""Arrays that the host gives a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.support.arrays import Array
from ..ir.support.errors import InputError


def host_array(
    given: Mapping[str, Array],
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    what: str = "input",
) -> Array:
    """The array given under a name. Raises InputError if it is missing or of another type."""
    if name not in given:
        raise InputError(f'no {what} "{name}"; given: {", ".join(map(str, given)) or "none"}')
    values = np.asarray(given[name])
    if values.dtype != dtype or values.shape != shape:
        raise InputError(
            f'{what} "{name}": {values.dtype}{list(values.shape)}; need {dtype}{list(shape)}'
        )
    return values
