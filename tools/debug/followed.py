"""A reference that follows a run: it computes with the run's own values where these are right.

A number may be near a step of a function, for example of quantisation. Two correct programs may
then come out on different sides of the step. Each such value is within its bound, but the outputs
may then differ by any amount, and no fixed tolerance tells that from a fault. So the reference
computes each operation from the values of the program itself, as far as it has stored them. It
accepts such a value only if it is within the error bound of the operations since the last accepted
values. A program is right if its outputs are within the resulting bounds. A wrong scale or zero
point is outside of its bound, and so are all values computed from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Operation

from ...backends.codelets.conversion import converted
from ...backends.host.binders import best_binder
from ...backends.machine import Machine, Observer
from ...backends.reference import (
    evaluate_structure,
    operation_value,
    run_reference,
    tensor_kind,
)
from ...backends.reference.operand_errors import (
    Errors,
    bounded_structure,
    is_exact,
    moved_error,
)
from ...dialects import nn
from ...dialects.control import IfOp, WhileOp
from ...dialects.levels import NN
from ...dialects.steps import Copy, Vertices
from ...dialects.structured import Movement, Structured
from ...ir.support.number_kinds import is_floating, is_whole
from ...ir.upstream import Context, ModuleOp
from ...passes.decompose import Decompose
from ..driver.arrays import Array
from ..driver.executable import MACHINE, Executable
from ..driver.program import signature
from .bisect.made_from import made_from
from .run_level import ComputedValue

STEPS = (nn.RoundOp, nn.FloorOp, nn.CeilOp)
"""Operations whose results are whole numbers, in floats. Other rounding operations have integer
results.
"""

MOST_BYTES = 1 << 31
"""The most bytes of a run's values that are kept. Later values are not followed."""

MOST_OPEN = 0.25
"""The largest share of a followed value's elements with bounds larger than the outputs' tolerance.
Above it, the bounds say nothing about the value.
"""

MOST_OF_STEP = 0.125
"""The largest known error of a number that is rounded to an integer. With a larger error, nothing
is known about the integer. With a smaller error, the integer is one of two at most.
"""

Key = tuple[str, int]
"""The node that an operation came from, and the index of the result."""


@dataclass(frozen=True)
class Followed:
    """The findings of a reference that has followed a run.

    Attributes:
        is_right: whether all outputs are within their bounds.
        values: the number of operations whose values in the run were accepted.
    """

    is_right: bool
    values: int = 0

    def __str__(self) -> str:
        return (
            "right by a reference that follows the run over steps of rounding: "
            f"{self.values:,} of its values, each within the bounds of the operations before it"
        )


class _Undecided(Exception):
    """A branch, a loop or an index depends on a value that may differ between correct runs."""


def has_steps(module: ModuleOp) -> bool:
    """Whether a program of nn rounds floats to whole numbers."""
    return any(isinstance(op, STEPS) or _makes_integers(op) for op in module.walk())


def _rounds(op: Operation) -> bool:
    """Whether an operation rounds each element of its operand to a whole number."""
    return isinstance(op, STEPS) or (isinstance(op, nn.CastOp) and _makes_integers(op))


def _makes_integers(op: Operation) -> bool:
    if not isinstance(op, Structured):
        return False
    before, after = (
        [tensor_kind(each.type)[1] for each in values] for values in (op.operands, op.results)
    )
    return any(map(is_floating, before)) and any(map(is_whole, after))


@dataclass
class KeptValues:
    """The values of a run in order, by their last node."""

    values: dict[Key, list[Array]] = field(default_factory=dict[Key, "list[Array]"])
    _left: int = MOST_BYTES
    _seen: Counter[Operation] = field(default_factory=Counter[Operation])

    def watch(self, value: ComputedValue) -> None:
        """Keep a value of a run at any level. Results of one operation arrive in order."""
        op = value.op
        count = len(op.destinations if isinstance(op, Copy | Vertices) else op.results)
        number = self._seen[op] % max(count, 1)
        self._seen[op] += 1
        if not isinstance(op, Copy):
            self.keep(op, number, value.values)

    def keep(self, op: Operation, result: int, values: Array) -> None:
        """Keep a result of an operation, unless too much has been kept."""
        names = made_from(op)
        if names and values.nbytes <= self._left:
            self._left -= values.nbytes
            self.values.setdefault((names[-1], result), []).append(values)


class _OnMachine(Observer):
    """Keeps the values that a machine computes."""

    def __init__(self) -> None:
        self.kept = KeptValues()

    def on_compute(self, op: Vertices, machine: Machine) -> None:
        """Keep the results of a vertex set."""
        for result, variable in enumerate(op.destinations):
            self.kept.keep(op, result, machine.read(variable))


def follow(
    exe: Executable, inputs: Mapping[str, Array], outputs: Mapping[str, Array], allowed: float
) -> Followed:
    """Whether outputs of the machine are within the bounds of a reference that follows its run.

    Args:
        allowed: the largest error of an output where no step explains it, relative to its largest
            value.
    """
    look = _OnMachine()
    module, binder = exe.module_at(MACHINE), best_binder(is_watched=True)
    Machine(module, exe.target, observers=[look], binder=binder).run(inputs)
    return follow_values(exe.module_at(NN.name), inputs, outputs, look.kept, allowed)


def follow_values(
    module: ModuleOp,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    kept: KeptValues,
    allowed: float,
) -> Followed:
    """Whether outputs of a run are within the bounds of a reference that follows it.

    Args:
        module: of nn; it defines the right results.
        kept: the values of the run. The run may be of a module made from this module.
        allowed: as for follow.
    """
    module = module.clone()
    Decompose().apply(Context(), module)
    follower = _Follower(kept.values, allowed)
    try:
        with np.errstate(all="ignore"):
            results = run_reference(module, inputs, evaluate=follower.evaluate).outputs
    except _Undecided:
        return Followed(False)
    errors = {name: follower.error(array) for name, array in results.items()}
    shape = signature(module)
    trimmed, bounds = shape.trimmed(results), shape.trimmed({**results, **errors})
    is_right = all(
        outputs[name].shape == array.shape
        and _within(outputs[name], array, bounds[name])
        and follower.says_much(array, bounds[name])
        for name, array in trimmed.items()
    )
    return Followed(is_right, follower.followed)


@dataclass
class _Follower:
    """Evaluates operations on the values of a run, and knows the error bound of each value.

    Attributes:
        kept: the values of the run.
        allowed: as for follow.
        followed: the number of accepted values.
    """

    kept: Mapping[Key, list[Array]]
    allowed: float
    followed: int = 0
    _errors: dict[int, tuple[Array, Errors]] = field(
        default_factory=dict[int, "tuple[Array, Errors]"]
    )
    _seen: dict[Key, int] = field(default_factory=dict[Key, int])

    def error(self, array: Array) -> Errors:
        """The largest difference between a value and the same value in another correct run."""
        found = self._errors.get(id(array))
        return np.zeros(array.shape) if found is None else found[1]

    def evaluate(self, op: Operation, operands: Sequence[Array], result: int = 0) -> Array:
        """A result of an operation: the run's own result if that is right."""
        if isinstance(op, nn.ConstantOp):
            return operation_value(op, operands)
        errors = [self.error(each) for each in operands]
        made, error = _bounded(op, operands, errors, result)
        # Numbers that were rounded before are off by whole numbers.
        if _rounds(op) and not np.array_equal(operands[0], np.rint(operands[0])):
            error = np.where(errors[0] > MOST_OF_STEP, np.inf, error)
        names = made_from(op)
        found = self._next((names[-1], result), made) if names else None
        if found is not None and self.says_much(made, error) and _within(found, made, error):
            self.followed += 1
            made, error = found, np.zeros(made.shape)
        decides = any(isinstance(use.operation, IfOp | WhileOp) for use in op.results[result].uses)
        if error.any():
            if decides:
                raise _Undecided
            # The array is kept, so that no other array gets its id.
            self._errors[id(made)] = made, error
        return made

    def says_much(self, values: Array, error: Errors) -> bool:
        """Whether a bound distinguishes right values from most wrong values."""
        if not error.any():
            return True
        size = np.abs(values.astype(np.float64))
        largest = size[np.isfinite(size)].max(initial=0.0)
        limit = self.allowed * largest if is_floating(values.dtype) else 1.0
        return bool(np.count_nonzero(~(error <= limit)) <= MOST_OPEN * error.size)

    def _next(self, key: Key, made: Array) -> Array | None:
        """The run's value for a key in this iteration, in the shape of `made`; None if there is
        none.

        A value that the run computes once, before a loop, is the same in all iterations.
        """
        values = self.kept.get(key, [])
        at = self._seen.get(key, 0)
        self._seen[key] = at + 1
        if not values:
            return None
        found = values[min(at, len(values) - 1)]
        fits = found.size == made.size and found.dtype == made.dtype
        return found.reshape(made.shape) if fits else None


def _bounded(
    op: Operation, operands: Sequence[Array], errors: Sequence[Errors], result: int
) -> tuple[Array, Errors]:
    """A result of an operation, and the largest difference of another correct run from it.

    Args:
        errors: the bounds on the differences between the operands of the two runs.
    """
    if isinstance(op, Movement):
        made = operation_value(op, operands)
        return made, moved_error(op.moves(), errors, made.shape)
    if not isinstance(op, Structured):
        made = operation_value(op, operands, result)
        return made, errors[0].reshape(made.shape)
    structure = op.structure()
    if any(errors[each.operand].any() for each in structure.space.relations):
        raise _Undecided
    shape, dtype = tensor_kind(op.results[result].type)
    value, own = evaluate_structure(structure, operands, dtype, shape, result=result)
    made = converted(value, dtype)
    if is_exact(structure, operands, value, own, made):
        # Errors of whole numbers are whole numbers, and so are the numbers of another run.
        own = np.zeros(own.shape)
    found = bounded_structure(structure, operands, errors, made, (value, own), number=result).error
    # Both runs may be off by their own rounding.
    error = found + own
    return made, np.where(np.isnan(error), np.inf, error).reshape(made.shape)


def _within(found: Array, right: Array, error: Errors) -> bool:
    """Whether each element is within its error; infinities and NaN have to be equal."""
    if not is_floating(right.dtype):
        apart = np.abs(found.astype(np.float64) - right.astype(np.float64))
        return bool(((found == right) | (apart <= error)).all())
    got, wanted = found.astype(np.float64), right.astype(np.float64)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    return bool((same | (np.abs(got - wanted) <= error) | np.isinf(error)).all())
