"""Values that replace those of a model: arrays of an .npz file that name optional inputs."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from .arrays import Array, Tensor, npz_names, read_npz

if TYPE_CHECKING:
    from .program import Model


def overrides(
    model: Model,
    inputs: str | os.PathLike[str] | Mapping[str, Array],
    known: Collection[str],
) -> dict[str, Array]:
    """The arrays that replace values of a model, so that it must be compiled with them.

    model: as for compile_model; others than ONNX models have no values to replace. inputs: arrays
    by name, or an .npz file. known: the names of what the program takes, and of what has got a
    value already. Raises InputError.
    """
    names = set(inputs) if isinstance(inputs, Mapping) else set(npz_names(inputs))
    is_path = isinstance(model, str | os.PathLike)
    if names <= set(known) or (is_path and not os.fspath(model).endswith(".onnx")):
        return {}
    # Most runs give no such array, and start sooner without onnx.
    from ..importers import optional_inputs  # noqa: PLC0415

    optional = optional_inputs(model).items()
    wanted = [Tensor(name, *kind) for name, kind in optional if name in names - set(known)]
    if isinstance(inputs, Mapping):
        return {tensor.name: inputs[tensor.name] for tensor in wanted}
    return read_npz(inputs, wanted, names - {tensor.name for tensor in wanted})
