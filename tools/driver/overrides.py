"""Arrays of an .npz file that are no inputs of the program: values that replace those of the model,
and values with which the model is compiled already."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import ArrayLike

from ...ir.support.errors import InputError
from ..importers.front_ends import Model, front_end_of
from .arrays import Array, Tensor, npz_names, read_npz, read_npz_array

FEW_ELEMENTS = 8
"""The most elements of an array that a message shows."""


def overrides(
    model: Model,
    inputs: str | os.PathLike[str] | Mapping[str, Array],
    known: Collection[str],
) -> dict[str, Array]:
    """The arrays that replace values of a model, so that it must be compiled with them.

    Raises InputError.

    Args:
        model: the model, as compile_model takes it; most kinds have no values to replace.
        inputs: arrays by name, or an .npz file.
        known: the names of the program's inputs, and of inputs that have a value already.
    """
    names = set(inputs) if isinstance(inputs, Mapping) else set(npz_names(inputs))
    front_end = front_end_of(model)
    if names <= set(known) or front_end is None or front_end.optional_inputs is None:
        return {}
    optional = front_end.optional_inputs(model).items()
    wanted = [Tensor(name, *kind) for name, kind in optional if name in names - set(known)]
    if isinstance(inputs, Mapping):
        return {tensor.name: inputs[tensor.name] for tensor in wanted}
    return read_npz(inputs, wanted, names - {tensor.name for tensor in wanted})


def refuse_other_values(
    inputs: str | os.PathLike[str] | Mapping[str, Array], values: Mapping[str, ArrayLike]
) -> None:
    """Raise InputError for an array that is not the value with which the model is compiled.

    Args:
        inputs: arrays by name, or an .npz file.
        values: by name; arrays that are equal to them may be among the inputs.
    """
    in_memory = isinstance(inputs, Mapping)
    names = set(inputs) if in_memory else set(npz_names(inputs))
    for name in names & set(values):
        array = np.asarray(inputs[name]) if in_memory else read_npz_array(inputs, name)
        value = np.asarray(values[name])
        alike = value.shape == array.shape or (not value.ndim and array.size == 1)
        if not (alike and np.array_equal(value.astype(array.dtype).reshape(array.shape), array)):
            place = "" if in_memory else f"{os.fspath(inputs)}: "
            raise InputError(
                f"{place}{name!r} is {_shown(array)}, but --value {name} is {_shown(value)}; need "
                "one of the two"
            )


def _shown(array: Array) -> str:
    """A small array in full, a large one by its type."""
    if array.size <= FEW_ELEMENTS:
        return str(array.tolist())
    return f"{array.dtype.name}{list(array.shape)}"
