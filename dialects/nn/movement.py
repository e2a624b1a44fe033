"""Operations that compute nothing: they move elements, or give them another shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from random import Random

from xdsl.dialects.builtin import StringAttr, TensorType, f32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, var_operand_def

from ...ir.geometry.space import AccessMap, Dim, Outside, Space
from ...ir.unmet import need_one_of
from ...ir.upstream import VerifyException
from ..structured import Body, Movement, Reinterpretation, Structure, Structured
from .base import (
    INTEGER,
    INTEGERS,
    NUMBER,
    PureTensorOp,
    Shape,
    axis_map,
    broadcast,
    element_of,
    integer,
    integers,
    need_at_least,
    need_length,
    normal_axis,
    number,
    same_element,
    shape_of,
    tensor,
    values_of,
)
from .elementwise import broadcast_space
from .wanted import Wanted


def dims_of_axes(shape: Shape) -> tuple[Dim, ...]:
    """One dimension for each axis of a tensor."""
    return tuple(Dim(f"d{i}", n) for i, n in enumerate(shape))


def onto_axes(shape: Shape) -> AccessMap:
    """The map of a result that has these dimensions as its axes."""
    dims = dims_of_axes(shape)
    return AccessMap(tuple(axis_map(n, dims, [(i, 1)]) for i, n in enumerate(shape)))


@irdl_op_definition
class TransposeOp(PureTensorOp, Movement):
    """Reorder axes: axis i of the result is axis permutation[i] of the operand.

    Example: %1 = nn.transpose %0 [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>

    Attributes:
        operand: of any shape.
        permutation: each of its axes once.
    """

    name = "nn.transpose"
    operand = operand_def(TensorType)
    permutation = prop_def(INTEGERS)
    assembly_format = "$operand $permutation attr-dict `:` functional-type(operands, results)"

    def __init__(self, operand: SSAValue, permutation: Sequence[int]):
        super().__init__([operand], {"permutation": integers(permutation)})

    def infer(self) -> TensorType[Attribute]:
        """The operand's sizes, reordered."""
        shape, order = shape_of(self.operand), values_of(self.permutation)
        if sorted(order) != list(range(len(shape))):
            raise VerifyException(
                f"permutation {list(order)}; need each of 0..{len(shape) - 1} once"
            )
        return tensor([shape[i] for i in order], element_of(self.operand))

    def moves(self) -> tuple[Space, ...]:
        """One dimension per result axis."""
        shape, order = shape_of(self.operand), values_of(self.permutation)
        dims = dims_of_axes(shape_of(self.result))
        source = tuple(axis_map(n, dims, [(order.index(i), 1)]) for i, n in enumerate(shape))
        return (Space(dims, (AccessMap(source),), (onto_axes(shape_of(self.result)),)),)


@irdl_op_definition
class ConcatOp(PureTensorOp, Movement):
    """Put tensors next to each other along an axis.

    Example: %2 = nn.concat %0, %1 axis 1 : (tensor<1x2xf32>, tensor<1x3xf32>) -> tensor<1x5xf32>

    Attributes:
        parts: one tensor or more, of equal sizes except along the axis.
        axis: counted from 0.
    """

    name = "nn.concat"
    parts = var_operand_def(TensorType)
    axis = prop_def(INTEGER)
    assembly_format = "$parts `axis` $axis attr-dict `:` functional-type(operands, results)"

    def __init__(self, parts: Sequence[SSAValue], axis: int):
        rank = len(shape_of(parts[0])) if parts else 0
        super().__init__([parts], {"axis": integer(normal_axis(axis, rank))})

    @property
    def along(self) -> int:
        """The axis."""
        return self.axis.value.data

    def infer(self) -> TensorType[Attribute]:
        """The sizes of the parts; along the axis, their sum."""
        shapes = [shape_of(v) for v in self.parts]
        if not shapes:
            raise VerifyException("concat of no tensors; need one or more")
        axis = self.along
        if not 0 <= axis < len(shapes[0]):
            raise VerifyException(f"axis {axis} of rank {len(shapes[0])}")
        for i, shape in enumerate(shapes):
            if len(shape) != len(shapes[0]) or any(
                a != b for j, (a, b) in enumerate(zip(shape, shapes[0], strict=True)) if j != axis
            ):
                raise VerifyException(
                    f"part {i} has shape {list(shape)}, part 0 {list(shapes[0])}; "
                    f"need equal sizes but for axis {axis}"
                )
        total = list(shapes[0])
        total[axis] = sum(s[axis] for s in shapes)
        return tensor(total, same_element(*self.parts))

    def moves(self) -> tuple[Space, ...]:
        """One space per part: its own axes, with an offset in the result."""
        result, axis = shape_of(self.result), self.along
        moves: list[Space] = []
        start = 0
        for part in self.parts:
            shape = shape_of(part)
            dims = dims_of_axes(shape)
            target = tuple(
                axis_map(n, dims, [(i, 1)], start if i == axis else 0) for i, n in enumerate(result)
            )
            moves.append(Space(dims, (onto_axes(shape),), (AccessMap(target),)))
            start += shape[axis]
        return tuple(moves)


ONE_AXIS = 0.6
"""How often a random slice cuts one axis and keeps the others whole."""


def _some(random: Random, n: int) -> tuple[int, int, int]:
    """A random selection along an axis of n elements: the first element, the step and the
    number."""
    step = random.choice((1, 1, 2, 3, -1, -2))
    count = random.randint(0, -(-n // abs(step)))
    room = n - (count - 1) * abs(step) - 1 if count else n - 1
    low = random.randint(0, max(room, 0))
    return (low if step > 0 else low + max(count - 1, 0) * -step), step, count


CUTS: tuple[Callable[[Random, int], tuple[int, int, int]], ...] = (
    lambda _, n: (0, 1, n),
    lambda _, n: (max(n - 1, 0), -1, n),
    lambda _, n: (max(n - 1, 0), 1, min(n, 1)),
    lambda _, n: (0, 1, min(n, 1)),
    lambda random, n: (0, 1, random.randint(0, n)),
    lambda random, n: (k := random.randint(0, max(n - 1, 0)), 1, n - k),
    lambda _, n: (0, 2, -(-n // 2)),
    _some,
    _some,
)
"""Ways to cut an axis of n elements: all of it, backwards, the last element, the first one, a
beginning, an end, every other element, anything."""


@irdl_op_definition
class SliceOp(PureTensorOp, Movement):
    """Every step-th element from a start, on each axis; steps may be negative.

    The three lists have one entry per axis.

    Example: %1 = nn.slice %0 from [0, 7] step [1, -2] size [4, 3] : (tensor<4x8xf32>)
    -> tensor<4x3xf32>

    Attributes:
        operand: of any shape.
        starts: the first element, counted from 0.
        steps: from one element to the next, not 0.
        sizes: how many elements, 0 or more; all must lie in the operand.
    """

    name = "nn.slice"
    operand = operand_def(TensorType)
    starts = prop_def(INTEGERS)
    steps = prop_def(INTEGERS)
    sizes = prop_def(INTEGERS)
    assembly_format = (
        "$operand `from` $starts `step` $steps `size` $sizes"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self, operand: SSAValue, starts: Sequence[int], steps: Sequence[int], sizes: Sequence[int]
    ):
        super().__init__(
            [operand],
            {"starts": integers(starts), "steps": integers(steps), "sizes": integers(sizes)},
        )

    def infer(self) -> TensorType[Attribute]:
        """The sizes given; all elements lie in the operand."""
        shape = shape_of(self.operand)
        starts, steps, sizes = values_of(self.starts), values_of(self.steps), values_of(self.sizes)
        for what, values in (("starts", starts), ("steps", steps), ("sizes", sizes)):
            need_length(what, values, len(shape))
        need_at_least("sizes", sizes, 0)
        for i, (n, start, step, size) in enumerate(zip(shape, starts, steps, sizes, strict=True)):
            if step == 0:
                raise VerifyException(f"axis {i}: step 0; need any other")
            last = start + step * (size - 1)
            if size and not (0 <= start < n and 0 <= last < n):
                raise VerifyException(
                    f"axis {i}: elements {start} to {last} of {n}; need 0..{n - 1}"
                )
        return tensor(sizes, element_of(self.operand))

    @classmethod
    def sample(cls, wanted: Wanted) -> SliceOp:
        """A random slice. Often only one axis is cut, as rewrites look for it."""
        random, first = wanted.random, wanted.first
        if first is None:
            rank = random.choice((0, 1, 1, 2, 2, 3))
            shape = [random.choice(wanted.sizes or (1, 2, 3, 5)) for _ in range(rank)]
            first = tensor(shape, random.choice(wanted.elements or (f32,)))
        shape = first.get_shape()
        only = random.randrange(len(shape)) if shape and random.random() < ONE_AXIS else None
        cuts = [
            (0, 1, n) if only not in (None, i) else random.choice(CUTS)(random, n)
            for i, n in enumerate(shape)
        ]
        starts, steps, counts = zip(*cuts, strict=True) if cuts else ((), (), ())
        return cls(Block(arg_types=[first]).args[0], starts, steps, counts)

    def moves(self) -> tuple[Space, ...]:
        """One dimension per result axis."""
        dims = dims_of_axes(shape_of(self.result))
        source = tuple(
            axis_map(n, dims, [(i, step)], start)
            for i, (n, start, step) in enumerate(
                zip(
                    shape_of(self.operand),
                    values_of(self.starts),
                    values_of(self.steps),
                    strict=True,
                )
            )
        )
        return (Space(dims, (AccessMap(source),), (onto_axes(shape_of(self.result)),)),)


MOST_NUMERATORS = (1 << 31) - 1
"""Over how many numerators a resampling may reach along an axis. The host spreads the axis over
all of them."""


@irdl_op_definition
class ResampleOp(PureTensorOp, Movement):
    """The element floor((start + step * i) / divisor) of each axis, or the nearest there is.

    This repeats or leaves out elements as images do that are made larger or smaller. The three
    lists have one entry per axis.

    Example: %1 = nn.resample %0 from [0, 1] step [1, 2] over [1, 3] size [4, 12]
    : (tensor<4x8xf32>) -> tensor<4x12xf32>

    Attributes:
        operand: of any shape.
        starts: the numerator of the first element.
        steps: from one numerator to the next.
        divisors: what the numerators are divided by, 1 or more.
        sizes: how many elements, 0 or more.
    """

    name = "nn.resample"
    operand = operand_def(TensorType)
    starts = prop_def(INTEGERS)
    steps = prop_def(INTEGERS)
    divisors = prop_def(INTEGERS)
    sizes = prop_def(INTEGERS)
    assembly_format = (
        "$operand `from` $starts `step` $steps `over` $divisors `size` $sizes"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        operand: SSAValue,
        starts: Sequence[int],
        steps: Sequence[int],
        divisors: Sequence[int],
        sizes: Sequence[int],
    ):
        super().__init__(
            [operand],
            {
                "starts": integers(starts),
                "steps": integers(steps),
                "divisors": integers(divisors),
                "sizes": integers(sizes),
            },
        )

    @property
    def lists(self) -> tuple[Shape, Shape, Shape]:
        """Starts, steps and divisors."""
        return values_of(self.starts), values_of(self.steps), values_of(self.divisors)

    def infer(self) -> TensorType[Attribute]:
        """The sizes given."""
        shape, sizes = shape_of(self.operand), values_of(self.sizes)
        for what, values in zip(("starts", "steps", "divisors"), self.lists, strict=True):
            need_length(what, values, len(shape))
        need_length("sizes", sizes, len(shape))
        need_at_least("divisors", values_of(self.divisors), 1)
        need_at_least("sizes", sizes, 0)
        for i, (n, size) in enumerate(zip(shape, sizes, strict=True)):
            if n == 0 and size:
                raise VerifyException(f"axis {i}: has no element to repeat; need size 0")
        for i, (step, size) in enumerate(zip(values_of(self.steps), sizes, strict=True)):
            reached = abs(step) * max(size - 1, 0)
            if reached > MOST_NUMERATORS:
                raise VerifyException(
                    f"axis {i}: {size} elements in steps of {step} reach over {reached:,} "
                    f"numerators; need at most {MOST_NUMERATORS:,}"
                )
        return tensor(sizes, element_of(self.operand))

    def moves(self) -> tuple[Space, ...]:
        """One dimension per result axis."""
        dims = dims_of_axes(shape_of(self.result))
        lists = zip(shape_of(self.operand), *self.lists, strict=True)
        source = tuple(
            axis_map(n, dims, [(i, step)] if step else [], start, divisor=over, outside="edge")
            for i, (n, start, step, over) in enumerate(lists)
        )
        return (Space(dims, (AccessMap(source),), (onto_axes(shape_of(self.result)),)),)


PAD_MODES: dict[str, Outside] = {
    "constant": "fill",
    "edge": "edge",
    "reflect": "reflect",
    "wrap": "wrap",
}
"""The modes of padding, each with the name of its rule in access maps."""


@irdl_op_definition
class PadOp(PureTensorOp, Movement):
    """Add elements at the ends of axes. Negative numbers drop elements.

    Example: %1 = nn.pad "constant" %0 low [0, 1] high [0, 1] value 0.0 : (tensor<4x8xf32>)
    -> tensor<4x10xf32>

    Attributes:
        operand: of any shape.
        mode: what the new elements are: constant; edge, the nearest element; reflect, the elements
            mirrored at the edge, which is not repeated; wrap, the elements from the other end on.
        low: elements to add before the first, one number per axis.
        high: elements to add after the last, one number per axis.
        value: the new elements in mode constant.
    """

    name = "nn.pad"
    operand = operand_def(TensorType)
    mode = prop_def(StringAttr)
    low = prop_def(INTEGERS)
    high = prop_def(INTEGERS)
    value = prop_def(NUMBER)
    assembly_format = (
        "$mode $operand `low` $low `high` $high `value` custom<Number>($value)"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        operand: SSAValue,
        low: Sequence[int],
        high: Sequence[int],
        *,
        mode: str = "constant",
        value: float = 0.0,
    ):
        super().__init__(
            [operand],
            {
                "mode": StringAttr(mode),
                "low": integers(low),
                "high": integers(high),
                "value": number(value),
            },
        )

    @property
    def result_numbers(self) -> tuple[str, ...]:
        """The new elements."""
        return ("value",)

    def infer(self) -> TensorType[Attribute]:
        """The operand's sizes plus the padding."""
        shape, low, high = shape_of(self.operand), values_of(self.low), values_of(self.high)
        need_length("low", low, len(shape))
        need_length("high", high, len(shape))
        mode = self.mode.data
        need_one_of("mode", mode, PAD_MODES)
        sizes = [n + lo + hi for n, lo, hi in zip(shape, low, high, strict=True)]
        need_at_least("padded sizes", sizes, 0)
        for i, (n, size) in enumerate(zip(shape, sizes, strict=True)):
            if n == 0 and size and mode != "constant":
                raise VerifyException(f"axis {i}: has no element to repeat; use mode 'constant'")
        return tensor(sizes, element_of(self.operand))

    def moves(self) -> tuple[Space, ...]:
        """One dimension per result axis; the operand's map has a rule for the padding."""
        outside = PAD_MODES[self.mode.data]
        dims = dims_of_axes(shape_of(self.result))
        source = tuple(
            axis_map(n, dims, [(i, 1)], -lo, outside=outside)
            for i, (n, lo) in enumerate(
                zip(shape_of(self.operand), values_of(self.low), strict=True)
            )
        )
        fills = any(axis.may_fill for axis in source)
        fill = self.value.value.data if fills else 0.0
        return (Space(dims, (AccessMap(source, fill),), (onto_axes(shape_of(self.result)),)),)


@irdl_op_definition
class ExpandOp(PureTensorOp, Structured):
    """Repeat a tensor along axes of size 1, and along new leading axes.

    The result is computed like that of an elementwise function: every tile receives the elements
    that it repeats once, and repeats them itself.

    Example: %1 = nn.expand %0 to [4, 8] : (tensor<8xf32>) -> tensor<4x8xf32>

    Attributes:
        operand: its sizes, from the last axis on, are those of shape, or 1.
        shape: of the result.
    """

    name = "nn.expand"
    operand = operand_def(TensorType)
    shape = prop_def(INTEGERS)
    assembly_format = "$operand `to` $shape attr-dict `:` functional-type(operands, results)"

    def __init__(self, operand: SSAValue, shape: Sequence[int]):
        super().__init__([operand], {"shape": integers(shape)})

    def infer(self) -> TensorType[Attribute]:
        """The given shape, which the operand must broadcast to."""
        target = values_of(self.shape)
        need_at_least("shape", target, 0)
        if broadcast([shape_of(self.operand), target]) != target:
            raise VerifyException(
                f"operand of shape {list(shape_of(self.operand))} does not broadcast to "
                f"{list(target)}"
            )
        return tensor(target, element_of(self.operand))

    def structure(self) -> Structure:
        """One dimension per result axis; the operand's map leaves out those it repeats over."""
        space = broadcast_space((shape_of(self.operand),), shape_of(self.result))
        return Structure(space, Body("identity"))


@irdl_op_definition
class ReshapeOp(PureTensorOp, Reinterpretation):
    """The same elements in row-major order, as another shape.

    Example: %1 = nn.reshape %0 to [32] : (tensor<4x8xf32>) -> tensor<32xf32>

    Attributes:
        operand: of any shape.
        shape: of the result, which has as many elements.
    """

    name = "nn.reshape"
    operand = operand_def(TensorType)
    shape = prop_def(INTEGERS)
    assembly_format = "$operand `to` $shape attr-dict `:` functional-type(operands, results)"

    def __init__(self, operand: SSAValue, shape: Sequence[int]):
        super().__init__([operand], {"shape": integers(shape)})

    def infer(self) -> TensorType[Attribute]:
        """The shape given, with as many elements."""
        source, target = shape_of(self.operand), values_of(self.shape)
        need_at_least("shape", target, 0)
        if prod(source) != prod(target):
            raise VerifyException(
                f"{prod(source)} elements of {list(source)} as {list(target)}, which has "
                f"{prod(target)}; need as many"
            )
        return tensor(target, element_of(self.operand))
