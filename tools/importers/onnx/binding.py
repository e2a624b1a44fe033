"""The sizes and values that a user gives to a model's inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from numpy.typing import ArrayLike

from ....ir.support.errors import InputError
from .declared import ANY
from .tensors import Array, tensor_dtype

AXIS_DIGITS = 4
"""The most digits of an axis in INPUT:AXIS. No tensor has more axes."""


def free_name(value: onnx.ValueInfoProto, axis: int) -> str:
    """The name of an axis without a size: its symbol, or a name from the input and the axis."""
    return value.type.tensor_type.shape.dim[axis].dim_param or f"{value.name}_{axis}"


def fixed_size(dimension: onnx.TensorShapeProto.Dimension) -> int | None:
    """The size of an axis; None if it is free. Exporters write -1 for a size that is free."""
    is_fixed = dimension.HasField("dim_value") and dimension.dim_value >= 0
    return dimension.dim_value if is_fixed else None


@dataclass
class Sizes:
    """The sizes of inputs' axes.

    Attributes:
        inputs: the model's inputs that are not weights.
        place: the model's name in messages.
        symbols: sizes by the names of free axes.
        axes: sizes of single axes, by input and axis; they take precedence over symbols.
        samples: sizes of the first axis, by input; they take precedence over all others.
    """

    inputs: Sequence[onnx.ValueInfoProto]
    place: str
    symbols: dict[str, int] = field(default_factory=dict[str, int])
    axes: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    samples: dict[str, int] = field(default_factory=dict[str, int])

    def bad(self, message: str) -> InputError:
        """An error in a size or value that the user gives."""
        return InputError(f"{self.place}: {message}")

    def names(self, value: onnx.ValueInfoProto) -> Iterator[tuple[int, str]]:
        """The free axes of an input, and their names."""
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if fixed_size(dimension) is None:
                yield axis, free_name(value, axis)

    def add_dims(self, dims: Mapping[str, int]) -> None:
        """Give sizes to dimensions, by symbol or by INPUT:AXIS. Raises InputError for others."""
        symbols = {name for value in self.inputs for _, name in self.names(value)}
        for name, size in dims.items():
            # Callers from Python may pass anything as sizes.
            if not isinstance(size, int) or isinstance(size, bool) or size < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise self.bad(f"--dim {name}={size}; need an integer, 0 or more")
            if name in symbols:
                self.symbols[name] = size
            elif not self._add_axis(name, size):
                listed = ", ".join(sorted(symbols)) or "none"
                raise self.bad(
                    f"--dim {name}={size}: no such dimension; the model has {listed}, and each "
                    "axis as INPUT:AXIS"
                )

    def _add_axis(self, name: str, size: int) -> bool:
        """Give a size to one axis of one input; returns False if the name is not of the form
        INPUT:AXIS.
        """
        whole, _, text = name.rpartition(":")
        value = next((each for each in self.inputs if each.name == whole), None)
        if value is None or not (text.isascii() and text.isdigit() and len(text) <= AXIS_DIGITS):
            return False
        axis, sizes = int(text), value.type.tensor_type.shape.dim
        if axis >= len(sizes):
            raise self.bad(f"--dim {name}={size}: input {whole!r} has {len(sizes)} axes, from 0 on")
        fixed = fixed_size(sizes[axis])
        if fixed not in (None, size):
            raise self.bad(
                f"--dim {name}={size}: axis {axis} of input {whole!r} has the size {fixed}"
            )
        self.axes[whole, axis] = size
        return True

    def add_value(self, value: onnx.ValueInfoProto, shape: tuple[int, ...]) -> None:
        """Give the free axes of an input the sizes of its value. Raises InputError for others."""
        dimensions = value.type.tensor_type.shape.dim
        what = f"the value of input {value.name!r} has shape {list(shape)}"
        if not value.type.tensor_type.HasField("shape"):
            return
        if len(dimensions) != len(shape):
            raise self.bad(f"{what}; the model declares {len(dimensions)} axes")
        for axis, (dimension, size) in enumerate(zip(dimensions, shape, strict=True)):
            wanted = self.size(value, axis)
            if wanted not in (None, size):
                raise self.bad(f"{what}; axis {axis} has the size {wanted}")
            if dimension.dim_param not in ("", ANY):
                self.symbols[dimension.dim_param] = size

    def size(self, value: onnx.ValueInfoProto, axis: int) -> int | None:
        """The size of an axis of an input; None if it has none yet."""
        if not axis and value.name in self.samples:
            return self.samples[value.name]
        fixed = fixed_size(value.type.tensor_type.shape.dim[axis])
        if fixed is not None:
            return fixed
        own = self.axes.get((value.name, axis))
        return self.symbols.get(free_name(value, axis)) if own is None else own

    def one_sample(self) -> None:
        """Give the first axis of the first input the size 1, if it has none."""
        first = next(iter(self.with_samples()), None)
        if first is not None and self.size(first, 0) is None:
            self.symbols[free_name(first, 0)] = 1

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
        if count < 1 or old < 1:
            raise self.bad(f"--batch {count} instead of {old}; need 1 or more")
        self.samples = {each.name: count for each in inputs if self.size(each, 0) == old}
        return old

    def with_samples(self) -> list[onnx.ValueInfoProto]:
        """The inputs that have axes."""
        return [each for each in self.inputs if len(each.type.tensor_type.shape.dim)]

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
        every = dict.fromkeys(name for symbols in missing.values() for name in symbols)
        options = " ".join(f"--dim {name}=1" for name in every)
        raise self.bad(
            f"input {first!r}: dimension {missing[first][0]!r} has no size; add {options}"
        )


def bound_value(value: onnx.ValueInfoProto, given: ArrayLike, place: str) -> Array:
    """The array that a user gives as the value of an input, with the input's element type.

    A number may stand for a tensor of one element. Raises InputError for elements that the type
    does not have.
    """
    what = f"{place}: input {value.name!r}"
    if value.type.WhichOneof("value") != "tensor_type":
        raise InputError(f"{what} is no tensor, so it cannot be given a value")
    type_ = value.type.tensor_type
    dtype = tensor_dtype(type_.elem_type, what)
    try:
        array = np.asarray(given)
        with np.errstate(all="ignore"):
            cast = array.astype(dtype)
            back = cast.astype(array.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what}: a value that is no tensor of {dtype.name}: {error}") from None
    # Floats are rounded to the type. All other elements must keep their values.
    if dtype.kind in "biu" and not np.array_equal(back, array):
        raise InputError(f"{what}: the value has {array.dtype.name} elements; need {dtype.name}")
    sizes = [fixed_size(each) for each in type_.shape.dim]
    if not cast.ndim and all(size in (None, 1) for size in sizes):
        cast = cast.reshape([1] * len(sizes))
    return cast
