"""Models of StableHLO in memory: a text of abele's own, and what JAX makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ....ir.support.arrays import Array
from ....ir.support.whole_file import whole_file
from ....passes.complex_pairs.signature import IMAG, REAL
from ..safetensors import file_parts
from .forms import generic_text

SUFFIX = ".mlir"
WEIGHTS = ".safetensors"


@dataclass(frozen=True)
class StableHloModel:
    """A module of StableHLO, and the values of some of its arguments.

    Attributes:
        text: the module in the generic form, with locations.
        weights: the values of arguments that the program holds as states, by name.
    """

    text: str
    weights: Mapping[str, Array] = field(default_factory=dict[str, Array])

    def save(self, path: str | Path) -> None:
        """Write PATH, a .mlir file, and, if there are weights, a .safetensors file of its name.

        Commands take both: `abele run net.mlir --weights net.safetensors`.
        """
        path = Path(path)
        with whole_file(path) as file:
            file.write(self.text.encode())
        if self.weights:
            with whole_file(path.with_suffix(WEIGHTS)) as file:
                for part in file_parts({}, self.weights):
                    file.write(part)


def in_parts(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays by name, with the real and the imaginary parts in place of each of complex numbers.

    The names are those that a program gives the parts of its arguments.
    """
    found: dict[str, Array] = {}
    for name, array in arrays.items():
        if array.dtype.kind == "c":
            found |= {name + REAL: np.real(array).copy(), name + IMAG: np.imag(array).copy()}
        else:
            found[name] = array
    return found


def serialized(value: Any) -> bytes:
    """The bytes that stand for a model in memory: those of its text and its weights."""
    model = model_in_memory(value)
    return b"".join((model.text.encode(), *file_parts({}, model.weights)))


def model_in_memory(value: Any) -> StableHloModel:
    """The model that from_jax has made, or of a jax.stages.Lowered or a jax.export.Exported."""
    if isinstance(value, StableHloModel):
        return value
    if hasattr(value, "mlir_module_serialized"):
        data = bytes(value.mlir_module_serialized)
        return StableHloModel(generic_text(data, "the jax.export.Exported"))
    return StableHloModel(lowered_text(value))


def lowered_text(lowered: Any) -> str:
    """The generic text of a jax.stages.Lowered."""
    operation = lowered.compiler_ir("stablehlo").operation
    return operation.get_asm(print_generic_op_form=True, enable_debug_info=True)


def argument_names(lowered: Any) -> list[str]:
    """The names of the arguments of a jax.stages.Lowered, "" for one without a name."""
    functions = lowered.compiler_ir("stablehlo").body.operations
    main = next(each for each in functions if each.attributes["sym_name"].value == "main")
    arguments = main.regions[0].blocks[0].arguments
    return [getattr(each.location, "name_str", None) or "" for each in arguments]
