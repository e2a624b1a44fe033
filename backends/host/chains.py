"""Compiled calls of elementwise chains and short reductions: all steps on vectors in registers.

A chain has the same steps in the same order as the NumPy calls that define it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import prod
from typing import Any

import numpy as np

from ...dialects.scalar_functions import BY_WORD, STOCHASTIC, TO_NEAREST
from ...dialects.structured import FURTHER, Body, Stage
from ..codelets.calls import Array, Call, Scratch, address, coalesced, owner
from ..codelets.cells import Cells
from ..codelets.chain import places_of, stage_calls
from ..codelets.scalar import SCALAR_FUNCTIONS, Opcode, ScalarFunction
from ..codelets.stamps import Table
from .calls import KernelCall, elements, even_cuts, table_address
from .cells import replica_calls
from .kernels.tables import (
    ACROSS_CODE,
    ADD,
    ADDRESS_LINE_BYTES,
    ALONG_CODE,
    APPLY,
    BY_RULE,
    CHAIN_FIELDS,
    CHAIN_VECTORS,
    COLUMN,
    CONSTANT,
    COUNT,
    COUNTER_WORDS,
    CUTS_COLUMNS,
    DIV,
    EVERY_SECOND_FLOAT,
    FACTOR_COLUMN,
    FACTOR_KIND,
    FACTOR_PLACES,
    FACTOR_STRIDE,
    FLOAT,
    FLOATS,
    FUNCTION,
    FUNCTION_CODE,
    HALF,
    HALVES,
    KIND,
    LANES,
    MAX,
    MEMORIES,
    MERGE_CODE,
    MERGE_COLUMNS,
    MERGE_FIELDS,
    MERGE_SPAN,
    MERGE_STEP_COUNT,
    MERGE_STEPS,
    MERGE_TABLE_BYTES,
    MERGE_TABLES,
    MIN,
    MUL,
    NO_OPERAND,
    OP,
    PLACES,
    RAMPS,
    RANK,
    REVERSED,
    ROUND,
    ROUNDED_TO,
    SAVE,
    SAVED,
    SAVED_PLACES,
    SIZES,
    SPAN,
    STARTS,
    STEP_COUNT,
    STEP_FIELDS,
    STEPS,
    STEPS_CODE,
    STORE,
    STRIDE,
    STRIDED_FLOATS,
    STRIDED_HALVES,
    STRIDES,
    SUB,
    TAKE,
    TOTAL,
    WORD_PLACES,
)
from .load import has_kernels, kernels

ROUNDING_FUNCTIONS = (TO_NEAREST, BY_WORD, STOCHASTIC)
"""The functions that round to another type."""

VALUE_PLACE = WORD_PLACES + COUNTER_WORDS
"""Where a value waits for its random word."""

FLOAT_DTYPES = (np.dtype(np.float32), np.dtype(np.float16))
"""The dtypes that kernels read and write; registers hold float32."""

OPERATIONS: Mapping[Opcode, int] = {
    Opcode.ADD: ADD,
    Opcode.SUB: SUB,
    Opcode.MUL: MUL,
    Opcode.DIV: DIV,
    Opcode.MAX: MAX,
    Opcode.MIN: MIN,
    Opcode.ROUND: ROUND,
}
"""The number of each operation in tables."""

MERGES: Mapping[str, int] = {"sum": ADD, "prod": MUL, "max": MAX, "min": MIN}
"""The operation that merges two values, by combiner."""

SPAN_OF_UNIT = LANES * CHAIN_VECTORS
"""Elements of a row that a thread handles at a time, if there are few rows."""

FEW_ROWS = 128
"""Threads share the elements of rows if there are fewer rows than this."""

NANOSECONDS_TO_BEGIN, NANOSECONDS_PER_STEP = 25.0, 15.0
NANOSECONDS_IF_STRIDED, NANOSECONDS_OF_FUNCTION = 90.0, 250.0
"""Rough estimates for CHAIN_VECTORS vectors, in nanoseconds: the additional time of a strided step,
and of a function.
"""

MERGED_SPAN = 1024
"""Elements of rows that a thread merges at a time, if there are few rows."""

NEAR_BYTES = 1 << 13
"""If possible, elements of one row are closer together than this, in bytes."""


@dataclass(frozen=True)
class _Step:
    """One step of a chain.

    Attributes:
        op: the operation's code in tables.
        arrays: the operand in memory, and optionally its factor.
        kind, bits: the operand if it is not in memory: its kind, and the bits of a constant or the
            place of a saved total.
        function: the name of the sequence that a step applies.
    """

    op: int
    arrays: tuple[Array, ...] = ()
    kind: int = NO_OPERAND
    bits: int = 0
    function: str = ""


Input = Array | int | None
"""The input of a step: memory, the place of a saved total, or None for the total."""


@dataclass
class Steps:
    """The steps of a chain under construction."""

    made: list[_Step] = field(default_factory=list[_Step])

    def add(self, op: int, *memory: Array, is_left: bool = False) -> None:
        """Add a step on memory, or on products of two arrays.

        Args:
            is_left: whether the memory is the left operand and the total the right one.
        """
        self.made.append(_Step(op + REVERSED * is_left, memory))

    def add_register(self, op: int, kind: int, is_left: bool = False, place: int = 0) -> None:
        """Add a step on the total itself, or on the total saved at a place."""
        self.made.append(_Step(op + REVERSED * is_left, kind=kind, bits=place))

    def add_input(self, op: int, given: Input, is_left: bool = False) -> None:
        """Add a step on memory or on a total."""
        if given is None:
            self.add_register(op, TOTAL, is_left)
        elif isinstance(given, int):
            self.add_register(op, SAVED, is_left, given)
        else:
            self.add(op, given, is_left=is_left)

    def add_constant(self, op: int, value: float, is_left: bool) -> None:
        """Add a step on a constant."""
        bits = int(np.float32(value).view(np.int32))
        self.made.append(_Step(op + REVERSED * is_left, kind=CONSTANT, bits=bits))

    def save(self, place: int = 0) -> None:
        """Add a step that saves the total."""
        self.made.append(_Step(SAVE, bits=place))

    def apply(self, function: str, parameters: Sequence[float], inputs: Sequence[Input]) -> bool:
        """Add the steps of a scalar function; returns False if kernels lack it."""
        known = SCALAR_FUNCTIONS.get(function)
        known = known and SCALAR_FUNCTIONS.get(known.same_as.get(tuple(parameters), ""), known)
        if known is not None and known.sequence:
            if not has_kernels("functions"):
                return False
            self._apply_sequence(known, parameters, inputs)
            return True
        if function in ROUNDING_FUNCTIONS:
            return self._apply_rounding(function, tuple(parameters), inputs)
        if known is None or known.compiled is None:
            return False
        if len(inputs) == 2:
            (step,) = known.compiled
            a, b = inputs
            if b is None and a is not None:
                self.add_input(OPERATIONS[step.opcode], a, is_left=True)
                return True
            if a is not None:
                self.add_input(TAKE, a)
            self.add_input(OPERATIONS[step.opcode], b)
            return True
        if inputs[0] is not None:
            self.add_input(TAKE, inputs[0])
        rest = iter(parameters)
        for step in known.compiled:
            op = OPERATIONS[step.opcode]
            if step.by == "itself":
                self.add_register(op, TOTAL)
            else:
                value = next(rest) if isinstance(step.by, str) else step.by
                self.add_constant(op, value, step.first)
        return True

    def _apply_rounding(
        self, function: str, parameters: tuple[float, ...], inputs: Sequence[Input]
    ) -> bool:
        """Add the steps of a rounding; returns False if kernels do not round to its type."""
        *key, digits, least, largest, rule = parameters
        if (digits, least, largest) != ROUNDED_TO or not has_kernels("functions"):
            return False
        value, *others = inputs
        if function == STOCHASTIC:
            if value is None:
                self.save(VALUE_PLACE)
                value = VALUE_PLACE
            for i, each in enumerate(others):
                self.add_input(TAKE, each)
                self._call("as word")
                self.save(WORD_PLACES + i)
            # The bits of the key, as a table has them.
            bits = int(np.uint32(int(key[0])).view(np.int32))
            self.made.append(_Step(APPLY, kind=CONSTANT, bits=bits, function="random word"))
            self.save(WORD_PLACES)
            others = [WORD_PLACES]
        if value is not None:
            self.add_input(TAKE, value)
        name = f"{TO_NEAREST if function == TO_NEAREST else BY_WORD} {BY_RULE[int(rule)]}"
        if others:
            (word,) = others
            if isinstance(word, np.ndarray):
                if word.dtype != np.uint32:
                    return False
                word = word.view(np.float32)
            self.add_input(APPLY, word)
            self.made[-1] = replace(self.made[-1], function=name)
        else:
            self._call(name)
        return True

    def _call(self, function: str) -> None:
        """Add a step that applies a function to the total alone."""
        self.made.append(_Step(APPLY, kind=NO_OPERAND, function=function))

    def _apply_sequence(
        self, function: ScalarFunction, parameters: Sequence[float], inputs: Sequence[Input]
    ) -> None:
        """Add the step that applies a function's sequence. A parameter becomes its second
        operand."""
        first, *others = inputs
        is_reversed = bool(others) and others[0] is None and first is not None
        if is_reversed:
            others = [first]
        elif first is not None:
            self.add_input(TAKE, first)
        op = APPLY + REVERSED * is_reversed
        if others:
            self.add_input(op, others[0])
        elif parameters:
            self.add_constant(op, parameters[0], is_left=False)
        else:
            self.add_register(op, NO_OPERAND)
        self.made[-1] = replace(self.made[-1], function=function.sequence)

    def stages(self, stages: Sequence[Stage], extras: Sequence[Array], made: np.dtype[Any]) -> bool:
        """Add the steps of a chain's stages on the total; returns False if kernels lack one of
        them.

        Args:
            made: the dtype of the result, to which a store converts.
        """
        rest = list(extras)
        kept, later = places_of(stages), _read_later(stages)
        # Value i is the total until stage i + 1 is computed, and is saved if a later stage reads
        # it.
        saved: list[Input] = []
        for i, stage in enumerate(stages):
            place = kept[i - 1] if i else 0
            if i in later:
                if place >= SAVED_PLACES:
                    return False
                self.save(place)
            further: list[Input] = [*rest[: stage.extras]]
            rest = rest[stage.extras :]
            inputs = stage.arguments([*saved, None], further)
            if stage.element:
                if not self._cast(stage.element, inputs[0], made if i == len(stages) - 1 else None):
                    return False
            elif not self.apply(stage.function, stage.parameters, inputs):
                return False
            saved.append(place)
        return True

    def _cast(self, element: str, given: Input, made: np.dtype[Any] | None) -> bool:
        """Add the steps of a cast; returns False if kernels lack it.

        Args:
            made: the dtype of the result, if the cast comes last.
        """
        if element not in ("f16", "f32"):
            return False
        if given is not None:
            self.add_input(TAKE, given)
        if element == "f16" and made != np.float16:
            if not has_kernels("functions"):
                return False
            self._call("through f16")
        return True

    @property
    def arrays(self) -> list[Array]:
        """All memory that is read."""
        return [a for step in self.made for a in step.arrays]

    def call(self, result: Array) -> Call:
        """The call that runs the steps for every element of a result, and stores the total."""
        steps = [*self.made, _Step(STORE, (result,))]
        arrays = coalesced(*(a for step in steps for a in step.arrays))
        order = _row_order(arrays)
        arrays = [a.transpose(order) for a in arrays]
        given = iter(arrays)
        steps = [replace(step, arrays=tuple(next(given) for _ in step.arrays)) for step in steps]
        result = steps[-1].arrays[0]
        missing = (0,) * (2 - result.ndim)
        sizes = np.array((1,) * len(missing) + result.shape, np.int64)
        table, columns, places = _tables(steps)
        strides = np.array([missing + a.strides for a in columns], np.int64).T.copy()
        starts = np.array([address(a) for a in columns], np.int64)
        vectors = np.arange(CHAIN_VECTORS, dtype=np.int64)
        by_row, by_column = strides[-2:, :, None]
        ramps = np.concatenate([by_row * vectors, by_column * LANES * vectors], axis=1)
        room = 8 * (len(columns) * (ADDRESS_LINE_BYTES // 8 + 1) + len(sizes))
        is_strided = any(_kind(a) in STRIDED.values() for a in arrays)
        compiled = kernels("chains")
        head = np.zeros(CHAIN_FIELDS, np.int64)
        head[[RANK, STEP_COUNT, MEMORIES]] = len(sizes), len(table), len(columns)
        head[SPAN] = SPAN_ELEMENTS if is_strided else sizes[-1]
        head[[STEPS_CODE, ALONG_CODE, ACROSS_CODE]] = compiled.CODES
        tables = {
            SIZES: sizes,
            STEPS: table,
            STRIDES: strides,
            STARTS: starts,
            RAMPS: ramps,
        }
        head[list(tables)] = [table_address(each) for each in tables.values()]
        rows, spans = prod(sizes[:-1].tolist()), -(-int(sizes[-1]) // SPAN_OF_UNIT)
        # Eight vectors are handled at a time, however short the rows are.
        vectors = -(-int(sizes[-1]) // LANES)
        total = min(rows * -(-vectors // CHAIN_VECTORS), -(-rows // CHAIN_VECTORS) * vectors)
        total *= _nanoseconds(table)
        if rows < FEW_ROWS:
            head[CUTS_COLUMNS] = 1
            cuts = even_cuts(spans, total)
        else:
            cuts = even_cuts(rows, total, CHAIN_VECTORS)
        kept = arrays, tables, places
        pointers = [starts, *(table[:, each] for each in STEP_ADDRESSES)]
        pointers += elements(head, *tables, STEPS_CODE, ALONG_CODE, ACROSS_CODE)
        return KernelCall(compiled.CHAIN, head, cuts, kept, room, pointers), ()


def _nanoseconds(table: Table) -> float:
    """A rough estimate of the time of all steps on CHAIN_VECTORS vectors."""
    each = np.full(len(table), NANOSECONDS_PER_STEP)
    for which in (KIND, FACTOR_KIND):
        each += NANOSECONDS_IF_STRIDED * np.isin(table[:, which], [*STRIDED.values()])
    each += NANOSECONDS_OF_FUNCTION * (table[:, FUNCTION_CODE] != 0)
    return NANOSECONDS_TO_BEGIN + float(each @ np.maximum(table[:, COUNT], 1))


def _read_later(stages: Sequence[Stage]) -> frozenset[int]:
    """The values that are read after the next stage, so that they must be saved."""
    return frozenset(
        k for i, stage in enumerate(stages) for k in stage.reads if k not in (FURTHER, i)
    )


OPERANDS = (
    (PLACES, KIND, STRIDE, COLUMN),
    (FACTOR_PLACES, FACTOR_KIND, FACTOR_STRIDE, FACTOR_COLUMN),
)
"""The columns of a step that describe its operand, and its factor."""


STEP_ADDRESSES = PLACES, FACTOR_PLACES, FUNCTION_CODE
"""The columns of a step that are addresses, or 0."""


def _tables(steps: Sequence[_Step]) -> tuple[Table, list[Array], Table]:
    """The table of steps, the array of each column of the address table, and the listed offsets.

    Consecutive steps that do the same with memory of one kind become one step with several places.
    Arrays with equal strides in the same block of memory share a column: the offsets from one to
    the other are valid wherever the block is.
    """
    groups = [list(group) for _, group in groupby(steps, _key)]
    table = np.zeros((len(groups), STEP_FIELDS), np.int64)
    columns: dict[tuple[tuple[int, ...], int], Array] = {}
    places: list[int] = []
    for row, group in zip(table, groups, strict=True):
        step = group[0]
        count = 0 if step.op in (SAVE, STORE) else len(group)
        row[[OP, COUNT, KIND, COLUMN]] = step.op, count, step.kind, step.bits
        if step.function:
            compiled = kernels("functions")
            row[[FUNCTION, FUNCTION_CODE]] = compiled.NUMBERS[step.function], compiled.CODE
        memories = zip(*(s.arrays for s in group), strict=True)
        for fields, memory in zip(OPERANDS, memories, strict=False):
            key = memory[0].strides, id(owner(memory[0]))
            column = columns.setdefault(key, memory[0])
            which = list(columns).index(key)
            row[list(fields)] = len(places), _kind(memory[0]), _stride(memory[0]), which
            places += [address(a) - address(column) for a in memory]
    # A step without memory has no places, but the table may still refer to a list.
    looked_up = np.zeros(max(len(places), int(table[:, COUNT].max())), np.int64)
    looked_up[: len(places)] = places
    for which in (PLACES, FACTOR_PLACES):
        table[:, which] = address(looked_up) + table[:, which] * looked_up.itemsize
    return table, list(columns.values()), looked_up


def _key(step: _Step) -> tuple[object, ...]:
    """A key that is equal for steps that differ only in their places."""
    return (
        step.op,
        step.kind,
        step.bits,
        step.function,
        [(a.itemsize, a.strides, id(owner(a))) for a in step.arrays],
    )


def _kind(array: Array) -> int:
    """The kind of operand that the elements of an array's rows form."""
    return EVENLY_SPACED[array.itemsize].get(_stride(array), STRIDED[array.itemsize])


def _stride(array: Array) -> int:
    return array.strides[-1] if array.ndim else 0


EVENLY_SPACED: Mapping[int, Mapping[int, int]] = {
    4: {4: FLOATS, 0: FLOAT, 8: EVERY_SECOND_FLOAT},
    2: {2: HALVES, 0: HALF},
}
"""Kinds of operands, by bytes of an element, then by bytes from one element to the next."""

STRIDED = {4: STRIDED_FLOATS, 2: STRIDED_HALVES}
"""The kind of operands with other strides."""

PRICES = {
    **dict.fromkeys((FLOATS, HALVES, FLOAT, HALF), (1.0, 0.0)),
    EVERY_SECOND_FLOAT: (1.5, 0.0),
    **dict.fromkeys((STRIDED_FLOATS, STRIDED_HALVES), (0.5, 0.25)),
}
"""Nanoseconds to read a vector, and additional nanoseconds per element: rough estimates."""

PRICE_OF_ROW = 2.0

SPAN_ELEMENTS = 64
"""Elements of a row that are handled before other rows, if some operands are strided, because rows
share cache lines.
"""


def _row_order(arrays: Sequence[Array]) -> list[int]:
    """The dimensions in an order whose last dimension gives the cheapest rows."""
    result = arrays[-1]
    if result.ndim < 2:
        return list(range(result.ndim))
    kinds = Counter((a.itemsize, a.strides) for a in arrays)
    # Large strides are walked least often, so the elements of a tile come last.
    near = [d for d in range(result.ndim) if abs(result.strides[d]) < NEAR_BYTES]

    def price(d: int) -> float:
        """Nanoseconds per element if this dimension gives the rows."""
        n = result.shape[d]
        total = PRICE_OF_ROW
        for (size, strides), count in kinds.items():
            vector, each = PRICES[EVENLY_SPACED[size].get(strides[d], STRIDED[size])]
            total += count * (vector * -(-n // LANES) + each * n)
        return total / n

    best = min(near or [result.ndim - 1], key=price)
    return [*(d for d in range(result.ndim) if d != best), best]


def merge_call(
    op: int, starts: Table, offsets: Table, results: Table, n: int, memory: Sequence[Array]
) -> Call:
    """The call that merges rows of n floats, one after another, into result rows.

    Args:
        op: merges two values.
        starts: the address of the first row to merge into each result.
        offsets: the offsets of all rows to merge, relative to the first.
        results: the addresses of the result rows.
        memory: the arrays that contain these addresses.
    """
    compiled = kernels("chains")
    places = table_address(offsets)
    table = np.zeros((3, STEP_FIELDS), np.int64)
    table[:, [PLACES, KIND, STRIDE]] = places, FLOATS, FLOAT_DTYPES[0].itemsize
    steps = (TAKE, 1, 0), (op, len(offsets) - 1, 0), (STORE, 0, 1)
    table[:, [OP, COUNT, COLUMN]] = np.array(steps, np.int64)
    table[1, PLACES] += offsets.itemsize
    groups = -(-len(starts) // CHAIN_VECTORS)
    missing = (0, groups * CHAIN_VECTORS - len(starts))
    rows = np.stack([np.pad(a, missing, "edge") for a in (starts, results)])
    addresses = np.zeros((groups, len(rows), ADDRESS_LINE_BYTES // 8), np.int64)
    by_group = rows.reshape(len(rows), groups, CHAIN_VECTORS).transpose(1, 0, 2)
    addresses[:, :, :CHAIN_VECTORS] = by_group
    span = MERGED_SPAN if groups < FEW_ROWS else max(n, 1)
    head = np.zeros(MERGE_FIELDS, np.int64)
    head[[MERGE_COLUMNS, MERGE_SPAN]] = n, span
    head[[MERGE_STEPS, MERGE_STEP_COUNT]] = table_address(table), len(table)
    head[[MERGE_TABLES, MERGE_TABLE_BYTES]] = table_address(addresses), addresses[:1].nbytes
    head[MERGE_CODE] = compiled.CHAIN_STEPS
    total = groups * -(-n // LANES) * _nanoseconds(table)
    cuts = even_cuts(groups * -(-n // span), total)
    kept = offsets, table, addresses, *memory
    pointers = [addresses[:, :, :CHAIN_VECTORS], table[:, PLACES]]
    pointers += elements(head, MERGE_STEPS, MERGE_TABLES, MERGE_CODE)
    return KernelCall(compiled.MERGE, head, cuts, kept, pointers=pointers), ()


def _can_read(arrays: Sequence[Array]) -> bool:
    """Whether there are kernels that read and write all arrays."""
    return all(a.dtype in FLOAT_DTYPES for a in arrays) and has_kernels("chains")


def points_call(
    body: Body,
    points: Sequence[Sequence[Array]],
    then: Sequence[Stage],
    extras: Sequence[Array],
    result: Array,
) -> Call | None:
    """The call that computes a body at merged points, and its chain; None if kernels lack it.

    Args:
        points: the operands at each point, in the order of merging, of the result's shape.
        then, extras: the chain and its operands.
    """
    if len(points) == 1 and body.function == "identity" and all(stage.element for stage in then):
        # A mere copy or conversion: the bits of a NaN would not survive it.
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
            steps.save()
        if not steps.apply(body.function, body.parameters, operands):
            return None
        if i:
            steps.add_register(merge, SAVED, is_left=True)
    if not steps.stages(then, extras, result.dtype) or not _can_read([*steps.arrays, result]):
        return None
    return steps.call(result)


def host_stage_calls(cells: Cells, value: Array, scratch: Scratch) -> list[Call]:
    """Like codelets.chain.stage_calls, as one compiled call if kernels have all stages."""
    stages, own, result = cells.body.then, cells.own_operands, cells.result_once

    def call(operands: Sequence[Array]) -> Call | None:
        steps = Steps()
        steps.add(TAKE, value)
        extras = [cells.once(a) for a in operands[own:]]
        if not steps.stages(stages, extras, result.dtype) or not _can_read([*steps.arrays, result]):
            return None
        return steps.call(result)

    calls = replica_calls(cells, range(own, len(cells.operands)), call)
    return calls or stage_calls(cells, value, scratch)
