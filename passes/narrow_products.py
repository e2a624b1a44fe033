"""Multiply 8-bit floats instead of wider ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import DenseArrayBase, Float16Type, Float32Type, IntegerType, f16, f32
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ..dialects import nn
from ..dialects.dtypes import QUARTERS
from ..dialects.levels import NN
from ..dialects.settable import changing_states
from ..dialects.structured import Reinterpretation
from ..ir.edit import Edit, source_at
from ..ir.node_names import no_such_operator, operations_matching, operations_named
from ..ir.phases import BACKWARD, Phases
from ..ir.provenance import at, locate, place
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass, Rewriter, isa
from ..ir.xdsl.walk import operations
from .decompose import replace_by_parts

SCALES_OF_OPERANDS = "scales"
"""The attribute of a product with the exponent of the scale of each operand, as calibration decides
it. This pass removes it."""

ELEMENTS: dict[str, Attribute] = dict(zip(("f143", "f152"), QUARTERS, strict=True))
"""The 8-bit floats by the names of their formats."""

Format = Literal["f143", "f152"]

Exponents = tuple[int | None, ...]
"""An exponent for each operand of a product; None for what the pass decides."""


@dataclass(frozen=True)
class NarrowProducts(ModulePass):
    """Multiply 8-bit floats instead of wider ones. nn -> nn, each rounding a cast.

    The operands of each convolution and matrix product are divided by a power of two, limited to
    the range of an 8-bit float, and cast to it. The product has the sum of both
    exponents as its scale. Its result is f16, cast to what it was. Everything else stays as it is.
    Only targets that have units for 8-bit floats compute such products.

    The exponent of a scale is, in this order: that of the product's attribute `scales`, one number
    for each operand, which the pass removes; that of the option `scales`, which calibration writes;
    for a weight or a constant, the smallest that keeps its largest value, and one more if a step of
    training changes it; else 0.

        %0 = nn.matmul %x, %w {scales = array<i64: -3, -6>} : (tensor<4x8xf32>, ...)
            -> tensor<4x2xf32>

        %0 = nn.scale %x by 8.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
        %1 = nn.clip %0 to -240.0, 240.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
        %2 = nn.cast %1 : (tensor<4x8xf32>) -> tensor<4x8xf8E4M3FNUZ>
        ...
        %6 = nn.matmul %2, %5 scale -9 : (tensor<4x8xf8E4M3FNUZ>, ...) -> tensor<4x2xf16>
        %7 = nn.cast %6 : (tensor<4x2xf16>) -> tensor<4x2xf32>

    Attributes:
        forward: the format of weights and activations.
        gradients: the format of what the backward phase computes.
        keep: names of framework nodes, or patterns with *, whose products stay as they are.
        scales: exponents of scales of products of the forward phase, as EXPONENT/EXPONENT:NAME with
            the name of a framework node, or a pattern. An exponent for each operand, or * for what
            the pass decides. The first choice that fits a product counts.
    """

    name = "narrow-products"
    takes = NN
    rounds = True
    skips_other_levels = True

    forward: Format = "f143"
    gradients: Format = "f152"
    keep: tuple[str, ...] = ()
    scales: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module. Raises InputError for a name that matches no product, for a wrong
        option, and for weights that no scale fits."""
        split_gemms(op)
        kept = self._kept(op)
        narrowing = _Narrowing(
            op, ELEMENTS[self.forward], ELEMENTS[self.gradients], self._chosen(op)
        )
        for each in operations(op):
            if isinstance(each, nn.ContractionOp) and each not in kept and may_rewrite():
                narrowing.narrow(each)

    def _kept(self, module: ModuleOp) -> frozenset[Operation]:
        return frozenset(op for name in self.keep for op in self._products(module, "keep", name))

    def _chosen(self, module: ModuleOp) -> dict[Operation, Exponents]:
        """The exponents of the option `scales`, by product of the forward phase."""
        found: dict[Operation, Exponents] = {}
        phases = Phases.of(module)
        for text in self.scales:
            exponents, name = read_scales(text)
            for op in self._products(module, "scales", name):
                if phases.phase(op) == BACKWARD:
                    continue
                if len(exponents) != len(op.operands):
                    count = len(op.operands)
                    raise InputError(
                        f"pass '{self.name}': option 'scales': {text}: {len(exponents)} exponents "
                        f"for {op.name} at {place(op)}; need {count}"
                    )
                _ = found.setdefault(op, exponents)
        return found

    def _products(self, module: ModuleOp, option: str, name: str) -> list[Operation]:
        """The products that have a name or match it. Raises InputError if there are none."""
        every = operations(module)
        products = [each for each in every if isinstance(each, nn.ContractionOp)]
        own = operations_named(name, products) or operations_matching(name, products)
        if not own:
            why = no_such_operator(name, products, every, "is no product")
            raise InputError(f"pass '{self.name}': option '{option}': {name}: {why}")
        return own


def split_gemms(module: ModuleOp) -> None:
    """Replace each product that adds a bias by a product and what follows it."""
    for each in [each for each in module.walk() if isinstance(each, nn.GemmOp)]:
        if may_rewrite():
            _ = replace_by_parts(each)


def read_scales(text: str) -> tuple[Exponents, str]:
    """The exponents and the name in EXPONENT/EXPONENT:NAME. Raises InputError."""
    numbers, colon, name = text.partition(":")
    words = numbers.split("/")
    if not (colon and name and all(re.fullmatch(r"-?[0-9]{1,3}|\*", each) for each in words)):
        raise InputError(
            f"pass '{NarrowProducts.name}': option 'scales': {text}; need EXPONENT/EXPONENT:NAME, "
            "as in -3/*:conv1"
        )
    return tuple(None if each == "*" else int(each) for each in words), name


def write_scales(exponents: Exponents, name: str) -> str:
    """The text that read_scales reads."""
    return "/".join("*" if each is None else str(each) for each in exponents) + f":{name}"


@dataclass
class _Narrowing:
    """The 8-bit floats made so far in a module.

    Attributes:
        chosen: the exponents that the pass was given, by product.
        made: by value, type and exponent.
    """

    module: ModuleOp
    forward: Attribute
    gradients: Attribute
    chosen: Mapping[Operation, Exponents]
    made: dict[tuple[SSAValue, Attribute, int], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Attribute, int], SSAValue]
    )

    def __post_init__(self) -> None:
        self.phases = Phases.of(self.module)
        self.changing = changing_states(self.module)
        ops = self.module.body.block.ops
        self.states = {op.sym_name.data: op for op in ops if isinstance(op, nn.StateOp)}

    def narrow(self, op: nn.ContractionOp) -> None:
        """Let a product multiply 8-bit floats, if it multiplies floats of 16 or 32 bits."""
        result = nn.element_of(op.result)
        types = [nn.element_of(value) for value in op.operands]
        if not all(isinstance(each, Float16Type | Float32Type) for each in (*types, result)):
            return
        with Edit(source_at(f"narrow {op.name}", NarrowProducts.apply), op) as edit:
            scales = [self._scale(op, i) for i in range(len(op.operands))]
            for i, value in enumerate(op.operands):
                edit.set_operand(op, i, self._quarter(op, value, scales[i], edit))
            op.attributes.pop(SCALES_OF_OPERANDS, None)
            op.properties.pop("narrow_partials", None)
            if sum(scales):
                op.properties["scale"] = nn.integer(sum(scales))
            self._retype(op, result, edit)
            edit.modified(op)

    def _retype(self, op: nn.ContractionOp, result: Attribute, edit: Edit) -> None:
        """Make the result f16, and cast it for its readers."""
        if result == f16:
            return
        shape = nn.shape_of(op.result)
        half = Rewriter.replace_value_with_new_type(op.result, nn.tensor(shape, f16))
        readers = list(half.uses)
        wide = nn.CastOp(half, result)
        locate(wide, at(op, "widen"))
        edit.insert(wide, InsertPoint.after(op))
        for use in readers:
            edit.set_operand(use.operation, use.index, wide.result)

    def _element(self, value: SSAValue) -> Attribute:
        maker = value.owner
        is_gradient = isinstance(maker, Operation) and self.phases.phase(maker) == BACKWARD
        return self.gradients if is_gradient else self.forward

    def _scale(self, op: nn.ContractionOp, operand: int) -> int:
        """The exponent of the scale of an operand."""
        value, given = op.operands[operand], op.attributes.get(SCALES_OF_OPERANDS)
        if given is not None:
            return _given(op, given, operand)
        exponents = self.chosen.get(op)
        if exponents is not None and (exponent := exponents[operand]) is not None:
            return exponent
        source = source_of(value)
        if isinstance(source, nn.ConstantOp):
            return _least(source.value.array, self._element(value), op)
        if isinstance(source, nn.LoadOp) and source.state.string_value() in self.states:
            name = source.state.string_value()
            array = self.states[name].value.array
            return _least(array, self._element(value), op) + (name in self.changing)
        return 0

    def _quarter(self, op: Operation, value: SSAValue, scale: int, edit: Edit) -> SSAValue:
        """A value as 8-bit floats. They follow its definition, so every reader may read them."""
        element, value = self._element(value), _before_halving(value)
        key = value, element, scale
        if key not in self.made:
            try:
                ops = nn.quartered(value, element, scale)
            except ValueError as error:
                raise InputError(f"{op.name} at {place(op)}: {error}") from None
            if isinstance(value, OpResult):
                point = InsertPoint.after(value.op)
            else:
                assert isinstance(value.owner, Block)
                point = InsertPoint.at_start(value.owner)
            maker = value.op if isinstance(value, OpResult) else op
            for each in ops:
                locate(each, at(maker, "narrow"))
                edit.insert(each, point)
                point = InsertPoint.after(each)
            self.made[key] = ops[-1].results[0]
        return self.made[key]


def _before_halving(value: SSAValue) -> SSAValue:
    """The float32 value that a value is a cast of, so that it is rounded once; else the value."""
    op = value.owner
    if not isinstance(op, nn.CastOp) or nn.element_of(value) != f16:
        return value
    return op.operand if nn.element_of(op.operand) == f32 else value


def source_of(value: SSAValue) -> Operation | None:
    """The operation that a value's elements come from, through casts and moves of all elements."""
    op = value.owner
    while isinstance(op, nn.CastOp | nn.TransposeOp | Reinterpretation):
        op = op.operands[0].owner
    return op if isinstance(op, Operation) else None


def _least(array: NDArray[Any], element: Attribute, op: Operation) -> int:
    """The least scale of a weight. Raises InputError for NaN, and if no scale fits."""
    largest = float(np.abs(array.astype(np.float64)).max(initial=0.0))
    try:
        return nn.least_scale(largest, element)
    except ValueError as error:
        raise InputError(f"{op.name} at {place(op)}: weights: {error}") from None


def _given(op: nn.ContractionOp, given: Attribute, operand: int) -> int:
    count = len(op.operands)
    numbers = given.get_values() if isa(given, DenseArrayBase[IntegerType]) else ()
    if len(numbers) != count:
        raise InputError(
            f"{op.name} at {place(op)}: {SCALES_OF_OPERANDS} {given}; need {count} exponents, as "
            "in array<i64: -3, -6>"
        )
    return numbers[operand]
