"""The inputs and outputs of a program."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ...ir.support.deferred import deferred
from .arrays import Array, Tensor, as_array, check_kind, input_array, seeded, with_texts

if TYPE_CHECKING:
    from ...dialects.block_inputs import BlockInput
    from ...dialects.host import ArgumentSize, KeptSize, LengthInput, ResultSize

with deferred(__name__):
    from ...dialects.block_inputs import encoded
    from .run_lengths import RunLengths


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a program, in order.

    Attributes:
        sizes: the outputs whose size depends on values. Their shapes here are the largest ones. The
            results that hold these sizes are no outputs.
        lengths: the inputs that are numbers of elements.
        argument_sizes: the inputs of which a part may be padding. Their shapes here are the largest
            ones.
        kept_sizes: the states of which a part may be padding.
        first_held: the elements of these states that exist before the first run, by the name of the
            state that holds the number.
        blocks: the inputs that are lists of blocks, which the program takes in buckets.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    sizes: tuple[ResultSize, ...] = ()
    lengths: tuple[LengthInput, ...] = ()
    argument_sizes: tuple[ArgumentSize, ...] = ()
    kept_sizes: tuple[KeptSize, ...] = ()
    first_held: Mapping[str, int] = field(default_factory=dict[str, int])
    blocks: tuple[BlockInput, ...] = ()

    def trimmed(self, results: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, without padding, from all results of a run."""
        found = {tensor.name: results[tensor.name] for tensor in self.outputs}
        for each in self.sizes:
            count = int(results[each.size])
            found[each.result] = found[each.result][(*[slice(None)] * each.axis, slice(count))]
        return found

    def told(self, outputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs as the host sees them: with strings for integers that stand for them."""
        return {each.name: with_texts(outputs[each.name], each) for each in self.outputs}

    def computed(self, outputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs as the program computes them: with integers for strings."""
        known = {tensor.name: tensor for tensor in self.outputs}
        return {name: input_array(array, known[name]) for name, array in outputs.items()}

    def encoded(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """The inputs that the program takes: lists of blocks are put into buckets.

        Raises InputError for a list of blocks that does not fit.

        Args:
            values: those that the host gives, which are checked.
        """
        return encoded(self.blocks, values, "inputs") if self.blocks else dict(values)

    def seeded_blocks(self, seed: int) -> dict[str, Array]:
        """Random blocks that fit, by the names of the inputs that are lists of them."""
        known = {tensor.name: tensor for tensor in self.inputs}
        found: dict[str, Array] = {}
        for each in self.blocks:
            values, *indices = each.names
            random = np.random.default_rng([seed, zlib.crc32(values.encode())])
            places = each.lists.sample(random)
            for name, index in zip(indices, places, strict=True):
                found[name] = index.astype(known[name].dtype)
            found |= seeded(
                [replace(known[values], shape=(len(places[0]), *known[values].shape[1:]))], seed
            )
        return found

    def padded(
        self, given: Mapping[str, object], held: Mapping[str, int] | None = None
    ) -> dict[str, object]:
        """Inputs in their largest shapes, and the lengths that follow from what is given.

        A length that neither the run gives nor a shape says is that of what states hold.

        Raises InputError for an array that does not fit, for sizes that contradict each other or
        the bounds of a length, and for a length that a state does not reach.

        Args:
            held: the elements of states that exist, by the name of the state that holds the number;
                None before the first run.
        """
        found = dict(given)
        if not self.lengths:
            return found
        known = {tensor.name: tensor for tensor in self.inputs}
        names = {each.argument for each in self.argument_sizes} & found.keys()
        arrays = {name: input_array(found[name], known[name]) for name in names}
        for name, array in arrays.items():
            check_kind(array.shape, array.dtype, known[name])
        for name, count in self._counts(found, held).items():
            if name not in found or type(found[name]) is int:
                found[name] = np.array(count, np.int32)
        for name, array in arrays.items():
            more = [(0, n - m) for n, m in zip(known[name].shape, array.shape, strict=True)]
            found[name] = np.pad(array, more) if array.shape != known[name].shape else array
        return found

    def _counts(
        self, given: Mapping[str, object], held: Mapping[str, int] | None
    ) -> dict[str, int]:
        """The lengths that are given, and those that follow from shapes and from states."""
        known = {tensor.name: tensor for tensor in self.inputs}
        found = RunLengths(self.lengths)
        for each in self.lengths:
            value = given.get(each.name)
            if value is not None and np.ndim(as_array(value, each.name)) == 0:
                found.give(each.name, int(as_array(value, each.name)))
        names = {each.argument for each in self.argument_sizes} & given.keys()
        shapes = {name: as_array(given[name], known[name]).shape for name in names}
        found.follow_shapes(self.argument_sizes, shapes, known)
        found.follow_states(self.kept_sizes, self.first_held if held is None else held)
        return found.counts

    def first_lengths(self) -> dict[str, object]:
        """The largest value of each length that a first run may have."""
        found = {each.name: each.most for each in self.lengths}
        least = {each.name: each.least for each in self.lengths}
        read = {name for each in self.kept_sizes for name in each.lengths}
        return {
            name: np.array(least[name] if name in read else most, np.int32)
            for name, most in found.items()
        }

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Whether the program takes inputs of these names and shapes; lengths may be left out."""
        lengths = {each.name for each in self.lengths}
        wanted = {each.name for each in self.inputs}
        return wanted - lengths <= shapes.keys() <= wanted and all(
            each.takes(shapes[each.name]) for each in self.inputs if each.name in shapes
        )

    def check_lengths(
        self, given: Mapping[str, object], held: Mapping[str, int] | None = None
    ) -> None:
        """Raise InputError if lengths of inputs that the program takes contradict their bounds.

        Args:
            given, held: the same as for padded.
        """
        self._counts(given, held)
