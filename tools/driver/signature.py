"""The inputs and outputs of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...ir.support.errors import InputError
from .arrays import Array, Tensor, as_array, check_kind

if TYPE_CHECKING:
    from ...dialects.host import ArgumentSize, LengthInput, ResultSize


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a program, in order.

    Attributes:
        sizes: the outputs whose size depends on values. Their shapes here are the largest ones. The
            results that hold these sizes are no outputs.
        lengths: the inputs that are numbers of elements.
        argument_sizes: the inputs of which a part may be padding. Their shapes here are the largest
            ones.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    sizes: tuple[ResultSize, ...] = ()
    lengths: tuple[LengthInput, ...] = ()
    argument_sizes: tuple[ArgumentSize, ...] = ()

    def trimmed(self, results: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, without padding, from all results of a run."""
        found = {tensor.name: results[tensor.name] for tensor in self.outputs}
        for each in self.sizes:
            count = int(results[each.size])
            found[each.result] = found[each.result][(*[slice(None)] * each.axis, slice(count))]
        return found

    def padded(self, given: Mapping[str, object]) -> dict[str, object]:
        """Inputs in their largest shapes, and the lengths that follow from the given shapes.

        Raises InputError for an array that does not fit, and for sizes that contradict each other
        or the bounds of a length.
        """
        found = dict(given)
        if not self.lengths:
            return found
        known = {tensor.name: tensor for tensor in self.inputs}
        names = {each.argument for each in self.argument_sizes} & found.keys()
        arrays = {name: as_array(found[name], known[name]) for name in names}
        for name, array in arrays.items():
            check_kind(array.shape, array.dtype, known[name])
        shapes = {name: array.shape for name, array in arrays.items()}
        for name, count in self._counts(shapes, found).items():
            found.setdefault(name, np.array(count, np.int32))
        for name, array in arrays.items():
            more = [(0, n - m) for n, m in zip(known[name].shape, array.shape, strict=True)]
            found[name] = np.pad(array, more) if array.shape != known[name].shape else array
        return found

    def _counts(
        self, shapes: Mapping[str, tuple[int, ...]], given: Mapping[str, object]
    ) -> dict[str, int]:
        """The lengths that follow from the shapes of inputs, and those that are given."""
        bounds = {each.name: each for each in self.lengths}
        counts: dict[str, int] = {}
        origins: dict[str, str] = {}
        for name in bounds:
            value = given.get(name)
            if value is not None and np.ndim(as_array(value, name)) == 0:
                counts[name], origins[name] = int(as_array(value, name)), "the run gives"
        known = {tensor.name: tensor for tensor in self.inputs}
        # What names one length comes first: a sum may follow from others.
        for each in sorted(self.argument_sizes, key=lambda each: len(each.lengths)):
            if each.argument not in shapes:
                continue
            size = shapes[each.argument][each.axis]
            missing = [name for name in each.lengths if name not in counts]
            what = f"input {known[each.argument]}: axis {each.axis} has {size} elements"
            if len(missing) > 1:
                raise InputError(
                    f"{what}, the sum of {' and '.join(missing)}; give one of them as an input"
                )
            if missing:
                (name,) = missing
                others = sum(counts[other] for other in each.lengths if other != name)
                count = size - each.offset - others
                low, high = bounds[name].least, bounds[name].most
                if not low <= count <= high:
                    raise InputError(f"{what}, so that {name} is {count}; need {low}..{high}")
                counts[name], origins[name] = count, what
                continue
            wanted = each.offset + sum(counts[name] for name in each.lengths)
            # An array in its largest shape holds its own padding.
            if size not in (wanted, known[each.argument].shape[each.axis]):
                told = "; ".join(f"{n} is {counts[n]}: {origins[n]}" for n in each.lengths)
                raise InputError(f"{what}; need {wanted}, because {told}")
        return counts

    def longest(self) -> dict[str, object]:
        """The largest value of each length."""
        return {each.name: np.array(each.most, np.int32) for each in self.lengths}

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether the program takes inputs of these names and shapes; lengths may be left out."""
        lengths = {each.name for each in self.lengths}
        wanted = {each.name for each in self.inputs}
        return wanted - lengths <= shapes.keys() <= wanted and all(
            each.takes(shapes[each.name]) for each in self.inputs if each.name in shapes
        )
