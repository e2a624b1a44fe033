"""The operations of a model that make infinities or NaN, in a run of the rounding reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import numpy as np
from xdsl.ir import Operation

from ...backends.codelets.conversion import float_limits
from ...backends.reference import is_evaluable, run_reference
from ...backends.reference.operation import Meaningless
from ...backends.reference.unrounded import unrounded_value
from ...dialects.nn import ConstantOp
from ...ir.provenance import place
from ...ir.support.arrays import Array
from ...ir.upstream import ModuleOp
from ..driver.not_finite import all_finite


@dataclass(frozen=True)
class Made:
    """The first source of elements that are not finite.

    Attributes:
        op, place: the operation that makes them from finite operands, or that reads a weight or
            constant with such elements.
        count, size: the number of elements that are not finite, and of all elements.
        largest: the largest magnitude of the operands; None for a weight or constant.
        dtype: of the elements.
        overflows: whether some of them are finite before the result is rounded.
    """

    op: str
    place: str
    count: int
    size: int
    dtype: np.dtype[Any]
    largest: float | None = None
    overflows: bool = False

    def __str__(self) -> str:
        elements = f"{self.count} of {self.size} elements"
        if self.largest is None:
            return (
                f"your model has a weight or constant that is not finite: {elements} of what "
                f"{self.op} at {self.place} reads"
            )
        operands = f"{elements} of {self.op}, whose operands are at most {self.largest:.6g}"
        if self.overflows:
            name, most = self.dtype.name, float_limits(self.dtype).largest
            return f"your model overflows {name} at {self.place}: {operands}; it ends at {most:.6g}"
        return f"your model makes infinities or NaN at {self.place}: {operands}"


@dataclass
class Sources:
    """An observer of a reference run: the first source of each value that is not finite.

    A value that is not finite has the source of its first operand that is not finite. Constants
    count only if no other operand has a source, because masks are infinite on purpose.
    """

    _known: dict[int, tuple[ref[Array], Made]] = field(
        default_factory=dict[int, tuple["ref[Array]", Made]]
    )

    def observe(self, op: Operation, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """Record the sources of an operation's results."""
        # Loops, branches and calls do not change values.
        if not is_evaluable(op) or isinstance(op, ConstantOp):
            return
        lost = [each for each in operands if not all_finite(each)]
        for i, values in enumerate(results):
            if all_finite(values) or self.of(values) is not None:
                continue
            found = [made for each in lost if (made := self.of(each)) is not None]
            if not lost:
                found = [_made(op, operands, values, i)]
            elif not found:
                found = [Made(op.name, place(op), *_lost(lost[0]), lost[0].dtype)]
            made = next((each for each in found if each.largest is not None), found[0])
            self._known[id(values)] = ref(values), made

    def of(self, values: Array) -> Made | None:
        """The source of a value that is not finite; None if it is finite, or was not finite in the
        inputs.
        """
        held, made = self._known.get(id(values), (None, None))
        return made if held is not None and held() is values else None


def _made(op: Operation, operands: Sequence[Array], values: Array, result: int) -> Made:
    sizes = [float(np.abs(each.astype(np.float64)).max(initial=0)) for each in operands]
    overflows = _overflows(op, operands, values.astype(np.float64), result)
    largest = max(sizes, default=0.0)
    return Made(op.name, place(op), *_lost(values), values.dtype, largest, overflows)


def _lost(values: Array) -> tuple[int, int]:
    """The number of elements that are not finite, and of all elements."""
    return int(np.count_nonzero(~np.isfinite(values.astype(np.float64)))), values.size


def _overflows(op: Operation, operands: Sequence[Array], wide: Array, result: int) -> bool:
    """Whether some element is finite before, but not after its rounding."""
    try:
        exact = unrounded_value(op, operands, result)
    except Meaningless:
        # The parts of a composite round, too.
        return False
    return bool((np.isfinite(exact) & ~np.isfinite(wide)).any())


@dataclass(frozen=True)
class Traced:
    """The outputs of the rounding reference, and the sources of outputs that are not finite."""

    outputs: Mapping[str, Array]
    made: Mapping[str, Made]


def traced_reference(
    module: ModuleOp, inputs: Mapping[str, Array], on_operation: Callable[[], None]
) -> Traced:
    """Run a program of nn, and find the sources of outputs that are not finite.

    Args:
        on_operation: called after each operation.
    """
    sources = Sources()

    def observe(op: Operation, operands: Sequence[Array], results: Sequence[Array]) -> None:
        on_operation()
        sources.observe(op, operands, results)

    with np.errstate(all="ignore"):
        outputs = run_reference(module, inputs, observe=observe).outputs
    made = {name: sources.of(array) for name, array in outputs.items()}
    return Traced(outputs, {name: each for name, each in made.items() if each is not None})
