"""One operator of nn while it is exported: what its points read and compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from xdsl.dialects.builtin import AnyFloat, i1
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import nn
from ...dialects.coordinates import coordinate_dtypes
from ...dialects.dtypes import dtype_named, element_type, numpy_dtype
from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.structured import Stage, Structure
from ...ir.geometry.space import AccessMap, AxisMap
from ..analysis.value_ranges import never_zero
from .functions import apply, cast_operands
from .loops import Compute, Counted, Export, Loops, Read
from .reads import Shown
from .terms import Algebra, Term, computing


def result_of(loops: Loops, new: Export) -> SSAValue:
    """The result of loops. If they would copy a tensor as it is, this is the tensor."""
    if loops.combiner is None and len(loops.reads) == 1 and loops.compute is same:
        (read,) = loops.reads
        if (
            isinstance(read, Shown)
            and read.loops == loops.results
            and read.element == loops.element
        ):
            return read.value
    return new.loops(loops)


def same(_: Algebra, given: Sequence[Term]) -> Term:
    """The first thing that a point reads."""
    return given[0]


@dataclass
class Operator:
    """One operator while it is converted.

    Attributes:
        sizes: the number of iterations of each loop of its space.
    """

    op: Operation
    structure: Structure
    new: Export
    sizes: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = self.structure.space.sizes

    @property
    def element(self) -> Attribute:
        """The element type of the first result."""
        return nn.element_of(self.op.results[0])

    def away(self, results: Sequence[int]) -> list[int]:
        """The loops of more than one iteration that are no axes of the results: they are merged."""
        return [d for d, n in enumerate(self.sizes) if n != 1 and d not in results]

    # What points read

    def reads(self) -> list[Read]:
        """What each place of the body reads: operands, and coordinates in between."""
        space = self.structure.space
        operands = [
            self.shown(value, access)
            for value, access in zip(self.op.operands, space.operands, strict=True)
        ]
        dtypes = [
            numpy_dtype(nn.element_of(each)) for each in (*self.op.operands, self.op.results[0])
        ]
        kinds = coordinate_dtypes(self.structure, dtypes)
        counted = [
            self.counted(each.access.axes[0], element_type(dtype), each.first)
            for each, dtype in zip(space.coordinates, kinds, strict=True)
        ]
        return self.structure.with_coordinates(cast("list[Read]", operands), counted)

    def shown(self, value: SSAValue, access: AccessMap) -> Shown:
        """An operand as the loops read it."""
        shape, element = nn.shape_of(value), nn.element_of(value)
        made = self.new.shown(self.new.values[value], shape, element, access, self.sizes)
        filled = any(axis.may_fill for axis in access.axes)
        return replace(made, never_zero=not filled and never_zero(value))

    def counted(self, axis: AxisMap, element: Attribute, first: int = 0) -> Counted:
        """The index of a point along an axis, counted from the first one."""
        terms = tuple((d, c) for d, c in axis.terms if self.sizes[d] != 1)
        return Counted(terms, axis.offset + first, element)

    def looped(
        self,
        reads: Sequence[Read],
        compute: Compute,
        results: tuple[int, ...],
        element: Attribute,
        combiner: str | None = None,
        begins: SSAValue | None = None,
    ) -> SSAValue:
        """The result of loops over the space, without the loops of one iteration."""
        loops = Loops(self.sizes, tuple(reads), compute, results, element, combiner, begins)
        return result_of(loops, self.new)

    # What points compute

    def function(self, to: Algebra, given: Sequence[Term], element: Attribute) -> Term:
        """The body's function, in the type that it is computed in.

        Args:
            element: of the sum, or of the result.
        """
        body = self.structure.body
        known = FUNCTIONS[body.function]
        if body.function == "bitcast":
            return to.bits(given[0], self.element)
        if known.stored and body.function == "identity":
            return given[0]
        truths, numbers = given[: known.values], given[known.values :]
        kinds = [each.element for each in numbers if each.element != i1]
        if not known.boolean and body.combiner is not None and not isinstance(element, AnyFloat):
            kinds = [element, *kinds] if kinds and element != i1 else kinds
        kind = computing(kinds[0]) if kinds else (numbers[0].element if numbers else element)
        numbers = cast_operands(to, body.function, numbers, kind)
        return apply(to, body.function, body.parameters, [*truths, *numbers])

    def whole(self, own: int) -> Compute:
        """The function and the stages of a body that merges nothing."""

        def compute(to: Algebra, given: Sequence[Term]) -> Term:
            first = self.function(to, given[:own], self.element)
            return self._stages(to, first, given[own:])

        body = self.structure.body
        if body.function == "identity" and not body.then and not self.structure.space.coordinates:
            operand = self.op.operands[0]
            if nn.element_of(operand) == self.element:
                return same
        return compute

    def staged(self, to: Algebra, given: Sequence[Term]) -> Term:
        """The stages of a body, after the value that they begin with."""
        return self._stages(to, given[0], given[1:])

    def _stages(self, to: Algebra, first: Term, further: Sequence[Term]) -> Term:
        """The chain of a body, and the cast to the result's type."""
        stages = self.structure.body.then
        if not stages:
            return to.cast(first, self.element)
        kind = self._chain_element(first, further)
        rest = list(further)
        values = [first if first.is_truth else to.cast(first, kind)]
        for i, stage in enumerate(stages):
            own, rest = rest[: stage.extras], rest[stage.extras :]
            given = stage.arguments(values, own)
            values.append(_stage(to, stage, given, kind, last=i == len(stages) - 1))
        return to.cast(values[-1], self.element)

    def _chain_element(self, first: Term, further: Sequence[Term]) -> Attribute:
        """The type that a chain computes in: that of a float, if there is one."""
        for each in (first, *further):
            if each.is_float:
                return computing(each.element)
        return self.element if self.element != i1 else first.element

    def over(self, value: SSAValue, results: tuple[int, ...], element: Attribute) -> Shown:
        """An earlier result, read along its loops."""
        shape = tuple(self.sizes[d] for d in results)
        axes = tuple(((d, 1),) for d in results)
        return Shown(value, shape, axes, (0,) * len(results), element)


def _stage(
    to: Algebra, stage: Stage, given: Sequence[Term], kind: Attribute, *, last: bool
) -> Term:
    """The value of a stage.

    Args:
        kind: the type that the chain computes in.
    """
    known = FUNCTIONS[stage.function]
    truths = [to.cast(each, i1) for each in given[: known.values]]
    numbers = list(given[known.values :])
    logical = stage.function.startswith("logical_")
    if stage.element:
        kept = element_type(dtype_named(stage.element))
        found = to.cast(numbers[0], kept)
        return found if last or kept == i1 else to.cast(found, kind)
    if logical:
        numbers = [to.cast(each, i1) for each in numbers]
    elif not (stage.function in ("identity", "select") and all(n.is_truth for n in numbers)):
        numbers = cast_operands(to, stage.function, numbers, kind)
    return apply(to, stage.function, stage.parameters, [*truths, *numbers])


def within(to: Algebra, place: Term, size: int) -> Term:
    """Whether an index lies on an axis."""
    above = to.compare("greater_equal", place, to.like(0, place))
    return to.primitive("and", above, to.compare("less", place, to.like(size, place)))
