"""Finds the first value of a training step that is not finite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Operation

from ...backends.evaluate.partition import Stacked, run_partition
from ...backends.reference import run_reference
from ...dialects import nn, partition
from ...dialects.control import RepeatOp
from ...ir.provenance import place
from ...ir.support.arrays import Array
from ...ir.support.number_kinds import is_floating
from ...ir.upstream import ModuleOp


class _Found(Exception):
    """Raised to end a run at the first value that is not finite. It says where."""


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
    loop = _loop_of_runs(module)
    for name, array in inputs.items():
        for step, batch in enumerate([array] if loop is None else array):
            if not all_finite(batch):
                when = "before the step" if loop is None else f"in {_batch(step, loop)}"
                return f"input {name!r} holds {_wrong(batch)} {when}"
    for name, array in states.items():
        if not all_finite(array):
            what = "step" if loop is None else "run"
            return f"state {name!r} holds {_wrong(array)} before the {what}"
    steps = _Steps(loop)

    def observe(op: Operation, operands: Sequence[Array], results: Sequence[Array]) -> None:
        steps.count(op)
        for values in results:
            if not all_finite(values) and all(map(all_finite, operands)) and operands:
                raise _Found(f"{op.name} at {place(op)} makes {_wrong(values)} of finite values")

    return steps.found(lambda: run_reference(module, inputs, states, observe=observe))


def first_not_finite_in_bits(
    module: ModuleOp, inputs: Mapping[str, Array], states: Mapping[str, Array]
) -> str:
    """The first operation of partition that makes an infinity or NaN, in words; "" if none does.

    The module computes the bits of the machine, in the types that the machine holds. All inputs and
    states must be finite.
    """
    steps = _Steps(_loop_of_runs(module))

    def observe(op: Operation, operands: Sequence[Stacked], results: Sequence[Stacked]) -> None:
        steps.count(op)
        for result in results if isinstance(op, partition.ComputeOp) else ():
            values = result.values
            if not all_finite(values):
                what = f"{_wrong(values)} of {result.tensor.element_type}"
                raise _Found(f"the operation at {place(op)} makes {what}")

    return steps.found(lambda: run_partition(module, inputs, states, observe))


def same_states(module: ModuleOp, states: Mapping[str, Array]) -> bool:
    """Whether a module of nn has these states, in the types of these arrays."""
    known = {op.sym_name.data: op.value.array for op in module.ops if isinstance(op, nn.StateOp)}
    return all(name in known and known[name].dtype == a.dtype for name, a in states.items())


def _loop_of_runs(module: ModuleOp) -> RepeatOp | None:
    """The loop whose iterations are the steps of a run, if there is one."""
    loops = (op for op in module.walk() if isinstance(op, RepeatOp))
    return next((op for op in loops if op.runs is not None), None)


@dataclass
class _Steps:
    """The steps that a run has begun.

    Attributes:
        seen: how often each operation of the loop's block was seen: once in a step.
    """

    loop: RepeatOp | None
    seen: Counter[Operation] = field(default_factory=Counter[Operation])

    def count(self, op: Operation) -> None:
        """Count an operation."""
        if self.loop is not None and op.parent is self.loop.body.block:
            self.seen[op] += 1

    def found(self, run: Callable[[], object]) -> str:
        """What a run raises as found, with the step that it was in; "" if it raises nothing."""
        try:
            with np.errstate(all="ignore"):
                run()
        except _Found as found:
            step = max(self.seen.values(), default=0)
            where = "" if self.loop is None or not step else f" in {_batch(step - 1, self.loop)}"
            return f"{found}{where}"
        return ""


def _batch(step: int, loop: RepeatOp) -> str:
    return f"batch {step + 1} of {loop.iterations} of the run"


def _wrong(values: Array) -> str:
    wide = values.astype(np.float64).ravel()
    return str(wide[~np.isfinite(wide)][0])
