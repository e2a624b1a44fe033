"""Checks gradients: against those of the program before the passes, and against differences.

check_pass("canonicalize", relation=same_gradients)

A pass that adds results `grad.NAME` declares them to be gradients. The check compares them with
finite differences in exact arithmetic, because results alone do not show what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ....backends.codelets.conversion import float_limits
from ....backends.faults import IndexFault
from ....backends.reference import TooManyIterations, unrounded_outputs
from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ....dialects.levels import NN
from ....ir.support.errors import InputError
from ....ir.support.number_kinds import is_floating
from ....ir.upstream import ModuleOp
from ....passes.differentiate import PREFIX, Differentiate
from ....passes.gradients.program import entry_of, inputs_of, outputs_of, states_of
from ....passes.gradients.way import is_float
from ...driver.arrays import Array
from ..generators.program import Program
from .oracles import difference, run
from .relations import NotApplicable, expected_of


def same_gradients(
    before: Program, after: Program, compiled: Callable[[Program], Program]
) -> str | None:
    """The program after the passes has the gradients of the program before.

    Compares gradients of the first float output in all float inputs and states that both programs
    have. Applies to nn. Where a program is not smooth, at ties and at the edges of functions, two
    programs with equal results may have different gradients, so use inputs that are unlikely to be
    there.
    """
    if before.level != NN or after.level != NN:
        raise NotApplicable("gradients are taken at nn")
    names = _sources(before) & _sources(after)
    outputs = [name for name in _outputs(before) if name in _outputs(after)]
    if not names or not outputs:
        raise NotApplicable("the program has no floats to differentiate")
    task = Differentiate(loss=outputs[0], of=tuple(sorted(names)))
    first, second = _differentiated(before, task), _differentiated(after, task)
    expected = expected_of(first)
    try:
        found = run(second)
    except IndexFault as fault:
        raise NotApplicable(f"the program has a fault: {fault}") from None
    wrong = difference(expected, found)
    return None if wrong is None else f"differentiated: {wrong.text}"


def _differentiated(program: Program, task: Differentiate) -> Program:
    made = Program(program.module.clone(), program.context, program.inputs, program.target)
    try:
        task.apply(made.context, made.module)
    except InputError as error:
        raise NotApplicable(str(error)) from None
    return made


def _sources(program: Program) -> set[str]:
    """The names of the float inputs and states of a program."""
    main = entry_of(program.module)
    if main is None:
        return set()
    inputs = {name for name, value in inputs_of(main).items() if is_float(value)}
    return inputs | set(states_of(main))


def _outputs(program: Program) -> list[str]:
    main = entry_of(program.module)
    if main is None:
        return []
    return [name for name, value in outputs_of(main).items() if is_float(value)]


# Against differences

STEPS = (1e-4, 2.5e-5)
"""The two step lengths of finite differences, relative to the size of a number."""

NEAR = 16
"""The allowed distance of a right gradient from the differences, in roundings of the narrowest
float: the program that computes it may hold rounded numbers."""

ITERATIONS = 100
"""The largest number of loop iterations of a program whose gradients are checked."""

SHRINKS = 0.5
"""Where a program is smooth, the differences to both sides approach each other as fast as the
step becomes shorter, which is by a factor of four. Elsewhere they do not."""


def wrong_gradients(before: Program, after: Program, loss: str = "") -> str | None:
    """The difference between added gradients and finite differences, in words; None if they agree.

    Checks the results `grad.NAME` of a program of nn that the program before did not have, where
    NAME is an input or a state. All inputs are moved together in a random direction, from a point
    away from the program's own values, where it may not be smooth. Returns None also where the
    program is not smooth or has infinite values or NaN.

    Args:
        loss: the output whose gradients they are; "" stands for the first float output.
    """
    names = _gradients(before, after)
    outputs = _outputs(before)
    if not names or ((loss or not outputs) and loss not in outputs):
        return None
    place = _Place.of(before, names, np.random.default_rng(0))
    try:
        with np.errstate(all="ignore"):
            return _off(_Sides(before.module, place, loss or outputs[0]), after, place)
    except (IndexFault, TooManyIterations):
        return None


def _gradients(before: Program, after: Program) -> list[str]:
    """The names of the inputs and states whose gradients a pass has added as results."""
    if before.level != NN or after.level != NN:
        return []
    main = entry_of(after.module)
    old = set(_outputs(before))
    added = [] if main is None else [n for n in outputs_of(main) if n not in old]
    sources = _sources(before)
    found = [n.removeprefix(PREFIX) for n in added if n.startswith(PREFIX)]
    return [name for name in found if name in sources]


@dataclass(frozen=True)
class _Place:
    """The point at which a gradient is taken, in float64, and the direction of the step."""

    inputs: Mapping[str, Array]
    state: Mapping[str, Array]
    direction: Mapping[str, Array]

    @staticmethod
    def of(program: Program, names: Sequence[str], random: np.random.Generator) -> _Place:
        held = {name: program.state[name] for name in program.state}
        given = {"inputs": dict(program.inputs), "state": held}
        direction: dict[str, Array] = {}
        for some in given.values():
            for name, array in some.items():
                if is_floating(array.dtype):
                    some[name] = _generic(array, random)
                if name in names:
                    direction[name] = random.standard_normal(array.shape)
        return _Place(given["inputs"], given["state"], direction)

    def moved(self, by: float) -> tuple[dict[str, Array], dict[str, Array]]:
        """The inputs and states, moved along the direction by a distance."""

        def after(some: Mapping[str, Array]) -> dict[str, Array]:
            way = self.direction
            return {n: a + by * way[n] if n in way else a for n, a in some.items()}

        return after(self.inputs), after(self.state)


def _generic(array: Array, random: np.random.Generator) -> Array:
    """Finite nonzero values near those of an array, with no two equal."""
    values = array.astype(np.float64)
    near = np.where(np.isfinite(values) & (np.abs(values) < LARGE), values, 1.0)
    return near + random.uniform(0.05, 0.3, array.shape) * random.choice((-1, 1), array.shape)


LARGE = 1e4
"""The limit above which numbers are replaced, because their squares and exponentials leave no
digits for differences."""


@dataclass
class _Sides:
    """The values of an output at a place, and at a step to each side of it."""

    module: ModuleOp
    place: _Place
    loss: str

    def __post_init__(self) -> None:
        self.here = self.value(0.0)
        self.size = self.here[1]

    def value(self, by: float) -> tuple[float, float]:
        """The sum of the output's elements, and the sum of their absolute values."""
        inputs, state = self.place.moved(by)
        found = unrounded_outputs(self.module, inputs, state, ITERATIONS, wide=True)[self.loss]
        return float(found.sum()), float(np.abs(found).sum())

    def slopes(self, step: float) -> tuple[float, float]:
        """The difference quotients to the two sides."""
        ahead, behind = self.value(step)[0], self.value(-step)[0]
        return (ahead - self.here[0]) / step, (self.here[0] - behind) / step


def _off(sides: _Sides, after: Program, place: _Place) -> str | None:
    outputs = unrounded_outputs(after.module, place.inputs, place.state, ITERATIONS, wide=True)
    terms = {n: outputs[PREFIX + n] * way for n, way in place.direction.items()}
    found = sum(float(each.sum()) for each in terms.values())
    ahead, behind = (np.array(each) for each in zip(*map(sides.slopes, STEPS), strict=True))
    middle, apart = (ahead + behind) / 2, np.abs(ahead - behind)
    size = sum(float(np.abs(each).sum()) for each in terms.values()) + abs(middle[1])
    noise = 1e-13 * sides.size / STEPS[1]
    if not np.isfinite([found, *middle, *apart, size, noise]).all():
        return None
    near = NEAR * _rounding(after.module) * size
    bound = near + noise + 4 * abs(middle[0] - middle[1])
    if apart[1] > SHRINKS * apart[0] + bound or abs(found - middle[1]) <= bound:
        return None
    names = ", ".join(PREFIX + name for name in place.direction)
    return (
        f"{names}: along a random direction, {sides.loss} grows by {middle[1]:.9g} per step, and "
        f"the gradients say {found:.9g}; need that within {bound:.3g}"
    )


def _rounding(module: ModuleOp) -> float:
    """The largest relative rounding error among the float types of a module."""
    dtypes = {_dtype(value) for op in module.walk() for value in (*op.results, *op.operands)}
    return max((float_limits(each).roundoff for each in dtypes if is_floating(each)), default=0.0)


def _dtype(value: SSAValue) -> np.dtype[Any]:
    return numpy_dtype(nn.element_of(value))
