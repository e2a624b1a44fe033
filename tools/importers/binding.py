"""The sizes and values that a user gives to a model's inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from xdsl.ir import SSAValue

from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from .bounds import Bounds, GivenSize, checked_size, parts_of
from .building import ProgramBuilder
from .front_end import ANY, OpenShape
from .lengths import Length
from .padding import LEAST_CAPACITY

AXIS_DIGITS = 4
"""The most digits of an axis in INPUT:AXIS. No tensor has more axes."""


@dataclass(frozen=True)
class InputSignature:
    """An input of a model, as the model declares it.

    Attributes:
        shape: for each axis its size, or the name of a free one, "" if it has no name; None if the
            model does not say how many axes there are.
        dtype: of its elements; None if abele has no such elements, or if it is no tensor.
    """

    name: str
    shape: OpenShape
    dtype: np.dtype[np.generic] | None

    @property
    def axes(self) -> tuple[int | str, ...]:
        """The axes that are known."""
        return self.shape or ()

    def free_name(self, axis: int) -> str:
        """The name of an axis without a size: its own, or one from the input and the axis."""
        return str(self.axes[axis]) or f"{self.name}_{axis}"

    def fixed_size(self, axis: int) -> int | None:
        """The size of an axis; None if it is free."""
        size = self.axes[axis]
        return size if isinstance(size, int) else None


@dataclass
class Sizes:
    """The sizes of inputs' axes: numbers, or bounds of numbers that only a run knows.

    A symbol that is a sum of other symbols, such as "past + 1", has the size that follows from
    them.

    Attributes:
        inputs: the model's inputs that are not weights.
        place: the model's name in messages.
        symbols: sizes by the names of free axes.
        axes: sizes of single axes, by input and axis; they take precedence over symbols.
        samples: sizes of the first axis, by input; they take precedence over all others.
    """

    inputs: Sequence[InputSignature]
    place: str
    symbols: dict[str, int | Bounds] = field(default_factory=dict[str, "int | Bounds"])
    axes: dict[tuple[str, int], int | Bounds] = field(
        default_factory=dict[tuple[str, int], "int | Bounds"]
    )
    samples: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def fixed(self) -> dict[str, int]:
        """The symbols that have the same size in every run."""
        return {name: size for name, size in self.symbols.items() if isinstance(size, int)}

    def bad(self, message: str) -> InputError:
        """An error in a size or value that the user gives."""
        return InputError(f"{self.place}: {message}")

    def names(self, value: InputSignature) -> Iterator[tuple[int, str]]:
        """The free axes of an input, and their names."""
        for axis in range(len(value.axes)):
            if value.fixed_size(axis) is None:
                yield axis, value.free_name(axis)

    def add_dims(self, dims: Mapping[str, GivenSize]) -> None:
        """Give sizes to dimensions, by symbol or by INPUT:AXIS. Raises InputError for others."""
        symbols = {name for value in self.inputs for _, name in self.names(value)}
        symbols |= {part for name in symbols for part in parts_of(name)}
        for name, given in dims.items():
            size = checked_size(f"{self.place}: --dim {name}", given)
            if name in symbols:
                self.symbols[name] = size
            elif not self._add_axis(name, size):
                listed = ", ".join(sorted(symbols)) or "none"
                raise self.bad(
                    f"--dim {name}={size}: no such dimension; the model has {listed}, and each "
                    "axis as INPUT:AXIS"
                )

    def _add_axis(self, name: str, size: int | Bounds) -> bool:
        """Give a size to one axis of one input; returns False if the name is not of the form
        INPUT:AXIS.
        """
        whole, _, text = name.rpartition(":")
        value = next((each for each in self.inputs if each.name == whole), None)
        if value is None or not (text.isascii() and text.isdigit() and len(text) <= AXIS_DIGITS):
            return False
        axis, rank = int(text), len(value.axes)
        if axis >= rank:
            raise self.bad(f"--dim {name}={size}: input {whole!r} has {rank} axes, from 0 on")
        fixed = value.fixed_size(axis)
        if fixed not in (None, size):
            raise self.bad(
                f"--dim {name}={size}: axis {axis} of input {whole!r} has the size {fixed}"
            )
        self.axes[whole, axis] = size
        return True

    def add_value(self, value: InputSignature, shape: tuple[int, ...]) -> None:
        """Give the free axes of an input the sizes of its value. Raises InputError for others."""
        what = f"the value of input {value.name!r} has shape {list(shape)}"
        if value.shape is None:
            return
        if len(value.shape) != len(shape):
            raise self.bad(f"{what}; the model declares {len(value.shape)} axes")
        for axis, (symbol, size) in enumerate(zip(value.shape, shape, strict=True)):
            wanted = self.size(value, axis)
            if isinstance(wanted, Bounds) and wanted.least <= size <= wanted.most:
                wanted = size
            if wanted not in (None, size) and not isinstance(wanted, Sum):
                raise self.bad(f"{what}; axis {axis} has the size {wanted}")
            if isinstance(symbol, str) and symbol not in ("", ANY):
                self.symbols[symbol] = size

    def shape(self, value: InputSignature) -> list[int | Bounded | Sum]:
        """The shape of an input. `check` must have accepted all sizes."""
        found: list[int | Bounded | Sum] = []
        for axis in range(len(value.axes)):
            size = self.size(value, axis)
            assert size is not None, f"input {value.name!r}: its sizes are checked"
            if isinstance(size, Bounds):
                own = (value.name, axis) in self.axes
                name = f"{value.name}:{axis}" if own else value.free_name(axis)
                found.append(Bounded(name, size))
            else:
                found.append(size)
        return found

    def size(self, value: InputSignature, axis: int) -> int | Bounds | Sum | None:
        """The size of an axis of an input; None if it has none yet."""
        if not axis and value.name in self.samples:
            return self.samples[value.name]
        fixed = value.fixed_size(axis)
        if fixed is not None:
            return fixed
        own = self.axes.get((value.name, axis))
        return self._of_symbol(value.free_name(axis)) if own is None else own

    def _of_symbol(self, name: str) -> int | Bounds | Sum | None:
        """The size that a symbol stands for; None if it has none yet."""
        own = self.symbols.get(name)
        if own is not None or len(parts_of(name)) < LEAST_PARTS:
            return own
        offset, numbers = 0, list[Bounded]()
        for part in parts_of(name):
            size = int(part) if part.isdigit() else self.symbols.get(part)
            if size is None:
                return None
            if isinstance(size, Bounds):
                numbers.append(Bounded(part, size))
            else:
                offset += size
        return Sum(offset, tuple(numbers)) if numbers else offset

    def one_sample(self) -> None:
        """Give the first axis of the first input the size 1, if it has none."""
        first = next(iter(self.with_samples()), None)
        if first is not None and self.size(first, 0) is None:
            self.symbols[first.free_name(0)] = 1

    def rebatch(self, count: int) -> int:
        """Give the first axis of inputs another size, and return its previous size.

        The first axis of the first input holds the samples. The first axis of another input does
        too if it has the same size. Raises InputError if no input has axes.
        """
        inputs = self.with_samples()
        if not inputs:
            raise self.bad(f"--batch {count}: no input has an axis for samples")
        old = self.size(inputs[0], 0)
        assert old is not None, "all sizes are checked"
        if not isinstance(old, int):
            raise self.bad(f"--batch {count}: the number of samples has bounds; need a number")
        if count < 1 or old < 1:
            raise self.bad(f"--batch {count} instead of {old}; need 1 or more")
        self.samples = {each.name: count for each in inputs if self.size(each, 0) == old}
        return old

    def complete(self, batch: int | None) -> None:
        """Check the sizes, and give the inputs another number of samples if one is asked for.

        Raises InputError for sizes that are unknown, or cannot be.
        """
        if batch is not None:
            self.one_sample()
        self.check()
        if batch is not None:
            _ = self.rebatch(batch)

    def with_samples(self) -> list[InputSignature]:
        """The inputs that have axes."""
        return [each for each in self.inputs if each.axes]

    def check(self) -> None:
        """Raise InputError for the first input with an unknown size. The message lists all missing
        sizes.
        """
        missing = {
            value.name: [name for axis, name in self.names(value) if self.size(value, axis) is None]
            for value in self.inputs
        }
        first = next((name for name, symbols in missing.items() if symbols), None)
        if first is None:
            return
        every = dict.fromkeys(
            part
            for symbols in missing.values()
            for name in symbols
            for part in (parts_of(name) if self._has_parts(name) else [name])
            if part not in self.symbols and not part.isdigit()
        )
        options = " ".join(f"--dim {name}=1" for name in every)
        value = next(each for each in self.inputs if each.name == first)
        axis = next(axis for axis, _ in self.names(value) if self.size(value, axis) is None)
        called = f", which the model calls {value.axes[axis]!r}," if value.axes[axis] else ""
        raise self.bad(
            f"axis {axis} of input {first!r}{called} has no size; give the inputs (--inputs X.npz, "
            f"or example= in Python), or add {options}"
        )

    def _has_parts(self, name: str) -> bool:
        """Whether a symbol is a sum of others, at least one of which is a symbol of its own."""
        symbols = {each for value in self.inputs for _, each in self.names(value)}
        return any(part in symbols for part in parts_of(name) if part != name)


LEAST_PARTS = 2
"""The fewest parts of a sum."""


@dataclass(frozen=True)
class Bounded:
    """A size that only a run knows.

    Attributes:
        name: of the symbol, or INPUT:AXIS.
    """

    name: str
    bounds: Bounds


@dataclass(frozen=True)
class Sum:
    """A size that is a sum of a number and of sizes that only a run knows."""

    offset: int
    parts: tuple[Bounded, ...]


def largest(size: int | Bounded | Sum) -> int:
    """The size of an axis in the type. An axis with padding has room for two elements or more."""
    if isinstance(size, int):
        return size
    parts = size.parts if isinstance(size, Sum) else (size,)
    offset = size.offset if isinstance(size, Sum) else 0
    return max(offset + sum(each.bounds.most for each in parts), LEAST_CAPACITY)


def bind_lengths(
    program: ProgramBuilder, inputs: Sequence[tuple[SSAValue, Sequence[int | Bounded | Sum]]]
) -> None:
    """Add an argument of @main for each size that only a run knows, and let inputs have it.

    Args:
        inputs: the arguments of the model's inputs, and their shapes.
    """
    made: dict[str, tuple[str, Length]] = {}
    for value, shape in inputs:
        for axis, size in enumerate(shape):
            if isinstance(size, int):
                continue
            parts = size.parts if isinstance(size, Sum) else (size,)
            for each in parts:
                if each.name not in made:
                    length = program.add_length(each.name, each.bounds.least, each.bounds.most)
                    made[each.name] = program.length_inputs[-1].name, length
            offset = size.offset if isinstance(size, Sum) else 0
            program.bound_input(value, axis, offset, [made[each.name] for each in parts])


def add_inputs(program: ProgramBuilder, sizes: Sizes) -> dict[str, SSAValue]:
    """Add the inputs to a program, and an input for each size that every run chooses.

    Returns the inputs that are tensors, by name.
    """
    shapes = [sizes.shape(each) for each in sizes.inputs]
    made: dict[str, SSAValue] = {}
    for each, shape in zip(sizes.inputs, shapes, strict=True):
        assert each.dtype is not None, "inputs are tensors"
        made[each.name] = program.add_input(each.name, [*map(largest, shape)], each.dtype)
    bind_lengths(program, list(zip(made.values(), shapes, strict=True)))
    return made


def input_sizes(
    place: str,
    inputs: Iterable[InputSignature],
    dims: Mapping[str, GivenSize],
    values: Mapping[str, Array],
) -> Sizes:
    """The sizes of a model's inputs, as far as they are given. Raises InputError.

    Args:
        place: the model's name in messages.
        inputs: all of them.
        dims: sizes of free axes, or their bounds, by name or by INPUT:AXIS.
        values: inputs that are known now, from `bound_values`.
    """
    given = {each.name: each for each in inputs}
    sizes = Sizes([each for each in given.values() if each.name not in values], place)
    sizes.add_dims(dims)
    for name, array in values.items():
        sizes.add_value(given[name], array.shape)
    return sizes


def bound_values(
    place: str, inputs: Iterable[InputSignature], values: Mapping[str, ArrayLike]
) -> dict[str, Array]:
    """The arrays that a user gives as values of inputs, with the inputs' element types.

    A number may stand for a tensor of one element. Raises InputError for other inputs, and for
    elements that the type does not have.

    Args:
        place: the model's name in messages.
    """
    known = {each.name: each for each in inputs}
    for name in values:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise InputError(f"{place}: no input {name!r} to give a value; there are {listed}")
    return {name: _bound(place, known[name], given) for name, given in values.items()}


def _bound(place: str, signature: InputSignature, given: ArrayLike) -> Array:
    what, dtype = f"{place}: input {signature.name!r}", signature.dtype
    if dtype is None:
        raise InputError(f"{what} is no tensor of numbers, so it cannot be given a value")
    try:
        array = np.asarray(given)
        with np.errstate(all="ignore"):
            made = array.astype(dtype)
            back = made.astype(array.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what}: a value that is no tensor of {dtype.name}: {error}") from None
    # Floats are rounded to the type. All other elements must keep their values.
    if dtype.kind in "biu" and not np.array_equal(back, array):
        raise InputError(f"{what}: the value has {array.dtype.name} elements; need {dtype.name}")
    axes = signature.axes
    if not made.ndim and all(size == 1 or isinstance(size, str) for size in axes):
        made = made.reshape([1] * len(axes))
    return made
