"""Writes a bound program into a file from which it runs again (see read_bound_program).

A program is kept if its main function consists of plain supersteps, no run changes anything that
the next run reads, and all its calls are of kinds that a file can hold. Any other program is bound
again.

The tables of kernels hold addresses among other numbers. Code that writes an address records its
place (see KernelCall), so the file lists the recorded places, with the block of memory and the
offset of each. No number is taken for an address because of its value. But a program is not kept if
a number that is not recorded lies in one of its blocks: its place may have been forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...dialects.block_inputs import block_inputs
from ...dialects.host import length_inputs, result_sizes
from ...dialects.steps import Input, Output, written
from ...ir.blob import Blob
from ...ir.support.distinct import distinct
from ...ir.upstream import ModuleOp
from ..codelets.calls import Array, Call, address, owner
from ..codelets.scalar import SCALAR_FUNCTIONS, ScalarFunction
from ..codelets.stamps import Table
from ..machine import Machine
from .bound_products import BoundProducts, Groups, Products
from .calls import KernelCall, WhileEqual
from .fusion import FusedBinder
from .load import loaded_kernels
from .read_bound_program import (
    ADDRESS_COLUMNS,
    ALIGNMENT,
    CALL_COLUMNS,
    FUNCTIONS,
    MEMORY_BLOCK,
    SAVED_BLOCK,
    ZERO_BLOCK,
    contents_of,
)

PLAIN = {
    "builtin.module",
    "exchange.variable",
    "func.func",
    "func.return",
    "exchange.move",
    "exchange.input",
    "exchange.output",
    "exchange.superstep",
    "exchange.sync",
    "exchange.compute",
}
"""The operations of a program that can be kept."""

MOST_BYTES = 1 << 28
"""The most bytes of the tables of a kept program: reading more takes longer than making them."""


class _NotKept(Exception):
    """The reason why a program cannot be kept."""


def bound_program_file(machine: Machine, module: ModuleOp) -> bytes | None:
    """The contents of a file that keeps a machine's program; None if it cannot be kept.

    Args:
        machine: has loaded the module, and has not run it yet.
    """
    try:
        return _Writer(machine, module).file()
    except _NotKept:
        return None


class _Writer:
    """Writes a machine's program."""

    def __init__(self, machine: Machine, module: ModuleOp) -> None:
        names = {op.name for op in module.walk()}
        functions = [op for op in module.body.block.ops if op.name == "func.func"]
        binder = machine.binder
        has_lists = length_inputs(module) or block_inputs(module)
        if names - PLAIN or len(functions) != 1 or result_sizes(module) or has_lists:
            raise _NotKept("more than supersteps")
        held = {name for name, v in machine.variables.items() if v.is_resident}
        if held & written(module) or any(machine.variables[n].initial is None for n in held):
            raise _NotKept("a state that runs change")
        if not isinstance(binder, FusedBinder):
            raise _NotKept("a machine that keeps all bytes")
        self._machine, self._binder = machine, binder
        self._memory = address(machine.memory)
        temporary = (binder.blocks[name].placed.memory for name in binder.hidden)
        self._cleared = {address(owner(a)) for a in (*temporary, *binder.scratch.buffers)}
        self._codes = code_names()
        self._numbers: dict[int, int] = {}
        self._arrays: list[Array] = []
        self._kinds: list[list[int]] = []
        self._saved: list[Array] = []
        self._words = 0
        self._places: list[Table] = []
        self._calls: list[Sequence[int]] = []
        self._kept: list[object] = []

    def file(self) -> bytes:
        """The contents of the file."""
        self._bind_all()
        steps = [self._step(*each) for each in self._machine.bound()]
        weights = [
            self._weight(name, v.initial.data)
            for name, v in self._machine.variables.items()
            if v.initial is not None
        ]
        table = np.array(self._calls, np.int64).reshape(-1, CALL_COLUMNS)
        calls = self._first_word(table), len(table)
        self._note_addresses([table[:, each] for each in ADDRESS_COLUMNS])
        if self._words * 8 > MOST_BYTES:
            raise _NotKept("large tables")
        saved = np.zeros(self._words, np.int64)
        for number, block in self._each_saved():
            begin = self._kinds[number][2]
            flat = saved[begin : begin + -(-block.nbytes // 8)].view(np.uint8)
            flat[: block.nbytes] = _bytes(block)
        where, blocks, offsets, codes = self._addresses(saved)
        stamps = self._machine.stamps
        tiles, row = self._machine.memory.shape
        head = {
            "tiles": tiles,
            "row": row,
            "addresses": len(where),
            "blocks": self._kinds,
            "codes": codes,
            "overlaps": [sorted(each.others) for each in stamps],
            "initial": [v.initial is not None for v in self._machine.variables.values()],
            "weights": weights,
            "calls": calls,
            "steps": steps,
        }
        return contents_of(head, [where, blocks, offsets, saved])

    def _bind_all(self) -> None:
        """Bind everything that the first run would bind: follow the run without making a call."""
        for op, calls, writes in self._machine.bound():
            if isinstance(op, Input | Output):
                self._cleared.add(address(owner(_held(op, calls))))
            for function, _ in calls:
                parts = [function]
                if isinstance(function, WhileEqual):
                    parts = [function.once[0], function.each[0]]
                for each in parts:
                    if isinstance(each, Products):
                        each.bind_next()
            for stamp, is_whole in writes:
                stamp.write(is_whole)

    # Blocks and arrays

    def _number(self, array: Array) -> int:
        """The number of the block of memory that contains an array."""
        block = owner(array)
        begin = address(block)
        if begin not in self._numbers:
            kind = SAVED_BLOCK
            if begin == self._memory:
                kind = MEMORY_BLOCK
            elif begin in self._cleared or not block.nbytes:
                kind = ZERO_BLOCK
            size, first = max(block.nbytes, 8), begin % ALIGNMENT
            if kind == SAVED_BLOCK:
                size, first = -(-size // 8) * 8, self._words
                self._words += size // 8
            self._numbers[begin] = len(self._arrays)
            self._arrays.append(block)
            self._kinds.append([kind, size, first])
        return self._numbers[begin]

    def _each_saved(self) -> Iterator[tuple[int, Array]]:
        """The number and the array of each saved block."""
        for number, block in enumerate(self._arrays):
            if self._kinds[number][0] == SAVED_BLOCK:
                yield number, block

    def _first_word(self, table: Array) -> int:
        """The position at which one of our own tables begins, in words of the saved blocks."""
        self._kept.append(table)
        return self._kinds[self._number(table)][2]

    def _view(self, array: Array) -> list[Any]:
        kind = array.dtype
        # A run of elements may be copied as one item of a void dtype. Other dtypes are of other
        # packages.
        is_item = kind.kind == "V" and kind.isbuiltin == 0 and kind.names is None
        if kind.isbuiltin != 1 and not is_item:
            raise _NotKept(f"dtype {kind}")
        number = self._number(array)
        offset = address(array) - address(self._arrays[number]) if array.size else 0
        return [number, offset, list(array.shape), list(array.strides), array.dtype.str]

    def _note(self, kept: object) -> None:
        """Number the blocks of all arrays that an object holds."""
        if isinstance(kept, np.ndarray):
            _ = self._number(cast(Array, kept))
        elif isinstance(kept, Mapping):
            for each in cast("Mapping[object, object]", kept).values():
                self._note(each)
        elif isinstance(kept, tuple | list):
            for each in cast("Sequence[object]", kept):
                self._note(each)
        elif is_dataclass(kept):
            for each in fields(kept):
                self._note(getattr(kept, each.name))

    def _note_addresses(self, views: Sequence[Table]) -> None:
        """Record the places of addresses: all elements of some views of tables."""
        for view in views:
            if not view.size:
                continue
            number = self._number(view)
            kind, _, word = self._kinds[number]
            assert kind == SAVED_BLOCK
            first = word + (address(view) - address(self._arrays[number])) // 8
            places: Table = np.array([first], np.int64)
            for count, step in zip(view.shape, view.strides, strict=True):
                steps = np.arange(count, dtype=np.int64) * (step // 8)
                places = np.add.outer(places, steps).reshape(-1)
            self._places.append(places)

    def _addresses(self, saved: Table) -> tuple[Table, Table, Table, list[str]]:
        """The places of addresses in the saved words, the block and the offset of each, and names
        of code.
        """
        where = distinct(np.concatenate([np.zeros(0, np.int64), *self._places]))
        where = where[saved[where] != 0]
        numbers, known = saved[where], self._codes
        # The address itself means nothing in another process.
        saved[where] = 0
        at, offset, inside = self._in_blocks(numbers)
        used = distinct(numbers[~inside])
        if not np.isin(used, [*known]).all():
            raise _NotKept("an address outside all blocks")
        block = np.where(inside, at, -1 - np.searchsorted(used, numbers))
        self._refuse_forgotten(saved)
        return where, block, np.where(inside, offset, 0), [known[each] for each in used.tolist()]

    def _in_blocks(self, numbers: Table) -> tuple[Table, Table, NDArray[np.bool_]]:
        """The block that each number would point into as an address, the offset, and whether there
        is one.
        """
        begins = np.array([address(each) for each in self._arrays], np.int64)
        ends = begins + [size for _, size, _ in self._kinds]
        order = np.argsort(begins)
        at = order[np.maximum(np.searchsorted(begins[order], numbers, side="right") - 1, 0)]
        return at, numbers - begins[at], (numbers >= begins[at]) & (numbers <= ends[at])

    def _refuse_forgotten(self, saved: Table) -> None:
        """Raise _NotKept if a number may be an address whose place was not recorded.

        Args:
            saved: the words of the saved blocks, without the recorded addresses.
        """
        for number, block in self._each_saved():
            if block.dtype == np.int64:
                first = self._kinds[number][2]
                words = saved[first : first + block.size]
                inside = self._in_blocks(words)[2]
                if inside.any() or np.isin(words, [*self._codes]).any():
                    raise _NotKept("a number that may be an address")

    # Calls

    def _step(self, op: object, calls: list[Call], writes: Sequence[tuple[Any, bool]]) -> list[Any]:
        """An operation's calls, and the variables that it writes, for the file."""
        if isinstance(op, Input):
            found = [self._host("give", op, calls), *map(self._call, calls[1:])]
        elif isinstance(op, Output):
            found = [*map(self._call, calls[:-1]), self._host("take", op, calls)]
        else:
            found = [self._call(call) for call in calls]
        return [found, [[stamp.index, is_whole] for stamp, is_whole in writes]]

    def _host(self, kind: str, op: Input | Output, calls: list[Call]) -> list[Any]:
        shape = list(op.tensor.get_shape())
        return [kind, op.host_name.data, self._view(_held(op, calls)), shape]

    def _call(self, call: Call) -> list[Any]:
        function, arguments = call
        known = {KernelCall: self._kernel, Products: self._products, WhileEqual: self._while}
        for kind, encode in known.items():
            if isinstance(function, kind):
                return cast(Any, encode)(function)
        name = getattr(function, "__name__", "")
        if name in FUNCTIONS and function is getattr(import_module(FUNCTIONS[name]), name):
            return ["function", name, [self._argument(a) for a in arguments]]
        raise _NotKept(f"a call of {function}")

    def _argument(self, given: object) -> list[Any]:
        if isinstance(given, np.ndarray):
            return ["array", self._view(cast(Array, given))]
        if isinstance(given, np.generic) and given.dtype.isbuiltin == 1:
            return ["element", [given.dtype.str, given.tobytes().hex()]]
        if isinstance(given, np.ufunc):
            return ["ufunc", given.__name__]
        if isinstance(given, ScalarFunction):
            names = [name for name, each in SCALAR_FUNCTIONS.items() if each is given]
            if names:
                return ["scalar", names[0]]
        if isinstance(given, list):
            arrays = cast("list[object]", given)
            if all(isinstance(each, np.ndarray) for each in arrays):
                return ["arrays", [self._view(cast(Array, each)) for each in arrays]]
        if isinstance(given, tuple):
            # Parameters, or axes. NumPy numbers would come back as Python numbers, which promote
            # differently.
            numbers = cast("tuple[object, ...]", given)
            if all(type(each) in (int, float, bool) for each in numbers):
                return ["numbers", list(numbers)]
        raise _NotKept(f"an argument {given!r:.80}")

    def _kernel_number(self, call: KernelCall) -> int:
        code, *_ = call.arguments
        if code not in self._codes:
            raise _NotKept("a kernel of no name")
        self._note(call.memory)
        self._note_addresses(call.pointers)
        self._calls.append(call.arguments)
        return len(self._calls) - 1

    def _kernel(self, call: KernelCall) -> list[Any]:
        return ["kernel", self._kernel_number(call)]

    def _products(self, call: Products) -> list[Any]:
        separate, once, each, stamps, partials = call.state
        merged = None
        if partials is not None:
            table = np.array([partials.begin], np.int64)
            begin = self._first_word(table)
            self._note_addresses([table])
            merged = [begin, partials.tile, [[int(w), int(n)] for w, n in partials.dims]]
        return [
            "products",
            [self._products_view(*view) for view in separate],
            None if once is None else self._bound(once),
            None if each is None else [self._bound(bound) for bound in each],
            [stamp.index for stamp in stamps],
            merged,
        ]

    def _products_view(self, groups: Groups, arrays: Sequence[Array]) -> list[Any]:
        axes = (groups.batch, groups.left, groups.right, groups.inner)
        listed = [[int(d) for d in each] for each in axes]
        return [[*listed, groups.chain_terms, groups.rounding], [self._view(a) for a in arrays]]

    def _bound(self, bound: BoundProducts) -> list[Any]:
        head, sizes, calls = bound.parts
        return [self._view(head), list(sizes), [self._kernel_number(each) for each in calls]]

    def _while(self, call: WhileEqual) -> list[Any]:
        stamps = [stamp.index for stamp in call.stamps]
        return ["while", stamps, self._call(call.once), self._call(call.each)]

    # Weights

    def _weight(self, name: str, blob: Blob) -> list[Any]:
        """The copies that write a weight: their sources and their targets."""
        pairs = self._binder.writing(name, blob.array)
        self._kept.append(pairs)
        stored = blob.stored
        begin, size = address(stored), stored.itemsize
        found: list[Any] = []
        for target, source in pairs:
            if not target.size:
                continue
            where: list[Any]
            first = address(source) - begin
            if 0 <= first < stored.nbytes:
                if any(step % size for step in (first, *source.strides)):
                    raise _NotKept("a part of an element")
                where = [first // size, list(source.shape), [s // size for s in source.strides]]
            else:
                where = self._view(source)
            found.append([self._view(target), where])
        return [blob.digest, found]


def _held(op: Input | Output, calls: list[Call]) -> Array:
    """The array between the host and the tiles."""
    _, arguments = calls[0 if isinstance(op, Input) else -1]
    held: object = arguments[-1]
    if not isinstance(held, np.ndarray):
        raise _NotKept("an output that several tiles hold")
    return cast(Array, held)


def _bytes(block: Array) -> Array:
    """The bytes of a contiguous array, in the order of memory."""
    if not block.flags.forc:
        raise _NotKept("an array with gaps")
    return (block if block.flags.c_contiguous else block.T).reshape(-1).view(np.uint8)


def code_names() -> dict[int, str]:
    """The names of kernels' codes, by address."""
    found: dict[int, str] = {}
    for task, module in loaded_kernels().items():
        for name, value in cast("dict[str, Any]", vars(module)).items():
            if not name.isupper():
                continue
            single = {f"{task}.{name}": value}
            if isinstance(value, tuple):
                members = enumerate(cast("tuple[object, ...]", value))
                single = {f"{task}.{name}.{i}": each for i, each in members}
            for spelling, each in single.items():
                if type(each) is int and each in module.codes:
                    found.setdefault(each, spelling)
    return found
