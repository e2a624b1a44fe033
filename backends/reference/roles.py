"""The roles of dimensions in an evaluation, and the dtypes that it computes in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np

from ...dialects.along import Along
from ...dialects.scalar_functions import PRODUCTS
from ...dialects.structured import Body, Stage, Structure
from ...ir.geometry.space import AccessMap, Space
from ...ir.support.number_kinds import is_floating, is_unsigned, is_whole, whole_limits
from ..codelets.chain import chaining_dtype
from ..codelets.conversion import FLOAT32, compute_dtype
from ..codelets.scalar import ScalarFunction
from .gather import Array, Box, boxes, whole_box

BOX_ELEMENTS = 1 << 22
"""The most elements of an array that an evaluation makes at once: 32 MiB of float64."""


@dataclass(frozen=True)
class Roles:
    """The roles of dimensions in an evaluation, and the dtypes: everything but the arrays.

    Attributes:
        dtypes: of the function's operands.
        result_dtype: of the value before the chain.
        final_dtype: the dtype that the chain's last value is rounded to.
        terms_of_a_pass: how many values are merged between two roundings of a narrow sum.
        steps_of_a_rounding: the largest error of such a rounding, in steps of its type.
    """

    space: Space
    function: ScalarFunction
    parameters: tuple[float, ...]
    combiner: str | None
    dtypes: tuple[np.dtype[Any], ...]
    result_dtype: np.dtype[Any]
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    chain: tuple[Stage, ...] = ()
    final_dtype: np.dtype[Any] = FLOAT32
    along: Along | None = None
    updates: bool = False
    terms_of_a_pass: int = 1
    steps_of_a_rounding: float = 0.5

    @property
    def merged_by(self) -> str | None:
        """The combiner or scan that merges values; None if values are not merged."""
        return self.combiner if self.along is None else self.along.name

    @property
    def is_users(self) -> bool:
        """Whether a user's codelet computes the result."""
        return self.along is not None and self.along.signature is not None

    @cached_property
    def exact(self) -> bool:
        """Whether all operands that are numbers are integers or booleans."""
        return not any(map(is_floating, self.dtypes[self.function.values :]))

    @cached_property
    def computing(self) -> np.dtype[Any]:
        """The dtype that the machine computes the function in."""
        dtype = compute_dtype(*self.dtypes[self.function.values :])
        return dtype if is_floating(dtype) else np.dtype(np.float32)

    @cached_property
    def rounds_once(self) -> bool:
        """Whether computing already rounds to the result's dtype, so that no second rounding
        follows.
        """
        is_kept = self.combiner in (None, "max", "min", "pick", "last")
        return is_kept and self.result_dtype == self.computing

    @cached_property
    def bound_factor(self) -> float:
        """The factor of a bound that covers the reference's own rounding errors.

        These are like the machine's, with 2^-53 where the bound has 2^-24 or more.
        """
        return 2.0 if self.computing == np.float64 else 1 + 2.0**-20

    @cached_property
    def working(self) -> np.dtype[Any]:
        """The dtype that the reference computes in."""
        if not self.exact:
            return np.dtype(np.float64)
        if self.combiner is None:
            # Compute in the machine's dtype: a logarithm of integers is truncated at their limits,
            # which differ from those of wider integers.
            return compute_dtype(*self.dtypes[self.function.values :])
        unsigned = all(is_unsigned(d) or d.kind == "b" for d in self.dtypes)
        wide = np.dtype(np.uint64) in self.dtypes
        return np.dtype(np.uint64 if unsigned and wide else np.int64)

    @cached_property
    def read_as(self) -> tuple[np.dtype[Any], ...]:
        """The dtypes that operands are converted to; conditions keep theirs."""
        return tuple(
            dtype if dtype.kind == "b" and i < self.function.values else self.working
            for i, dtype in enumerate(self.dtypes)
        )

    @cached_property
    def viewed(self) -> tuple[tuple[int, ...], ...]:
        """The viewed shapes of all operands."""
        return tuple(access.shape for access in self.space.operands)

    @cached_property
    def is_contraction(self) -> bool:
        """Whether this is a sum of products, which matrix multiplication computes."""
        is_product = self.function.name in PRODUCTS and self.combiner == "sum"
        return is_product and not self.space.relations

    @cached_property
    def terms(self) -> int:
        """The most values that are merged into each result.

        For each index, one point of a dimension that must equal it counts.
        """
        at_an_index = {
            d
            for relation in self.space.relations
            for axis in (relation.axis,)
            if axis.divisor == 1 and axis.outside in ("none", "fill") and len(axis.terms) == 1
            for d, _ in axis.terms
        }
        counted = [d for d in self.reduced if d not in at_an_index]
        return prod(self.space.dims[d].size for d in counted) + self.updates

    @cached_property
    def whole(self) -> Box:
        """The box of all points."""
        return whole_box(self.space.sizes)

    @cached_property
    def points(self) -> int:
        """The number of points."""
        return self.space.points

    def boxes(self, region: Box) -> Iterable[Box]:
        """Boxes that cover a region's points and fit in memory; none if there are no points."""
        sizes = [end - begin for begin, end in region]
        if prod(sizes) <= BOX_ELEMENTS:
            return (region,) if self.points else ()
        found = boxes(sizes, self._groups(), BOX_ELEMENTS)
        starts = [begin for begin, _ in region]
        return (
            tuple((s + a, s + b) for s, (a, b) in zip(starts, box, strict=True)) for box in found
        )

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the accumulators: the sizes of the kept dimensions."""
        return tuple(self.space.dims[d].size for d in self.kept)

    @cached_property
    def start(self) -> Array:
        """The value that merging begins with, as an array without axes."""
        dtype: np.dtype[Any] = np.dtype(np.bool_) if self.function.boolean else self.working
        first: Any = 0
        if self.combiner in ("max", "min"):
            lowest = self.combiner == "max"
            if dtype.kind == "f":
                first = -np.inf if lowest else np.inf
            elif "b" in (dtype.kind, self.result_dtype.kind):
                first = not lowest
            else:
                # The identity in the result's dtype: merging nothing must give a value that it can
                # hold.
                held = whole_limits(self.result_dtype if is_whole(self.result_dtype) else dtype)
                first = held.min if lowest else held.max
        elif self.combiner == "prod":
            first = 1
        if dtype.kind == "b" and self.combiner in ("sum", "prod"):
            dtype = np.dtype(np.int64)
        return np.array(first, dtype)

    def _groups(self) -> list[list[int]]:
        """Groups of dimensions whose points must be held at once, the cheapest to cut first."""
        order = [*self.kept, *self.reduced]
        if not self.is_contraction:
            return [order]
        used = [access.dims() for access in self.space.operands]
        return [
            [d for d in order if d in used[0]],
            [d for d in order if d in used[1]],
            list(self.kept),
        ]

    def place(self, box: Box, region: Box | None = None) -> tuple[Any, ...]:
        """The place of a box in a region of the result; by default, in the whole result."""
        region = region or self.whole
        starts = {d: region[d][0] for d in self.kept}
        # The ellipsis keeps arrays of rank 0 arrays.
        return (*(slice(box[d][0] - starts[d], box[d][1] - starts[d]) for d in self.kept), ...)

    def in_result_order(self, array: Array, dims: Sequence[int]) -> Array:
        """An array with axes for some kept dimensions, expanded to all kept dimensions."""
        if tuple(dims) == self.kept:
            return array
        missing = [d for d in self.kept if d not in dims]
        array = array.reshape(array.shape + (1,) * len(missing))
        order = [*dims, *missing]
        return array.transpose([order.index(d) for d in self.kept])


@lru_cache(maxsize=4096)
def roles_of(
    structure: Structure,
    function: ScalarFunction,
    dtypes: tuple[np.dtype[Any], ...],
    result_dtype: np.dtype[Any],
) -> Roles:
    """The roles in a structure, for operands and a result of these dtypes.

    Raises ValueError if the operands do not fit the space, or the result is not covered.
    """
    space, body = structure.space, structure.body
    arity = structure.arity
    if len(dtypes) != len(space.operands) or len(dtypes) != arity:
        raise ValueError(
            f"{body.function}: {len(dtypes)} operands; the space has {len(space.operands)}, "
            f"the function, its relations and its chain take {arity}"
        )
    if len(space.results) != 1:
        raise ValueError(f"a structure with {len(space.results)} results; need 1")
    kept = _result_dims(space, space.results[0])
    reduced = tuple(d for d in range(len(space.dims)) if d not in kept)
    merges = body.combiner is not None or body.signature is not None
    if not merges and any(space.dims[d].size != 1 for d in reduced):
        names = ", ".join(space.dims[d].name for d in reduced)
        raise ValueError(f"{body.function}: nothing merges dimensions {names}")
    if body.then and body.chained_elements[-1] == "" and not is_floating(result_dtype):
        raise ValueError(f"{body.function}: a chain on elements of {result_dtype}; need floats")
    before = chaining_dtype(*dtypes, result_dtype) if body.then else result_dtype
    own = dtypes[: body.function_arity]
    return Roles(
        *(space, function, body.parameters, body.combiner, own, before, kept, reduced),
        chain=body.then,
        final_dtype=result_dtype,
        along=body.along,
        updates=body.updates,
        terms_of_a_pass=1 if body.narrow is None else body.narrow.terms,
        steps_of_a_rounding=_steps_of_a_rounding(body),
    )


def _steps_of_a_rounding(body: Body) -> float:
    """The largest error of a rounding of a narrow sum, in steps of its type.

    A sum that is rounded after each term may be rounded to either side, as random words say. One
    that is rounded less often says itself whether words round it.
    """
    any_side = body.narrow is None or body.narrow.terms == 1 or body.rounding_of_sums is not None
    return 1.0 if any_side else 0.5


def _result_dims(space: Space, result: AccessMap) -> tuple[int, ...]:
    """The dimensions of a result, in the order of its axes. Dimensions of one element need no
    axis."""
    kept: list[int] = []
    for i, axis in enumerate(result.axes):
        whole = axis.offset == 0 and axis.divisor == 1
        if not axis.terms and axis.size <= 1 and whole:
            continue
        if len(axis.terms) != 1 or axis.terms[0][1] != 1 or not whole:
            raise ValueError(f"result axis {i}: need one dimension, from its first element on")
        ((d, _),) = axis.terms
        if space.dims[d].size != axis.size or d in kept:
            raise ValueError(f"result axis {i}: dimension {space.dims[d].name} does not cover it")
        kept.append(d)
    return tuple(kept)
