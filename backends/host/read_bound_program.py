"""Reads a bound program from a file: its calls, their tables, and memory addresses.

Binding a program makes a few hundred calls and the tables of kernels. Only the addresses of memory
and code in them depend on the process. So a file has the tables as they were, and for each address
its block of memory and its offset in the block. Loading allocates the blocks and adds their new
addresses. It needs neither the text of the program nor the compiler.

A file has the length of the head, the head as JSON, and arrays of int64: for each address, its
place in the tables, its block and its offset; then the tables. Blocks are numbered from 0; -1, -2
and so on are kernels' code. The cache seals files for their program, kernels and host.

Only programs of plain supersteps are kept like this, and only if no run changes anything that the
next run reads (see `write_bound_program`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, cast

import numpy as np

from ...ir.support.strided import as_strided
from ..codelets.calls import Array, Call, Scratch, address
from ..codelets.stamps import History, Stamp, Table
from ..host_arrays import host_array
from .bound_products import BoundProducts, Groups, Partials, Products
from .calls import KernelCall, WhileEqual
from .load import NoKernels, kernels
from .tile_memory import copying, tile_memory

MEMORY_BLOCK, ZERO_BLOCK, SAVED_BLOCK = range(3)
"""Kinds of blocks: the memory of all tiles; zeros; tables, whose contents are in the file."""

ALIGNMENT = 64
"""A block of zeros begins at the same offset from a multiple of this as when it was kept."""

FUNCTIONS: Mapping[str, str] = {
    "copyto": "numpy",
    "apply_into": "abele.backends.codelets.scalar",
    "convert_into": "abele.backends.codelets.conversion",
    "fill_with": "abele.backends.codelets.ufuncs",
    "merge_into": "abele.backends.codelets.ufuncs",
    "reduce_into": "abele.backends.codelets.ufuncs",
}
"""The functions of the NumPy calls that can be kept, each with its module, which is imported when a
call uses it.
"""

CALL_COLUMNS = 6
"""The number of arguments of a KernelCall."""

ADDRESS_COLUMNS = 0, 1, 2, 4
"""The indices of the arguments that are addresses."""

Blobs = Mapping[str, Array]
"""Arrays by digest: all stored elements of each, in C order."""


class Damaged(ValueError):
    """The contents of a file are damaged, or belong to another target."""


class BoundProgram:
    """A program that is ready to run. No run changes anything that the next run reads.

    Raises Damaged, and MemoryError.

    Attributes:
        data: the contents of a file.
        blobs: the weights.
        tiles, row: the size of the target's memory.
    """

    _saved: Table
    _blocks: Sequence[Array]
    _stamps: list[Stamp]
    _calls: list[KernelCall]
    _steps: list[tuple[list[Call], list[tuple[Stamp, bool]]]]

    def __init__(self, data: bytes | memoryview, blobs: Blobs, tiles: int, row: int) -> None:
        try:
            head, numbers = _opened(data)
            if [head["tiles"], head["row"]] != [tiles, row]:
                raise Damaged("for another target")
            self._load(head, numbers, blobs)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise Damaged(str(error)) from error

    def _load(self, head: Mapping[str, Any], numbers: Table, blobs: Blobs) -> None:
        """Allocate the blocks, and make the calls."""
        count, saved = head["addresses"], numbers[3 * head["addresses"] :]
        self._saved = saved
        self._blocks = [
            _block(kind, size, begin, head, saved) for kind, size, begin in head["blocks"]
        ]
        pairs = [pair for each in head["weights"] for pair in self._pairs(each, blobs)]
        with copying(pairs):
            where, block, offset = numbers[: 3 * count].reshape(3, count)
            starts = np.array([address(b) for b in self._blocks] + _codes(head["codes"]), np.int64)
            sizes = np.array([b.nbytes for b in self._blocks] + [0] * len(head["codes"]), np.int64)
            # Code follows the blocks, in the order of its numbers.
            block = np.where(block < 0, len(self._blocks) - 1 - block, block)
            if (block < 0).any() or (offset < 0).any() or (offset > sizes[block]).any():
                raise Damaged("an address outside its block")
            if (where < 0).any() or (where >= len(saved)).any():
                raise Damaged("an address outside the tables")
            saved[where] = starts[block] + offset
            self._scratch = Scratch()
            overlaps = [np.array(each, np.int64) for each in head["overlaps"]]
            history = History(overlaps, head["initial"])
            self._stamps = history.stamps
            first, rows = head["calls"]
            table = saved[first : first + rows * CALL_COLUMNS].reshape(rows, CALL_COLUMNS)
            self._calls = [
                KernelCall.kept((code, at, cuts, units, whole, room), self._blocks)
                for code, at, cuts, units, whole, room in table.tolist()
            ]
            self._inputs: Mapping[str, Array] = {}
            self._outputs: dict[str, Array] = {}
            self._steps = [
                (
                    [self._call(*each) for each in calls],
                    [(self._stamps[i], bool(is_whole)) for i, is_whole in writes],
                )
                for calls, writes in head["steps"]
            ]
        for i, is_initial in enumerate(head["initial"]):
            if is_initial:
                self._stamps[i].write(True)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of a run on inputs by name. Raises InputError for a bad input."""
        self._inputs, self._outputs = inputs, {}
        try:
            # Overflows give infinities without a warning, as on the machine.
            with np.errstate(all="ignore"):
                for calls, writes in self._steps:
                    for function, arguments in calls:
                        function(*arguments)
                    for stamp, is_whole in writes:
                        stamp.write(is_whole)
            return self._outputs
        finally:
            self._inputs, self._outputs = {}, {}

    # Loading

    def _view(self, kept: Sequence[Any]) -> Array:
        """The array that a file describes by block, offset, shape, strides and dtype."""
        block, offset, shape, strides, dtype = kept
        # NumPy checks that the array lies inside its block.
        return np.ndarray(shape, np.dtype(dtype), self._blocks[int(block)], offset, strides)

    def _pairs(self, kept: Sequence[Any], blobs: Blobs) -> list[tuple[Array, Array]]:
        """The copies that write a weight, as (target, source) pairs; sources are parts of its blob,
        or tables.
        """
        digest, pairs = kept
        blob = blobs[digest]
        return [
            (self._view(target), self._view(source) if len(source) == 5 else _part(blob, *source))
            for target, source in pairs
        ]

    def _call(self, kind: str, *kept: Any) -> Call:
        """A call from its description in a file."""
        made: Mapping[str, Callable[..., Call]] = {
            "kernel": self._kernel,
            "products": self._products,
            "while": self._while,
            "function": self._function,
            "give": self._give,
            "take": self._take,
        }
        return made[kind](*kept)

    def _kernel(self, number: int) -> Call:
        return self._calls[number], ()

    def _products(
        self,
        views: Sequence[Sequence[Any]],
        once: Sequence[Any] | None,
        each: Sequence[Sequence[Any]] | None,
        stamps: Sequence[int],
        partials: Sequence[Any] | None,
    ) -> Call:
        separate = [(Groups(*groups), [self._view(a) for a in held]) for groups, held in views]
        merged = None
        if partials is not None:
            begin, tile, dims = partials
            found = tuple((weight, count) for weight, count in dims)
            merged = Partials(int(self._saved[begin]), tile, found)
        own = [self._stamps[i] for i in stamps]
        bound = None if once is None else self._bound(once)
        apart = None if each is None else [self._bound(kept) for kept in each]
        return Products.kept(separate, bound, apart, own, merged, self._scratch), ()

    def _bound(self, kept: Sequence[Any]) -> BoundProducts:
        head, sizes, numbers = kept
        rows, columns, multiply = cast("list[int]", numbers)
        calls = self._calls[rows], self._calls[columns], self._calls[multiply]
        return BoundProducts.kept(self._view(head), sizes, calls)

    def _while(self, stamps: Sequence[int], once: Sequence[Any], each: Sequence[Any]) -> Call:
        own: list[Stamp] = [self._stamps[i] for i in stamps]
        return WhileEqual(own, self._call(*once), self._call(*each)), ()

    def _function(self, name: str, arguments: Sequence[Any]) -> Call:
        kinds: Mapping[str, Callable[[Any], object]] = {
            "array": self._view,
            "arrays": lambda each: [self._view(a) for a in each],
            "element": _element,
            "numbers": lambda each: tuple(each),
            "scalar": _scalar_function,
            "ufunc": partial(getattr, np),
        }
        function = getattr(import_module(FUNCTIONS[name]), name)
        return function, tuple(kinds[kind](each) for kind, each in arguments)

    def _give(self, name: str, held: Sequence[Any], shape: Sequence[int]) -> Call:
        wanted = tuple(shape)

        def fill(held: Array) -> None:
            values = host_array(self._inputs, name, held.dtype, wanted)
            np.copyto(held, values.reshape(held.shape))

        return fill, (self._view(held),)

    def _take(self, name: str, held: Sequence[Any], shape: Sequence[int]) -> Call:
        def take(held: Array) -> None:
            self._outputs[name] = np.array(held.reshape(shape))

        return take, (self._view(held),)


def _element(kept: Sequence[str]) -> np.generic:
    """An element from its dtype and bytes."""
    dtype, data = kept
    return np.frombuffer(bytes.fromhex(data), np.dtype(dtype))[0]


def _scalar_function(name: str) -> object:
    return import_module("abele.backends.codelets.scalar").scalar_function(name)


def _part(blob: Array, first: int, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A part of a weight's array, from element `first`. Raises Damaged.

    Args:
        strides: in elements.
    """
    reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    low, high = (first + sum(bound(each, 0) for each in reach) for bound in (min, max))
    if low < 0 or high >= len(blob):
        raise Damaged("a weight outside its array")
    return as_strided(blob[first:], shape, [step * blob.itemsize for step in strides])


def _opened(data: bytes | memoryview) -> tuple[Mapping[str, Any], Table]:
    """The head of a file, and its numbers in writable memory. Raises ValueError."""
    begin = 8 + int.from_bytes(data[:8], "little")
    numbers = np.frombuffer(data, np.int64, (len(data) - begin) // 8, begin).copy()
    return json.loads(bytes(data[8:begin])), numbers


def contents_of(head: Mapping[str, Any], numbers: Sequence[Table]) -> bytes:
    """The contents of a file."""
    text = json.dumps(head, separators=(",", ":")).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *(each.tobytes() for each in numbers)])


def _block(kind: int, size: int, begin: int, head: Mapping[str, Any], saved: Table) -> Array:
    """A block of memory: bytes, or a table.

    Args:
        begin: the position in the file, or the offset from a multiple of ALIGNMENT.
    """
    if kind == MEMORY_BLOCK:
        return tile_memory(head["tiles"], head["row"]).reshape(-1)
    if kind == SAVED_BLOCK:
        if not 0 <= begin <= begin + size // 8 <= len(saved):
            raise Damaged("a table outside the file")
        return saved[begin : begin + size // 8].view(np.uint8)
    whole = np.zeros(size + ALIGNMENT, np.uint8)
    first = (begin - address(whole)) % ALIGNMENT
    return whole[first : first + size]


def _codes(names: Sequence[str]) -> list[int]:
    """The addresses of kernels' code, from TASK.NAME or TASK.NAME.INDEX. Raises Damaged."""
    found: list[int] = []
    if names:
        # The kernels of this task make all calls.
        _ = _kernels("sharing")
    for each in names:
        task, name, *index = each.split(".")
        value = getattr(_kernels(task), name)
        found.append(int(value[int(index[0])] if index else value))
    return found


def _kernels(task: str) -> Any:
    try:
        return kernels(task)
    except NoKernels as problem:
        raise Damaged(f"kernels of {task} are not used any more: {problem}") from None
