"""Values that replace a model's own: arrays with the names of its optional inputs."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from ..importers.front_ends import Model, front_end_of
from .arrays import Array, Tensor, npz_names, read_npz


def overrides(
    model: Model,
    inputs: str | os.PathLike[str] | Mapping[str, Array],
    known: Collection[str],
) -> dict[str, Array]:
    """The arrays that replace values of a model, so that it must be compiled with them.

    Raises InputError.

    Args:
        model: as for compile_model; most kinds of models have no values to replace.
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
