"""Fixed sequences of IEEE operations, which define the bytes of float32 functions.

A sequence is a straight line of instructions on float64: additions, products, quotients, roots,
comparisons, and operations on the bits of numbers. Each of them is exact or rounded to nearest by
every processor, nothing is contracted, and no library of functions is called. NumPy runs a sequence
here, and the host's kernels compile the same one (host/kernels/functions.py), so that both give the
same bytes. Operands are widened first, and the result is rounded once to float32.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from ...ir.support.arrays import Array
from .calls import address, chunks

NUMBER, BITS, MASK = "number", "bits", "mask"
"""The kinds of values: float64, int64, and truth values. A number can be read as bits and back."""


class Operation(NamedTuple):
    """The meaning of an instruction: the kinds of its operands and of its result, and NumPy's
    function.

    A select, which chooses between two numbers, and a lookup in a table have no NumPy function.
    """

    takes: tuple[str, ...]
    gives: str
    ufunc: np.ufunc | None = None


OPERATIONS: Mapping[str, Operation] = {
    "add": Operation((NUMBER, NUMBER), NUMBER, np.add),
    "subtract": Operation((NUMBER, NUMBER), NUMBER, np.subtract),
    "multiply": Operation((NUMBER, NUMBER), NUMBER, np.multiply),
    "divide": Operation((NUMBER, NUMBER), NUMBER, np.divide),
    "square root": Operation((NUMBER,), NUMBER, np.sqrt),
    # A NaN wins; of two equal values, the second does.
    "larger": Operation((NUMBER, NUMBER), NUMBER, np.maximum),
    "smaller": Operation((NUMBER, NUMBER), NUMBER, np.minimum),
    "add bits": Operation((BITS, BITS), BITS, np.add),
    "subtract bits": Operation((BITS, BITS), BITS, np.subtract),
    "and": Operation((BITS, BITS), BITS, np.bitwise_and),
    "or": Operation((BITS, BITS), BITS, np.bitwise_or),
    "exclusive or": Operation((BITS, BITS), BITS, np.bitwise_xor),
    "shift left": Operation((BITS, BITS), BITS, np.left_shift),
    # Of bits that encode a number which is not negative.
    "shift right": Operation((BITS, BITS), BITS, np.right_shift),
    "smaller bits": Operation((BITS, BITS), BITS, np.minimum),
    "larger bits": Operation((BITS, BITS), BITS, np.maximum),
    "is below": Operation((NUMBER, NUMBER), MASK, np.less),
    "is equal": Operation((NUMBER, NUMBER), MASK, np.equal),
    "both": Operation((MASK, MASK), MASK, np.logical_and),
    "either": Operation((MASK, MASK), MASK, np.logical_or),
    "not": Operation((MASK,), MASK, np.logical_not),
    "choose": Operation((MASK, NUMBER, NUMBER), NUMBER),
    "look up": Operation((BITS,), NUMBER),
}
"""All instructions, by name."""


class Instruction(NamedTuple):
    """One instruction of a sequence.

    Attributes:
        operands: the numbers of earlier values; constants are 1-tuples.
        table: the table that a lookup reads.
    """

    name: str
    operands: tuple[int | tuple[float | int], ...]
    table: tuple[float, ...] = ()


@dataclass(frozen=True)
class Sequence:
    """A function of float64 operands as instructions; the last one gives the result.

    Values are numbered: the operands first, then the result of each instruction.
    """

    operands: int
    instructions: tuple[Instruction, ...]


class SequenceValue:
    """A value of a sequence that is being recorded; operators append instructions.

    Attributes:
        made: the instructions so far.
        at: the number of the value.
        operands: the number of operands of the sequence.
    """

    def __init__(self, made: list[Instruction], at: int, kind: str, operands: int) -> None:
        self._made, self.at, self.kind, self._operands = made, at, kind, operands

    def apply(self, name: str, *others: Operand, table: tuple[float, ...] = ()) -> SequenceValue:
        """The result of an instruction on this value and others."""
        return self._append(name, (self, *others), table)

    def reversed(self, name: str, other: Operand) -> SequenceValue:
        """The result of an instruction whose left operand is `other`."""
        return self._append(name, (other, self))

    def _append(
        self, name: str, given: tuple[Operand, ...], table: tuple[float, ...] = ()
    ) -> SequenceValue:
        kinds = OPERATIONS[name].takes
        assert len(given) == len(kinds), name
        operands = tuple(
            each.at
            if isinstance(each, SequenceValue)
            else (float(each) if kind == NUMBER else each,)
            for each, kind in zip(given, kinds, strict=True)
        )
        wrong = [
            e
            for e, k in zip(given, kinds, strict=True)
            if isinstance(e, SequenceValue) and e.kind != k
        ]
        assert not wrong, f"{name} of {wrong[0].kind}"
        self._made.append(Instruction(name, operands, table))
        at = self._operands + len(self._made) - 1
        return SequenceValue(self._made, at, OPERATIONS[name].gives, self._operands)

    def _as(self, kind: str) -> SequenceValue:
        return SequenceValue(self._made, self.at, kind, self._operands)

    @property
    def bits(self) -> SequenceValue:
        """The bits of a number."""
        return self._as(BITS)

    @property
    def number(self) -> SequenceValue:
        """The number that has these bits."""
        return self._as(NUMBER)

    def __add__(self, other: Operand) -> SequenceValue:
        return self.apply("add" if self.kind == NUMBER else "add bits", other)

    def __sub__(self, other: Operand) -> SequenceValue:
        return self.apply("subtract" if self.kind == NUMBER else "subtract bits", other)

    def __mul__(self, other: Operand) -> SequenceValue:
        return self.apply("multiply", other)

    def __truediv__(self, other: Operand) -> SequenceValue:
        return self.apply("divide", other)

    def __radd__(self, other: float) -> SequenceValue:
        return self.reversed("add" if self.kind == NUMBER else "add bits", other)

    def __rsub__(self, other: float) -> SequenceValue:
        return self.reversed("subtract" if self.kind == NUMBER else "subtract bits", other)

    def __rtruediv__(self, other: float) -> SequenceValue:
        return self.reversed("divide", other)

    def __and__(self, other: Operand) -> SequenceValue:
        return self.apply("and" if self.kind == BITS else "both", other)

    def __or__(self, other: Operand) -> SequenceValue:
        return self.apply("or" if self.kind == BITS else "either", other)

    def __xor__(self, other: Operand) -> SequenceValue:
        return self.apply("exclusive or", other)

    def __lshift__(self, other: Operand) -> SequenceValue:
        return self.apply("shift left", other)

    def __rshift__(self, other: Operand) -> SequenceValue:
        return self.apply("shift right", other)

    def __lt__(self, other: Operand) -> SequenceValue:
        return self.apply("is below", other)

    def __gt__(self, other: float) -> SequenceValue:
        return self.reversed("is below", other)

    def __invert__(self) -> SequenceValue:
        return self.apply("not")

    def equals(self, other: Operand) -> SequenceValue:
        """The mask in which the two numbers are equal."""
        return self.apply("is equal", other)

    def choose(self, a: Operand, b: Operand) -> SequenceValue:
        """The first number where this mask holds, else the second."""
        return self.apply("choose", a, b)

    def limited(self, low: float, high: float) -> SequenceValue:
        """A number between two limits; NaN stays NaN."""
        return self.apply("larger", low).apply("smaller", high)

    def square_root(self) -> SequenceValue:
        """The square root, rounded once."""
        return self.apply("square root")


Operand = SequenceValue | float | int


def sequence(function: Callable[..., SequenceValue], operands: int) -> Sequence:
    """The sequence that a Python function of values records."""
    made: list[Instruction] = []
    result = function(*(SequenceValue(made, i, NUMBER, operands) for i in range(operands)))
    assert result.kind == NUMBER
    if result.at != operands + len(made) - 1 or not made:
        # The last instruction must give the result.
        result = result.bits | 0
    return Sequence(operands, tuple(made))


# NumPy

CHUNK = 4096
"""Elements that a sequence runs on at a time: its values stay in a cache."""

PADDING = 40
"""Elements between the rooms of two values, so that they do not begin at one place of a page."""


class _Scratch(threading.local):
    """Buffers for values, and calls that are bound to them; one per thread."""

    def __init__(self) -> None:
        self.values = np.empty((0, CHUNK + PADDING))
        self.masks = np.empty((0, CHUNK + PADDING), np.bool_)
        self.bound: dict[tuple[NumpyProgram, int], list[Callable[[], object]]] = {}

    def grow(self, values: int, masks: int) -> None:
        """Make room for at least this many numbers and masks."""
        if len(self.values) < values or len(self.masks) < masks:
            self.bound.clear()
            self.values = np.empty((max(values, len(self.values)), CHUNK + PADDING))
            self.masks = np.empty((max(masks, len(self.masks)), CHUNK + PADDING), np.bool_)


_SCRATCH = _Scratch()


def _select(mask: Array, a: Array, b: Array, out: Array) -> None:
    np.copyto(out, b)
    np.copyto(out, a, where=mask)


class NumpyProgram:
    """A sequence as NumPy calls. The buffer of a value is reused after the last read of the
    value."""

    def __init__(self, sequence: Sequence) -> None:
        self.sequence = sequence
        self._rooms = {NUMBER: sequence.operands, MASK: 0}
        self._steps: list[tuple[Instruction, tuple[Place | np.generic, ...], Place]] = []
        kinds, places = [NUMBER] * sequence.operands, list(range(sequence.operands))
        last: dict[int, int] = {}
        for i, each in enumerate(sequence.instructions):
            last.update((o, i) for o in each.operands if isinstance(o, int))
        free: dict[str, list[int]] = {
            NUMBER: [i for i in range(sequence.operands) if i not in last],
            MASK: [],
        }
        for i, each in enumerate(sequence.instructions):
            operation = OPERATIONS[each.name]
            operands = tuple(
                _constant(kind, o[0]) if isinstance(o, tuple) else (kind, places[o])
                for o, kind in zip(each.operands, operation.takes, strict=True)
            )
            unread = {o for o in each.operands if isinstance(o, int) and last[o] == i}
            kind = MASK if operation.gives == MASK else NUMBER
            # A NumPy function reads each element before it writes it. A select writes twice.
            if operation.ufunc is not None:
                for o in unread:
                    free[kinds[o]].append(places[o])
            if not free[kind]:
                free[kind].append(self._rooms[kind])
                self._rooms[kind] += 1
            at = free[kind].pop()
            if operation.ufunc is None:
                for o in unread:
                    free[kinds[o]].append(places[o])
            places.append(at)
            kinds.append(kind)
            self._steps.append((each, operands, (operation.gives, at)))

    def run(self, arrays: Iterable[Array], out: Array) -> None:
        """Write the function of arrays, which broadcast to `out`, into `out`. Raises no
        warnings."""
        scratch = _SCRATCH
        scratch.grow(self._rooms[NUMBER], self._rooms[MASK])
        arrays = [_apart(np.broadcast_to(a, out.shape), out) for a in arrays]
        (_, last) = self._steps[-1][2]
        with np.errstate(all="ignore"):
            for index in chunks(out.shape, CHUNK):
                piece = out[index] if out.ndim else out
                n = piece.size
                for array, room in zip(arrays, scratch.values, strict=False):
                    np.copyto(room[:n].reshape(piece.shape), array[index], casting="unsafe")
                for call in self._calls(n, scratch):
                    call()
                found = scratch.values[last][:n].reshape(piece.shape)
                if piece.dtype != np.float32:
                    # Convert through float32, whatever the dtype of out is.
                    found = found.astype(np.float32)
                np.copyto(piece, found, casting="unsafe")

    def _calls(self, n: int, scratch: _Scratch) -> list[Callable[[], object]]:
        """The calls on the first n elements of each buffer."""
        found = scratch.bound.get((self, n))
        if found is not None:
            return found
        values = scratch.values[:, :n]
        views = {NUMBER: values, BITS: values.view(np.int64), MASK: scratch.masks[:, :n]}

        def view(operand: Place | np.generic) -> Array | np.generic:
            return views[operand[0]][operand[1]] if isinstance(operand, tuple) else operand

        calls: list[Callable[[], object]] = []
        for each, operands, result in self._steps:
            given, out = [view(o) for o in operands], view(result)
            ufunc = OPERATIONS[each.name].ufunc
            if ufunc is not None:
                calls.append(partial(ufunc, *given, out=out))
            elif each.table:
                table = np.array(each.table)
                calls.append(partial(np.take, table, *given, out=out, mode="clip"))
            else:
                calls.append(partial(_select, *given, out))
        if n == CHUNK:
            scratch.bound[self, n] = calls
        return calls


def _apart(array: Array, out: Array) -> Array:
    """The array, or a copy if it overlaps elements of `out` that are written before they are
    read."""
    same = (array.strides, array.dtype) == (out.strides, out.dtype)
    if (same and address(array) == address(out)) or not np.may_share_memory(array, out):
        return array
    return array.copy()


Place = tuple[str, int]
"""A kind of values, and the number of a room."""


def _constant(kind: str, value: float) -> np.generic:
    return np.int64(value) if kind == BITS else np.float64(value)
