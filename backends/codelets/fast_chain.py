"""Elementwise chains and short reductions as one compiled call: steps on blocks in the cache.

A chain is bound from the same pieces, in the same order, as the NumPy calls that define it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from ...dialects.structured import Body, Stage
from .calls import Call, coalesced
from .fast import LANES, Array, Compiled, Table, address, kernels

FLOATS = (np.dtype(np.float32), np.dtype(np.float16))
"""The dtypes that memory may have; registers are float32."""

TAKE, ADD, SUB, MUL, DIV, MAX, MIN, STORE = range(8)
MEMORY, REGISTER, CONSTANT, SERIES, FACTOR = range(5)
STEP_HEAD = 7

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

CALL, SINGLE = 4, 1
"""What a step, and an element that does not lie beside the last one, take: vectors' worth."""

NEAR_BYTES = 1 << 13
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

    def add_product(self, register: int, operands: Sequence[Array]) -> None:
        """A step that adds a product of memory."""
        for kind, array in zip((SERIES, FACTOR), operands, strict=True):
            self.rows.append((ADD, register, kind, 1, len(self.arrays)))
            self.arrays.append(array)

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
        order = _block_order(arrays)
        arrays = [a.transpose(order) for a in arrays]
        result = arrays[-1]
        rows = [*self.rows, (STORE, 0, MEMORY, 0, len(arrays) - 1)]
        sizes = (1,) * (2 - result.ndim) + result.shape
        missing = len(sizes) - result.ndim
        table = np.zeros((len(rows), STEP_HEAD + len(sizes)), np.int64)
        for row, (what, register, kind, first, which) in zip(table, rows, strict=True):
            row[:5] = what, register, kind, first, which
            if kind in (MEMORY, SERIES, FACTOR):
                array = arrays[which]
                row[4:6] = address(array), array.itemsize
                row[STEP_HEAD + missing :] = array.strides
        table, places = _with_series(table)
        lanes = _look_up(table, sizes, int(kernels().BLOCK))
        constants = np.array(self.constants or [0.0], np.float32)
        lengths = np.array(sizes, np.int64)
        compiled = kernels()
        base = address(compiled.REGISTERS)
        return Compiled(
            compiled.chain, (lengths, table, constants, base), [*arrays, places, *lanes]
        ), ()


def _with_series(table: Table) -> tuple[Table, Table]:
    """Steps, of which those that merge memory of one kind are one, and what these look up."""
    rows: list[list[int]] = table.tolist()
    merges = set(MERGES.values())
    kept: list[list[int]] = []
    found: list[int] = []
    i = 0
    while i < len(rows):
        what, _, kind, first = rows[i][:4]
        length = 2 if kind == SERIES else 1
        end = i + length
        if length == 2 or (kind == MEMORY and not first and what in merges):
            while [_kind(row) for row in rows[end : end + length]] == [
                _kind(row) for row in rows[i : i + length]
            ]:
                end += length
        count = (end - i) // length
        for j in range(i, i + length):
            row = list(rows[j])
            if count > 1 or length == 2:
                row[2] = SERIES if j == i else FACTOR
                row[3], row[6] = count, len(found)
                found += [rows[k][4] - rows[j][4] for k in range(j, end, length)]
            kept.append(row)
        i = end
    steps, places = np.array(kept, np.int64), np.array(found or [0], np.int64)
    is_series = (steps[:, 2] == SERIES) | (steps[:, 2] == FACTOR)
    steps[is_series, 6] = address(places) + steps[is_series, 6] * places.itemsize
    return steps, places


def _look_up(table: Table, sizes: Sequence[int], block: int) -> list[Table]:
    """Give steps with memory whose rows are short, and do not lie together, their offsets.

    Returns what steps now have addresses of.
    """
    rows, columns = sizes[-2:]
    if columns >= LANES or rows == 1:
        return []
    found: dict[tuple[int, int], Table] = {}
    row, column = (np.arange(n, dtype=np.int64) for n in (min(rows, block // columns), columns))
    for step in table:
        by_row, by_column = (int(step[i]) for i in (-2, -1))
        is_flat = by_row == columns * by_column and by_column in (0, int(step[5]))
        if step[2] != MEMORY or is_flat:
            continue
        if (by_row, by_column) not in found:
            offsets = (row[:, None] * by_row + column * by_column).reshape(-1)
            found[by_row, by_column] = np.append(offsets, np.zeros(LANES, np.int64))
        step[6] = address(found[by_row, by_column])
    return list(found.values())


def _kind(row: list[int]) -> list[int]:
    """All of a step but its address."""
    return row[:4] + row[5:]


def _block_order(arrays: Sequence[Array]) -> list[int]:
    """Dimensions, of which the last two make the blocks that take least, by a rough estimate."""
    result = arrays[-1]
    rank = result.ndim
    if rank < 2:
        return list(range(rank))
    kinds = Counter((a.itemsize, *a.strides) for a in arrays)
    strides, counts = np.array(list(kinds), np.int64), np.array(list(kinds.values()), np.int64)
    size, strides = strides[:, 0], strides[:, 1:]
    # What lies far apart is walked through least often: the elements of a tile come last.
    near = [d for d in range(rank) if abs(result.strides[d]) < NEAR_BYTES]
    near = near if len(near) > 1 else [rank - 2, rank - 1]
    best: tuple[float, list[int]] = (float("inf"), [])
    for r, c in permutations(near, 2):
        rows, columns = result.shape[r], result.shape[c]
        by_row, by_column = strides[:, r], strides[:, c]
        calls = np.where(by_row == columns * by_column, 1, rows)
        vectors = calls * (1 + (rows * columns - 1) // (LANES * calls))
        apart = (by_column != size) & (by_column != 0)
        vectors[apart] = SINGLE * rows * columns
        cost = int(((CALL + calls + vectors) * counts).sum()) / (rows * columns)
        order = [*(d for d in range(rank) if d not in (r, c)), r, c]
        best = min(best, (cost, order))
    return best[1]


def is_known(arrays: Sequence[Array]) -> bool:
    """Whether kernels can read all of them, and compute in float32."""
    return all(a.dtype in FLOATS for a in arrays)


def _are_alike(operands: Sequence[Array]) -> bool:
    """Whether both operands of a product are memory of one dtype."""
    return operands[0].dtype == operands[1].dtype


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
        if i and body.function == "mul" and body.combiner == "sum" and _are_alike(operands):
            steps.add_product(0, operands)
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
