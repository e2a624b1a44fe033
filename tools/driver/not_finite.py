"""Where a step of training first has a value that is not finite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ...backends.reference import run_reference
from ...ir.number_kinds import is_floating
from ...ir.provenance import place
from ...ir.upstream import ModuleOp

Array = NDArray[Any]


class _Found(Exception):
    """Raised to end a run."""


def all_finite(array: Array) -> bool:
    """Whether no element is infinite or no number."""
    if not is_floating(array.dtype):
        return True
    # One pass without an array of truth values: a sum is finite only if all that is added is.
    with np.errstate(all="ignore"):
        total = float(array.sum(dtype=np.float64))
    return bool(np.isfinite(total)) or bool(np.isfinite(array.astype(np.float64)).all())


def first_not_finite(
    module: ModuleOp, inputs: Mapping[str, Array], states: Mapping[str, Array]
) -> str:
    """The first operation of a program of nn that makes a value that is not finite from finite
    ones, in words; "" if there is none.

    It is looked for in a run of the reference, which may round in another order than the machine.
    """
    for kind, given in (("input", inputs), ("state", states)):
        for name, array in given.items():
            if not all_finite(array):
                return f"{kind} {name!r} holds {_wrong(array)} before the step"
    found: list[str] = []

    def observe(op: Operation, operands: Sequence[Array], results: Sequence[Array]) -> None:
        for values in results:
            if not all_finite(values) and all(map(all_finite, operands)) and operands:
                found.append(f"{op.name} at {place(op)} makes {_wrong(values)} of finite values")
                raise _Found

    try:
        with np.errstate(all="ignore"):
            run_reference(module, inputs, states, observe=observe)
    except _Found:
        return found[0]
    return ""


def _wrong(values: Array) -> str:
    wide = values.astype(np.float64).ravel()
    return str(wide[~np.isfinite(wide)][0])
