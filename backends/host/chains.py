"""Elementwise chains and short reductions as one compiled call: steps on blocks in the cache.

A chain is bound from the same pieces, in the same order, as the NumPy calls that define it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np

from ...dialects.structured import Body, Stage
from ..codelets.calls import Call, coalesced
from ..codelets.scalar import SCALAR_FUNCTIONS, Opcode
from .fast import LANES, Array, Compiled, Table, address, kernels

FLOATS = (np.dtype(np.float32), np.dtype(np.float16))
"""The dtypes that memory may have; registers are float32."""

TAKE = 0
REVERSED = 8
KEEP, STORE = 15, 16
NOTHING, WORDS_TOGETHER, HALVES_TOGETHER, WORD, HALF, EVERY_SECOND, WORDS_APART, HALVES_APART = (
    range(8)
)
CONSTANT, ITSELF, KEPT = range(8, 11)
WHAT, COUNT, PLACES, HOW, BY, COLUMN, FACTOR_PLACES, FACTOR, FACTOR_BY, FACTOR_COLUMN = range(10)
STEP = 10
"""What is written in tables, as kernels read it."""

MERGES: Mapping[str, int] = {
    "sum": Opcode.ADD,
    "prod": Opcode.MUL,
    "max": Opcode.MAX,
    "min": Opcode.MIN,
}

NEAR_BYTES = 1 << 13
"""Elements that are closer may lie in one row."""


@dataclass(frozen=True)
class _Step:
    """One step. what: as in tables. arrays: memory that is read, and perhaps its factor.

    how, bits: what is read that is no memory, and a constant's bits.
    """

    what: int
    arrays: tuple[Array, ...] = ()
    how: int = NOTHING
    bits: int = 0


@dataclass
class Steps:
    """A chain while it is made."""

    made: list[_Step] = field(default_factory=list[_Step])

    def add(self, what: int, *memory: Array, first: bool = False) -> None:
        """A step with memory, or with products of two; first: it stands before the total."""
        self.made.append(_Step(what + REVERSED * first, memory))

    def add_other(self, what: int, how: int, first: bool = False) -> None:
        """A step with the total itself, or with what was kept."""
        self.made.append(_Step(what + REVERSED * first, how=how))

    def add_constant(self, what: int, value: float, first: bool) -> None:
        """A step with a constant."""
        bits = int(np.float32(value).view(np.int32))
        self.made.append(_Step(what + REVERSED * first, how=CONSTANT, bits=bits))

    def keep(self) -> None:
        """Put the total aside."""
        self.made.append(_Step(KEEP))

    def apply(
        self, function: str, parameters: Sequence[float], inputs: Sequence[Array | None]
    ) -> bool:
        """The steps of a scalar function; False for one that kernels lack.

        An input that is None is the total so far.
        """
        known = SCALAR_FUNCTIONS.get(function)
        if known is None or known.compiled is None:
            return False
        if len(inputs) == 2:
            (step,) = known.compiled
            a, b = inputs
            if b is None:
                if a is None:
                    return False
                self.add(step.opcode, a, first=True)
                return True
            if a is not None:
                self.add(TAKE, a)
            self.add(step.opcode, b)
            return True
        if inputs[0] is not None:
            self.add(TAKE, inputs[0])
        rest = iter(parameters)
        for step in known.compiled:
            if step.by == "itself":
                self.add_other(step.opcode, ITSELF)
            else:
                value = next(rest) if isinstance(step.by, str) else step.by
                self.add_constant(step.opcode, value, step.first)
        return True

    def stages(self, stages: Sequence[Stage], extras: Sequence[Array]) -> bool:
        """The steps of a chain on the total; False if one of them is unknown."""
        rest = list(extras)
        for stage in stages:
            inputs: list[Array | None] = [*rest[: stage.extras]]
            rest = rest[stage.extras :]
            inputs.insert(stage.at, None)
            if not self.apply(stage.function, stage.parameters, inputs):
                return False
        return True

    @property
    def arrays(self) -> list[Array]:
        """All memory that is read."""
        return [a for step in self.made for a in step.arrays]

    def call(self, result: Array) -> Call:
        """The call that does the steps for every element of a result, and stores the total."""
        steps = [*self.made, _Step(STORE, (result,))]
        arrays = coalesced(*(a for step in steps for a in step.arrays))
        order = _row_order(arrays)
        arrays = [a.transpose(order) for a in arrays]
        given = iter(arrays)
        steps = [replace(step, arrays=tuple(next(given) for _ in step.arrays)) for step in steps]
        result = steps[-1].arrays[0]
        missing = (0,) * (2 - result.ndim)
        sizes = (1,) * len(missing) + result.shape
        table, columns, places = _tables(steps)
        strides = np.array([missing + a.strides for a in columns], np.int64).T.copy()
        compiled = kernels()
        abreast = np.arange(int(compiled.ABREAST), dtype=np.int64)
        by_row, by_column = strides[-2:, :, None]
        ramps = np.concatenate([by_row * abreast, by_column * LANES * abreast], axis=1)
        arguments = (
            np.array(sizes, np.int64),
            SPAN if any(_how(a) in LIES_APART.values() for a in arrays) else sizes[-1],
            table,
            strides,
            np.array([address(a) for a in columns], np.int64),
            ramps,
            np.empty_like(ramps),
            address(compiled.KEPT_VECTORS),
        )
        return Compiled(compiled.chain, arguments, [*arrays, places]), ()


SIDES = (
    (PLACES, HOW, BY, COLUMN),
    (FACTOR_PLACES, FACTOR, FACTOR_BY, FACTOR_COLUMN),
)
"""Where it is said what memory a step reads, and what its factor."""


def _tables(steps: Sequence[_Step]) -> tuple[Table, list[Array], Table]:
    """Steps as kernels read them, the memory of each column, and the places that they look up.

    Steps that do the same with memory of one kind, one after another, are one of several places.
    Memory that is walked through alike has one column.
    """
    alike = [list(group) for _, group in groupby(steps, _key)]
    table = np.zeros((len(alike), STEP), np.int64)
    columns: dict[tuple[int, ...], Array] = {}
    places: list[int] = []
    for row, group in zip(table, alike, strict=True):
        step = group[0]
        count = 0 if step.what in (KEEP, STORE) else len(group)
        row[[WHAT, COUNT, HOW, COLUMN]] = step.what, count, step.how, step.bits
        for side, memory in zip(SIDES, zip(*(s.arrays for s in group), strict=True), strict=False):
            column = columns.setdefault(memory[0].strides, memory[0])
            which = list(columns).index(column.strides)
            row[list(side)] = len(places), _how(memory[0]), _by_column(memory[0]), which
            places += [address(a) - address(column) for a in memory]
    # What reads no memory has no places, but may look as many up.
    looked_up = np.zeros(max(len(places), int(table[:, COUNT].max())), np.int64)
    looked_up[: len(places)] = places
    for which in (PLACES, FACTOR_PLACES):
        table[:, which] = address(looked_up) + table[:, which] * looked_up.itemsize
    return table, list(columns.values()), looked_up


def _key(step: _Step) -> tuple[object, ...]:
    """What steps have in common that differ in their places only."""
    return step.what, step.how, step.bits, [(a.itemsize, a.strides) for a in step.arrays]


def _how(array: Array) -> int:
    """How elements of a row lie."""
    return HOW_IT_LIES[array.itemsize].get(_by_column(array), LIES_APART[array.itemsize])


def _by_column(array: Array) -> int:
    return array.strides[-1] if array.ndim else 0


HOW_IT_LIES: Mapping[int, Mapping[int, int]] = {
    4: {4: WORDS_TOGETHER, 0: WORD, 8: EVERY_SECOND},
    2: {2: HALVES_TOGETHER, 0: HALF},
}
"""By bytes of an element, and from one to the next."""

LIES_APART = {4: WORDS_APART, 2: HALVES_APART}

PRICES = {
    **dict.fromkeys((WORDS_TOGETHER, HALVES_TOGETHER, WORD, HALF), (1.0, 0.0)),
    EVERY_SECOND: (1.5, 0.0),
    **dict.fromkeys((WORDS_APART, HALVES_APART), (0.5, 0.25)),
}
"""Nanoseconds to read a vector, and for each of its elements, by a rough estimate."""

PRICE_OF_ROW = 2.0

SPAN = 64
"""Elements of a row that are done before other rows are, where they lie apart: rows share lines."""


def _row_order(arrays: Sequence[Array]) -> list[int]:
    """Dimensions, of which the last one makes the rows that take least."""
    result = arrays[-1]
    if result.ndim < 2:
        return list(range(result.ndim))
    kinds = Counter((a.itemsize, a.strides) for a in arrays)
    # What lies far apart is walked through least often: the elements of a tile come last.
    near = [d for d in range(result.ndim) if abs(result.strides[d]) < NEAR_BYTES]

    def price(d: int) -> float:
        """Of an element, if its dimension makes the rows."""
        n = result.shape[d]
        total = PRICE_OF_ROW
        for (size, strides), count in kinds.items():
            vector, each = PRICES[HOW_IT_LIES[size].get(strides[d], LIES_APART[size])]
            total += count * (vector * -(-n // LANES) + each * n)
        return total / n

    best = min(near or [result.ndim - 1], key=price)
    return [*(d for d in range(result.ndim) if d != best), best]


def merge_call(
    what: int, starts: Table, on: Table, into: Table, n: int, memory: Sequence[Array]
) -> Call:
    """The call that merges rows of n floats that lie apart, in turn, into others.

    what: the combiner. starts: addresses of the first of each row's; on: bytes on to each of them.
    into: addresses of results. memory: whose memory that is.
    """
    compiled = kernels()
    places = address(on)
    table = np.zeros((3, STEP), np.int64)
    table[:, [PLACES, HOW, BY]] = places, WORDS_TOGETHER, FLOATS[0].itemsize
    table[:, [WHAT, COUNT, COLUMN]] = [(TAKE, 1, 0), (what, len(on) - 1, 0), (STORE, 0, 1)]
    table[1, PLACES] += on.itemsize
    abreast = int(compiled.ABREAST)
    groups = -(-len(starts) // abreast)
    rows = np.stack([np.pad(a, (0, groups * abreast - len(a)), "edge") for a in (starts, into)])
    addresses = np.zeros((groups, len(rows), 2 * abreast), np.int64)
    addresses[:, :, :abreast] = rows.reshape(len(rows), groups, abreast).transpose(1, 0, 2)
    arguments = (n, table, addresses, address(compiled.KEPT_VECTORS))
    return Compiled(compiled.merge, arguments, [on, *memory]), ()


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
    merge = TAKE
    if body.combiner is not None:
        if body.combiner not in MERGES:
            return None
        merge = MERGES[body.combiner]
    steps = Steps()
    for i, operands in enumerate(points):
        if body.function in ("identity", "mul"):
            steps.add(merge if i else TAKE, *operands)
            continue
        if i:
            steps.keep()
        if not steps.apply(body.function, body.parameters, operands):
            return None
        if i:
            steps.add_other(merge, KEPT, first=True)
    if not steps.stages(then, extras) or not is_known([*steps.arrays, result]):
        return None
    return steps.call(result)


def stages_call(
    stages: Sequence[Stage], extras: Sequence[Array], value: Array, result: Array
) -> Call | None:
    """The call that applies a chain to values and puts them into a result; None if unknown."""
    steps = Steps()
    steps.add(TAKE, value)
    if not steps.stages(stages, extras) or not is_known([*steps.arrays, result]):
        return None
    return steps.call(result)
