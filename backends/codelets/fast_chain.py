"""Elementwise chains and short reductions as one compiled call: steps on blocks in the cache.

A chain is bound from the same pieces, in the same order, as the NumPy calls that define it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...dialects.structured import Body, Stage
from .calls import Call, coalesced
from .fast import Array, Compiled, Table, address, kernels

FLOATS = (np.dtype(np.float32), np.dtype(np.float16))
"""The dtypes that memory may have; registers are float32."""

TAKE, ADD, SUB, MUL, DIV, MAX, MIN, STORE = range(8)
MEMORY, REGISTER, CONSTANT, SERIES = range(4)
HEAD = 7

BINARY: Mapping[str, int] = {
    "add": ADD,
    "sub": SUB,
    "mul": MUL,
    "div": DIV,
    "max": MAX,
    "min": MIN,
}
MERGES: Mapping[str, int] = {"sum": ADD, "prod": MUL, "max": MAX, "min": MIN}

UNARY: Mapping[str, tuple[tuple[int, float, bool], ...]] = {
    "identity": (),
    "relu": ((MAX, 0.0, False),),
    "neg": ((SUB, -0.0, True),),
    "reciprocal": ((DIV, 1.0, True),),
}
"""Steps with a constant: what, the constant, and whether it stands first."""

WITH_PARAMETERS: Mapping[str, tuple[int, ...]] = {
    "scale": (MUL,),
    "shift": (ADD,),
    "clip": (MAX, MIN),
}
"""Steps with a parameter each."""

LANES = 16
NEAR_BYTES = 1 << 16
"""Elements that are closer lie in one block."""

Source = Array | int
"""Memory, or a register."""


@dataclass
class Steps:
    """A chain while it is made. arrays: those that steps name, in the order of the steps."""

    rows: list[tuple[int, int, int, int, int]] = field(
        default_factory=list[tuple[int, int, int, int, int]]
    )
    arrays: list[Array] = field(default_factory=list[Array])
    constants: list[float] = field(default_factory=list[float])

    def add(self, what: int, register: int, source: Source, first: bool = False) -> None:
        """A step with memory or with a register."""
        if isinstance(source, int):
            self.rows.append((what, register, REGISTER, int(first), source))
            return
        self.rows.append((what, register, MEMORY, int(first), len(self.arrays)))
        self.arrays.append(source)

    def add_constant(self, what: int, register: int, value: float, first: bool) -> None:
        """A step with a constant."""
        self.rows.append((what, register, CONSTANT, int(first), len(self.constants)))
        self.constants.append(value)

    def apply(
        self, function: str, parameters: Sequence[float], inputs: Sequence[Source], register: int
    ) -> bool:
        """The steps of a scalar function into a register; False for one that kernels lack.

        An input that is a register is that one.
        """
        if function in BINARY:
            a, b = inputs
            if isinstance(b, int):
                self.add(BINARY[function], register, a, first=True)
                return not isinstance(a, int)
            if not isinstance(a, int):
                self.add(TAKE, register, a)
            self.add(BINARY[function], register, b)
            return True
        known = function in UNARY or function in WITH_PARAMETERS or function == "square"
        if not known or len(inputs) != 1:
            return False
        if not isinstance(inputs[0], int):
            self.add(TAKE, register, inputs[0])
        if function == "square":
            self.add(MUL, register, register)
        for what, value, first in UNARY.get(function, ()):
            self.add_constant(what, register, value, first)
        for what, value in zip(WITH_PARAMETERS.get(function, ()), parameters, strict=False):
            self.add_constant(what, register, value, False)
        return True

    def stages(self, stages: Sequence[Stage], extras: Sequence[Array]) -> bool:
        """The steps of a chain on register 0; False if one of them is unknown."""
        rest = list(extras)
        for stage in stages:
            inputs: list[Source] = [*rest[: stage.extras]]
            rest = rest[stage.extras :]
            inputs.insert(stage.at, 0)
            if not self.apply(stage.function, stage.parameters, inputs, 0):
                return False
        return True

    def call(self, result: Array) -> Call:
        """The call that does the steps for every element of a result, and stores register 0."""
        arrays = coalesced(*self.arrays, result)
        order = _block_order(arrays[-1])
        arrays = [a.transpose(order) for a in arrays]
        result = arrays[-1]
        rows = [*self.rows, (STORE, 0, MEMORY, 0, len(arrays) - 1)]
        sizes = (1,) * (2 - result.ndim) + result.shape
        missing = len(sizes) - result.ndim
        table = np.zeros((len(rows), HEAD + len(sizes)), np.int64)
        for row, (what, register, kind, first, which) in zip(table, rows, strict=True):
            row[:5] = what, register, kind, first, which
            if kind == MEMORY:
                array = arrays[which]
                row[4:6] = address(array), array.itemsize
                row[HEAD + missing :] = array.strides
        table, places = _with_series(table)
        constants = np.array(self.constants or [0.0], np.float32)
        lengths = np.array(sizes, np.int64)
        compiled = kernels()
        base = address(compiled.REGISTERS)
        return Compiled(compiled.chain, (lengths, table, constants, base), [*arrays, places]), ()


def _with_series(table: Table) -> tuple[Table, Table]:
    """Steps, of which those that merge memory of one kind are one, and what these look up."""
    what, kind, first, place, size = table[:, [0, 2, 3, 4, 5]].T
    merges = np.isin(what, list(MERGES.values())) & (kind == MEMORY) & (first == 0)
    merges &= table[:, -1] == size
    same = np.delete(table, 4, axis=1)
    goes_on = np.r_[False, merges[1:] & merges[:-1] & (same[1:] == same[:-1]).all(axis=1)]
    begins = np.flatnonzero(~goes_on)
    counts = np.diff(np.r_[begins, len(table)])
    places = place - np.repeat(place[begins], counts)
    kept = table[begins]
    long = counts > 1
    kept[long, 2], kept[long, 3] = SERIES, counts[long]
    kept[long, 6] = address(places) + begins[long] * places.itemsize
    return kept, places


def _block_order(result: Array) -> list[int]:
    """Dimensions with two long ones innermost, where the last one is too short for a vector."""
    order = list(range(result.ndim))
    near = [d for d in order if abs(result.strides[d]) < NEAR_BYTES]
    if len(near) < 2 or result.shape[-1] >= LANES:
        return order
    longest = sorted(near, key=lambda d: result.shape[d])[-2:]
    return [d for d in order if d not in longest] + longest


def is_known(arrays: Sequence[Array]) -> bool:
    """Whether kernels can read all of them, and compute in float32."""
    return all(a.dtype in FLOATS for a in arrays)


def points_call(
    body: Body,
    points: Sequence[Sequence[Array]],
    then: Sequence[Stage],
    extras: Sequence[Array],
    result: Array,
) -> Call | None:
    """The call of a body at points that are merged, with its chain; None if kernels lack it.

    points: the operands at each point, in the order in which the points are merged, of the
    result's shape.
    """
    if len(points) == 1 and body.function == "identity" and not then:
        # Nothing is computed: the bits stay as they are, which a narrow NaN's would not.
        return None
    steps = Steps()
    straight = body.function == "identity"
    for i, operands in enumerate(points):
        if i and straight:
            assert body.combiner is not None
            steps.add(MERGES[body.combiner], 0, operands[0])
            continue
        if not steps.apply(body.function, body.parameters, operands, min(i, 1)):
            return None
        if i:
            assert body.combiner is not None
            steps.add(MERGES[body.combiner], 0, 1)
    if (body.combiner is not None and body.combiner not in MERGES) or not steps.stages(
        then, extras
    ):
        return None
    if not is_known([*steps.arrays, result]):
        return None
    return steps.call(result)


def stages_call(
    stages: Sequence[Stage], extras: Sequence[Array], value: Array, result: Array
) -> Call | None:
    """The call that applies a chain to values and puts them into a result; None if unknown."""
    steps = Steps()
    steps.add(TAKE, 0, value)
    if not steps.stages(stages, extras) or not is_known([*steps.arrays, result]):
        return None
    return steps.call(result)
