"""The product with a matrix of integers of few bits, several of which share a byte."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    AnyFloat,
    IntegerType,
    Signedness,
    TensorType,
    f16,
    f32,
)
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from ...ir.geometry.space import AccessMap, AxisMap, Dim, Space
from ...ir.unmet import Unmet
from ..scalar_functions import PACKED
from ..structured import Body, Structure
from .base import INTEGER, axis_map, element_of, integer, shape_of, tensor
from .chain import CHAIN, ChainableOp
from .wanted import Wanted

BYTE = IntegerType(8, Signedness.UNSIGNED)
"""The element type of packed integers."""

PACKED_BITS = (2, 4, 8)
"""The widths of packed integers: a byte holds a whole number of them."""

BLOCKS = (8, 16, 32)
"""The terms of a block in random operations."""


@irdl_op_definition
class PackedMatMulOp(ChainableOp):
    """The product of [..., k] and the transpose of a packed matrix: [..., n].

    Example: %5 = nn.packed_matmul %x, %packed, %scales, %zeros, %shifts bits 4
    : (tensor<1x64xf16>, tensor<8x2x16xui8>, tensor<8x2xf16>, tensor<8x2xui8>, tensor<2xui8>)
    -> tensor<1x8xf16>

    Each row of the matrix consists of blocks, and each block has a scale and a zero point. An
    integer q of a block stands for (q - zero) * scale. Several integers share a byte, so cuts of
    the matrix fall between bytes. The codelet takes them apart as it multiplies: no tile holds the
    matrix as floats.

    Attributes:
        value: floats [..., k].
        packed: ui8 [n, blocks, bytes]. The blocks have k elements or more; those beyond k are not
            read.
        scales: floats [n, blocks], or of an axis of size 1 for one that all share.
        zeros: ui8, shaped like the scales.
        shifts: ui8 [elements of a byte]: the lowest bit of each. Element i of a block is in byte
            i / e, at shift i mod e, for e elements of a byte.
        bits: the width of an integer, 2, 4 or 8.
    """

    name = "nn.packed_matmul"
    value = operand_def(TensorType)
    packed = operand_def(TensorType)
    scales = operand_def(TensorType)
    zeros = operand_def(TensorType)
    shifts = operand_def(TensorType)
    bits = prop_def(INTEGER)
    assembly_format = "$value `,` $packed `,` $scales `,` $zeros `,` $shifts `bits` $bits" + CHAIN

    def __init__(
        self,
        value: SSAValue,
        packed: SSAValue,
        scales: SSAValue,
        zeros: SSAValue,
        shifts: SSAValue,
        bits: int,
    ):
        super().__init__([value, packed, scales, zeros, shifts], {"bits": integer(bits)})

    def infer(self) -> TensorType[Attribute]:
        """[..., n], of the element type of the value."""
        bits, element = self.bits.value.data, element_of(self.value)
        if bits not in PACKED_BITS:
            raise Unmet(f"bits {bits}; need {', '.join(map(str, PACKED_BITS))}", "bits")
        for name, given in (("value", self.value), ("scales", self.scales)):
            if not isinstance(element_of(given), AnyFloat):
                raise Unmet(f"{name} of {element_of(given)}; need floats", name)
        for name, given in (
            ("packed", self.packed),
            ("zeros", self.zeros),
            ("shifts", self.shifts),
        ):
            if element_of(given) != BYTE:
                raise Unmet(f"{name} of {element_of(given)}; need {BYTE}", name)
        value, packed = shape_of(self.value), shape_of(self.packed)
        if not value:
            raise Unmet("a value of rank 0; need one axis or more", "value")
        if len(packed) != 3:
            raise Unmet(f"packed of shape {list(packed)}; need [n, blocks, bytes]", "packed")
        if shape_of(self.shifts) != (8 // bits,):
            raise Unmet(
                f"shifts of shape {list(shape_of(self.shifts))}; need one for each of the "
                f"{8 // bits} elements of a byte",
                "shifts",
            )
        count, least = packed[1] * packed[2] * 8 // bits, value[-1]
        if not least <= count or (count and not least):
            raise Unmet(
                f"{count} packed elements in a row for a value of {least} terms; need as many or "
                "more, and a term",
                "packed",
            )
        for name, given in (("scales", self.scales), ("zeros", self.zeros)):
            shape = shape_of(given)
            if len(shape) != 2 or any(
                n not in (1, m) for n, m in zip(shape, packed[:2], strict=True)
            ):
                raise Unmet(
                    f"{name} of shape {list(shape)}; need {list(packed[:2])}, or 1 in place of a "
                    "size",
                    name,
                )
        return tensor((*value[:-1], packed[0]), element)

    @classmethod
    def sample(cls, wanted: Wanted) -> PackedMatMulOp:
        """A random product. A given operand is the value, if it is a tensor of floats."""
        random, first, elements = wanted.random, wanted.first, wanted.elements
        bits, size = random.choice(PACKED_BITS), random.choice(BLOCKS)
        if first is None:
            floats = [each for each in elements if isinstance(each, AnyFloat)] or [f32, f16]
            terms = random.choice([size, 2 * size, size + 3])
            batch = [random.choice([1, 2, 3]) for _ in range(random.choice([0, 1, 1, 2]))]
            first = tensor([*batch, terms], random.choice(floats))
        terms = shape_of(first)[-1] if shape_of(first) else 1
        n, blocks = random.choice([1, 3, 8]), -(-terms // size)
        shapes = [random.choice([(n, blocks), (n, 1), (1, 1)]) for _ in range(2)]
        args = Block(
            arg_types=[
                first,
                tensor([n, blocks, size * bits // 8], BYTE),
                tensor(shapes[0], random.choice([f32, first.element_type])),
                tensor(shapes[1], BYTE),
                tensor([8 // bits], BYTE),
            ]
        ).args
        return cls(*args, bits=bits)

    def core_structure(self) -> Structure:
        """The axes of the value but the last, and n; blocks, bytes and shifts are merged."""
        *batch, terms = shape_of(self.value)
        n, blocks, each = shape_of(self.packed)
        rank, (count,) = len(batch), shape_of(self.shifts)
        dims = (
            *(Dim(f"m{i}" if rank > 1 else "m", m) for i, m in enumerate(batch)),
            Dim("n", n),
            Dim("block", blocks, "reduction"),
            Dim("byte", each, "reduction"),
            Dim("shift", count, "reduction"),
        )
        row, block, byte, shift = range(rank, rank + 4)

        def plain(*at: int) -> tuple[AxisMap, ...]:
            return tuple(axis_map(dims[d].size, dims, [(d, 1)]) for d in at)

        def shared(value: SSAValue) -> AccessMap:
            """A map that is constant along axes of size 1."""
            sizes = zip((row, block), shape_of(value), strict=True)
            return AccessMap(
                tuple(axis_map(size, dims, [(d, 1)] if size > 1 else []) for d, size in sizes)
            )

        term = axis_map(
            terms, dims, [(block, each * count), (byte, count), (shift, 1)], outside="fill"
        )
        batch_axes = plain(*range(rank))
        operands = (
            AccessMap((*batch_axes, term)),
            AccessMap(plain(row, block, byte)),
            shared(self.scales),
            shared(self.zeros),
            AccessMap(plain(shift)),
        )
        results = (AccessMap((*batch_axes, *plain(row))),)
        body = Body(PACKED, "sum", (float(self.bits.value.data),))
        return Structure(Space(dims, operands, results), body)
