"""Finds the first value of a training step that is not finite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import Operation

from ...backends.reference import run_reference
from ...dialects.control import RepeatOp
from ...ir.provenance import place
from ...ir.support.arrays import Array
from ...ir.support.number_kinds import is_floating
from ...ir.upstream import ModuleOp


class _Found(Exception):
    """Raised to end a run at the first value that is not finite."""


def all_finite(array: Array) -> bool:
    """Whether all elements are finite numbers."""
    if not is_floating(array.dtype):
        return True
    # One pass without an array of truth values: a sum is finite only if all that is added is.
    with np.errstate(all="ignore"):
        total = float(array.sum(dtype=np.float64))
    return bool(np.isfinite(total)) or bool(np.isfinite(array.astype(np.float64)).all())


def first_not_finite(
    module: ModuleOp, inputs: Mapping[str, Array], states: Mapping[str, Array]
) -> str:
    """The first operation of nn that makes an infinity or NaN of finite operands, in words.

    It is "" if there is no such operation.

    It is looked for in a run of the reference, which may round in another order than the machine.
    If the run does several steps, the words say in which of them it is.
    """
    loops = (op for op in module.walk() if isinstance(op, RepeatOp))
    loop = next((op for op in loops if op.runs is not None), None)
    for name, array in inputs.items():
        for step, batch in enumerate([array] if loop is None else array):
            if not all_finite(batch):
                when = "before the step" if loop is None else f"in {_batch(step, loop)}"
                return f"input {name!r} holds {_wrong(batch)} {when}"
    for name, array in states.items():
        if not all_finite(array):
            what = "step" if loop is None else "run"
            return f"state {name!r} holds {_wrong(array)} before the {what}"
    found: list[str] = []
    # Each operation of the loop's block is seen once in a step; the first of it begins the step.
    seen: Counter[Operation] = Counter()

    def observe(op: Operation, operands: Sequence[Array], results: Sequence[Array]) -> None:
        if loop is not None and op.parent is loop.body.block:
            seen[op] += 1
        for values in results:
            if not all_finite(values) and all(map(all_finite, operands)) and operands:
                step = max(seen.values(), default=0)
                where = "" if loop is None or not step else f" in {_batch(step - 1, loop)}"
                made = f"makes {_wrong(values)} of finite values"
                found.append(f"{op.name} at {place(op)} {made}{where}")
                raise _Found

    try:
        with np.errstate(all="ignore"):
            run_reference(module, inputs, states, observe=observe)
    except _Found:
        return found[0]
    return ""


def _batch(step: int, loop: RepeatOp) -> str:
    return f"batch {step + 1} of {loop.iterations} of the run"


def _wrong(values: Array) -> str:
    wide = values.astype(np.float64).ravel()
    return str(wide[~np.isfinite(wide)][0])
