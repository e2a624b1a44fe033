"""Splits an nn.compute with several steps into operations that have gradients.

    nn.compute(%x, %b) body <identity sum then add, relu>

becomes a sum, an addition and a relu. A scan or a sort becomes the operation of its name. The
values in between are float32 where the result is narrower, as they are in a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import bf16, f16, f32, i1
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import nn
from ...dialects.dtypes import dtype_named, element_type
from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.structured import Body, Stage, Structure
from ...ir.edit import source_at
from ...ir.geometry.space import AccessMap, Dim, Position, Space
from ...ir.upstream import Builder
from ..decompose import replace_by_built

_NARROW = (f16, bf16)

Given = tuple[SSAValue, AccessMap] | Position
"""An operand of a function: a value with its access map, or a coordinate."""


def has_steps(op: Operation) -> bool:
    """Whether an operation has several steps: a function and a reduction, a chain, or a scan or
    sort.
    """
    if not isinstance(op, nn.ComputeOp):
        return False
    body = op.body.data
    return bool(body.then) or body.along is not None


def replace_by_steps(op: Operation) -> tuple[list[Operation], list[SSAValue]]:
    """Replace an nn.compute by its steps. Returns the steps, and the values of the results."""
    assert isinstance(op, nn.ComputeOp)
    source = source_at("compute step by step", replace_by_steps)
    return replace_by_built(op, lambda builder: [_Steps(op, builder).built()], source)


@dataclass
class _Steps:
    """The steps of an operation while they are built.

    Attributes:
        made: the value that the chain begins with, and the value of each stage so far, in the shape
            of the result's map.
    """

    op: nn.ComputeOp
    builder: Builder
    made: list[SSAValue] = field(default_factory=list[SSAValue])

    def built(self) -> SSAValue:
        """Build all steps. Returns the value of the result."""
        structure = self.op.structure()
        core = structure.unchained
        inputs = self.op.inputs[: len(core.space.operands)]
        begin = self._along if core.body.along is not None else self._begin
        self.made.append(begin(core, inputs))
        further = self._further(structure)
        for stage in structure.body.then:
            given, further = further[: stage.extras], further[stage.extras :]
            self.made.append(self._stage(stage, given))
        result = nn.element_of(self.op.result)
        element = result if structure.body.then else nn.element_of(self.made[0])
        return self._reshaped(self._cast(self.made[-1], element), nn.shape_of(self.op.result))

    @property
    def _element(self) -> Attribute:
        """The type that the chain computes in."""
        element, body = nn.element_of(self.op.result), self.op.body.data
        return f32 if body.then and not body.narrow and element in _NARROW else element

    def _begin(self, core: Structure, inputs: Sequence[SSAValue]) -> SSAValue:
        boolean = core.body.combiner is None and FUNCTIONS[core.body.function].boolean
        if self._element != nn.element_of(self.op.result):
            narrow = (nn.element_of(value) in _NARROW for value in inputs)
            inputs = [self._cast(v, f32) if n else v for v, n in zip(inputs, narrow, strict=True)]
        made = nn.ComputeOp(inputs, core, elements=[i1 if boolean else self._element])
        return self.builder.insert(made).result

    def _along(self, core: Structure, inputs: Sequence[SSAValue]) -> SSAValue:
        """The scan or sort along the whole dimension, as the nn operation of that name."""
        along, (result,) = core.body.along, core.space.results
        assert along is not None
        (whole,) = core.space.of_kind("whole")
        dims = tuple(Dim(dim.name, dim.size) for dim in core.space.dims)
        space = replace(core.space, dims=dims)
        spread = self.builder.insert(nn.ComputeOp(inputs, Structure(space, Body("identity"))))
        value, shape = spread.result, result.shape
        axes = [i for i, axis in enumerate(result.axes) if whole in (d for d, _ in axis.terms)]
        if not axes:
            # A dimension of one point may be missing from the result's axes.
            value = self._reshaped(value, (*shape, 1))
        axis = axes[0] if axes else len(shape)
        if along.name == "sort":
            made = nn.SortOp(value, axis, descending=along.reverse)
        elif along.sorts:
            made = nn.SortIndicesOp(value, axis, descending=along.reverse)
        else:
            made = nn.ScanOp(
                value, along.name, axis, exclusive=along.exclusive, reverse=along.reverse
            )
        return self._reshaped(self.builder.insert(made).results[0], shape)

    def _further(self, structure: Structure) -> list[Given]:
        """The further operands of the chain, in order, over the dimensions of the result."""
        index = {d: i for i, d in enumerate(structure.space.of_kind("parallel", "whole"))}
        own = structure.own_operands
        read = zip(self.op.inputs[own:], structure.space.operands[own:], strict=True)
        found: list[Given] = [(value, access.renamed(index)) for value, access in read]
        for each in structure.chain_coordinates(0):
            access = each.access.renamed(index)
            found.insert(each.operand, replace(each, access=access))
        return found

    def _stage(self, stage: Stage, further: Sequence[Given]) -> SSAValue:
        """The value of a stage."""
        space = self.op.space.data
        kept = space.of_kind("parallel", "whole")
        at = space.results[0].renamed({d: i for i, d in enumerate(kept)})
        earlier: list[Given] = [(value, at) for value in self.made]
        given = stage.arguments(earlier, further)
        if stage.element:
            (only,) = given
            assert not isinstance(only, Position)
            return self._cast(only[0], element_type(dtype_named(stage.element)))
        first = FUNCTIONS[stage.function].values
        read = [each for each in given if not isinstance(each, Position)]
        numbers = [value for value, _ in read[first:]]
        truths = bool(numbers) and all(nn.element_of(value) == i1 for value in numbers)
        kind = i1 if truths and not FUNCTIONS[stage.function].slopes else self._element
        cast = [
            (value if i < first else self._cast(value, kind), access)
            for i, (value, access) in enumerate(read)
        ]
        coordinates = tuple(
            replace(each, operand=i) for i, each in enumerate(given) if isinstance(each, Position)
        )
        dims = tuple(Dim(space.dims[d].name, space.dims[d].size) for d in kept)
        own = Space(dims, tuple(access for _, access in cast), (at,), (), coordinates)
        body = Body(stage.function, None, stage.parameters)
        made = nn.ComputeOp([value for value, _ in cast], Structure(own, body))
        return self.builder.insert(made).result

    def _cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        same = nn.element_of(value) == element
        return value if same else self.builder.insert(nn.CastOp(value, element)).result

    def _reshaped(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        same = nn.shape_of(value) == tuple(shape)
        return value if same else self.builder.insert(nn.ReshapeOp(value, shape)).result
