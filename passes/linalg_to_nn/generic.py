"""Operations of linalg: loops over elements, with a scalar body and perhaps a combiner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, linalg, math, tensor
from xdsl.dialects.builtin import AnyFloat, IndexType, i1
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.scalar_functions import COMBINERS
from ...ir.geometry.space import Dim
from ...ir.refusals import Uncovered
from ...ir.support.number_kinds import is_whole
from .conversion import ToNn, number_that_fills, type_in_nn
from .scalars import SCALARS, unsigned
from .scope import Operand, Read, Scope, index_of


@dataclass(frozen=True)
class Merge:
    """What merges the points of reduction loops into an element of the result.

    Attributes:
        combiner: of nn.
        function: of nn; it merges the result with the elements that it begins with.
        without_sign: whether integers are merged as numbers without a sign.
    """

    combiner: str
    function: str
    without_sign: bool = False


MERGES: Mapping[type[Operation], Merge] = {
    arith.AddfOp: Merge("sum", "add"),
    arith.AddiOp: Merge("sum", "add"),
    arith.MulfOp: Merge("prod", "mul"),
    arith.MuliOp: Merge("prod", "mul"),
    arith.MaximumfOp: Merge("max", "max"),
    arith.MinimumfOp: Merge("min", "min"),
    arith.MaxnumfOp: Merge("max", "max"),
    arith.MinnumfOp: Merge("min", "min"),
    arith.MaxSIOp: Merge("max", "max"),
    arith.MinSIOp: Merge("min", "min"),
    arith.MaxUIOp: Merge("max", "max", without_sign=True),
    arith.MinUIOp: Merge("min", "min", without_sign=True),
    arith.OrIOp: Merge("max", "logical_or"),
    arith.AndIOp: Merge("min", "logical_and"),
}
"""The operations that may merge points; or and and may do so only with truth values."""

NUMBERS_ONLY = (arith.MaxnumfOp, arith.MinnumfOp)
"""The merges that leave out NaN."""

SIMPLE: Mapping[type[Operation], str] = {
    arith.MulfOp: "mul",
    arith.MuliOp: "mul",
    arith.AddfOp: "add",
    arith.SubfOp: "sub",
    arith.MaximumfOp: "max",
    arith.MinimumfOp: "min",
    math.AbsFOp: "abs",
    math.ExpOp: "exp",
}
"""Functions that one operation computes together with the merge of its results."""


@dataclass(frozen=True)
class Loops:
    """An operation of linalg as loops.

    Attributes:
        inputs: tensors and numbers that are read.
        outputs: the tensors that the results begin with.
        maps: one for each of them: the element that a point reaches.
        reduced: for each loop, whether its points are merged.
        body: takes the elements, and yields those of the results.
    """

    op: Operation
    inputs: tuple[SSAValue, ...]
    outputs: tuple[SSAValue, ...]
    maps: tuple[AffineMap, ...]
    reduced: tuple[bool, ...]
    body: Block

    def sizes(self) -> tuple[int, ...]:
        """The iterations of each loop. Raises Uncovered if they do not follow from shapes."""
        found: dict[int, int] = {}
        for value, access in zip((*self.inputs, *self.outputs), self.maps, strict=True):
            shape = type_in_nn(value.type).get_shape()
            for expression, size in zip(access.results, shape, strict=True):
                if isinstance(expression, AffineDimExpr):
                    found.setdefault(expression.position, size)
        missing = [d for d in range(len(self.reduced)) if d not in found]
        if missing:
            raise Uncovered(f"loop d{missing[0]} is no axis of an operand; its size is not known")
        return tuple(found[d] for d in range(len(self.reduced)))


def structured(op: LinalgStructuredOperation, new: ToNn) -> None:
    """Convert linalg.generic, or an operation with a name that stands for one.

    before: %3 = linalg.generic {indexing_maps = [...], iterator_types = ["parallel", "reduction"]}
                ins(%0 : tensor<4x8xf32>) outs(%1 : tensor<4xf32>) {
              ^bb0(%a: f32, %b: f32):
                %s = arith.addf %a, %b : f32
                linalg.yield %s : f32
            } -> tensor<4xf32>
    after:  %3 = nn.reduce "sum" %0 axes [1] : (tensor<4x8xf32>) -> tensor<4xf32>
    """
    _convert(_loops_of(op, op.body.block), new)


def pooling(op: linalg.ops.PoolingNchwMaxOp, new: ToNn) -> None:
    """Convert linalg.pooling_nchw_max.

    xDSL's body for it merges the image with the window, whose elements mean nothing, instead of the
    image with the result. So the body is made here.
    """
    types = [each.type for each in op.body.block.args]
    body = Block(arg_types=types)
    larger = arith.MaximumfOp if isinstance(types[0], AnyFloat) else arith.MaxSIOp
    made = larger(body.args[0], body.args[-1])
    body.add_ops([made, linalg.ops.YieldOp(made.result)])
    _convert(_loops_of(op, body), new)


def _loops_of(op: LinalgStructuredOperation, body: Block) -> Loops:
    """An operation that has maps, as loops.

    Raises Uncovered if it breaks a rule of its dialect. xDSL then fails while it makes the maps of
    an operation with a name, because it takes for granted that the operands are right.
    """
    try:
        maps = tuple(each.data for each in op.get_indexing_maps())
        kinds = [each.data for each in op.get_iterator_types()]
    except (LookupError, TypeError, AttributeError, AssertionError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise Uncovered(f"it breaks a rule of its dialect: {problem}") from None
    reduced = tuple(each is not IteratorType.PARALLEL for each in kinds)
    return Loops(op, tuple(op.inputs), tuple(op.outputs), maps, reduced, body)


def broadcast(op: linalg.ops.BroadcastOp, new: ToNn) -> None:
    """Convert linalg.broadcast.

    before: %2 = linalg.broadcast ins(%0 : tensor<4xf32>) outs(%1 : tensor<3x4xf32>) dimensions=[0]
    after:  %2 = nn.compute(%0) space <[d0 = 3, d1 = 4] (d1) of [4] -> (d0, d1) of [3, 4]> ...
    """
    rank = len(type_in_nn(op.init.type).get_shape())
    kept = [d for d in range(rank) if d not in op.dimensions.get_values()]
    maps = _map(rank, kept), _map(rank, range(rank))
    body = op.hidden_region.block
    _convert(Loops(op, (op.input,), (op.init,), maps, (False,) * rank, body), new)


def reduce(op: linalg.ops.ReduceOp, new: ToNn) -> None:
    """Convert linalg.reduce.

    before: %2 = linalg.reduce ins(%0 : tensor<4x8xf32>) outs(%1 : tensor<4xf32>) dimensions = [1]
              (%a: f32, %b: f32) { %s = arith.addf %a, %b : f32 ... }
    after:  %2 = nn.reduce "sum" %0 axes [1] : (tensor<4x8xf32>) -> tensor<4xf32>
    """
    rank, away = len(type_in_nn(op.input.type).get_shape()), op.dimensions.get_values()
    kept = [d for d in range(rank) if d not in away]
    maps = _map(rank, range(rank)), _map(rank, kept)
    reduced = tuple(d in away for d in range(rank))
    _convert(Loops(op, (op.input,), (op.init,), maps, reduced, op.region.block), new)


def _map(rank: int, dims: Sequence[int]) -> AffineMap:
    return AffineMap(rank, 0, tuple(AffineDimExpr(d) for d in dims))


def _convert(loops: Loops, new: ToNn) -> None:
    if len(loops.op.results) != len(loops.outputs):
        raise Uncovered("memory that is written; need tensors, whose operations have results")
    names = [nn.dim(f"d{i}", n).dim for i, n in enumerate(loops.sizes())]
    body = _Body(loops, new, Scope(new, names))
    last = loops.body.last_op
    assert last is not None
    made = [
        body.result(i, value, access)
        for i, (value, access) in enumerate(
            zip(last.operands, loops.maps[len(loops.inputs) :], strict=True)
        )
    ]
    for result, value in zip(loops.op.results, made, strict=True):
        new.values[result] = value


class _Body:
    """The body of loops, whose values are computed for all points at once when they are needed."""

    def __init__(self, loops: Loops, new: ToNn, scope: Scope) -> None:
        self.loops, self.new, self.scope = loops, new, scope
        self.made: dict[SSAValue, Operand] = {}
        self.begins = loops.body.args[len(loops.inputs) :]

    def result(self, number: int, yielded: SSAValue, access: AffineMap) -> SSAValue:
        """The tensor of a result.

        Args:
            yielded: its elements, as the body computes them.
            access: the element that a point computes.
        """
        dims = self._axes(access)
        if not any(self.loops.reduced):
            return self.scope.arranged(self.operand(yielded), dims)
        begin = self.begins[number]
        merge, terms, element = self._merge(yielded, begin)
        away = [dim for dim in self.scope.dims if dim not in dims]
        function, operands = self._terms(terms)
        if merge.without_sign:
            operands = [self.scope.bits(each, unsigned(element)) for each in operands]
        found = self.scope.merged(function, operands, merge.combiner, dims)
        if self.scope.element(found) != element and not merge.without_sign:
            found = self.scope.read(self.scope.cast(found, element))
        start = self._start(number)
        if _is_identity(number_that_fills(start), merge, element) and away:
            return self.scope.bits(found, element).value
        at = self.scope.bits(Read(start, found.axes), self.scope.element(found))
        return self.scope.bits(self.scope.apply(merge.function, at, found), element).value

    def _start(self, number: int) -> SSAValue:
        old = self.loops.outputs[number]
        if old in self.new.unset:
            raise Uncovered("sums begin with the elements of tensor.empty, which nothing has set")
        return self.new.value(old)

    def _merge(self, yielded: SSAValue, begin: SSAValue) -> tuple[Merge, SSAValue, Attribute]:
        """How points are merged, and the value that each of them adds."""
        op = yielded.owner
        merge = MERGES.get(type(op)) if isinstance(op, Operation) else None
        if merge is None or not isinstance(op, Operation):
            raise Uncovered(
                "reduction loops whose body does not end in one operation that merges; need one of "
                f"{', '.join(sorted(each.name for each in MERGES))}"
            )
        element = type_in_nn(yielded.type).element_type
        if isinstance(op, arith.AndIOp | arith.OrIOp) and element != i1:
            raise Uncovered(f"{op.name} of {element} merges points; need truth values")
        if isinstance(op, NUMBERS_ONLY):
            raise Uncovered(f"{op.name} merges points; need arith.maximumf or arith.minimumf")
        others = [each for each in op.operands if each is not begin]
        if len(others) != 1 or self._depends(others[0]):
            raise Uncovered(f"{op.name} at the end merges more than the result and one term")
        return merge, others[0], element

    def _depends(self, value: SSAValue) -> bool:
        """Whether a value depends on the elements that results begin with."""
        waiting, seen = [value], set[SSAValue]()
        while waiting:
            last = waiting.pop()
            if last in self.begins:
                return True
            op = last.owner
            if last not in seen and isinstance(op, Operation) and op.parent is self.loops.body:
                seen.add(last)
                waiting += op.operands
        return False

    def _terms(self, value: SSAValue) -> tuple[str, list[Operand]]:
        """A function and its operands, which give the value that each point adds."""
        op = value.owner
        if isinstance(op, Operation) and type(op) in SIMPLE and value not in self.made:
            element = type_in_nn(value.type).element_type
            given = [self.operand(each) for each in op.operands]
            if element != i1 and all(isinstance(each, Read) for each in given):
                return SIMPLE[type(op)], given
        return "identity", [self.operand(value)]

    def operand(self, value: SSAValue) -> Operand:
        """A value of the body.

        What it is computed from is made before it, without recursion: a body may be long.
        """
        waiting, begun = [value], set[SSAValue]()
        while waiting:
            last = waiting.pop()
            if last in self.made:
                continue
            if last in begun:
                self.made[last] = self._operand(last)
            else:
                begun.add(last)
                waiting.append(last)
                op = last.owner
                if not isinstance(op, Operation) or type(op) not in SCALARS:
                    continue
                if op.parent is self.loops.body:
                    waiting += reversed(op.operands)
        return self.made[value]

    def _operand(self, value: SSAValue) -> Operand:
        if value in self.loops.body.args:
            number = self.loops.body.args.index(value)
            old = (*self.loops.inputs, *self.loops.outputs)[number]
            access = self.loops.maps[number]
            if not access.results:
                return Read(self.new.value(old))
            indices = [index_of(each, self.scope.dims) for each in access.results]
            return Read(self.new.value(old), tuple(indices))
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not self.loops.body:
            if value in self.new.whole and isinstance(value.type, IndexType):
                return nn.Index((), self.new.whole[value])
            return Read(self.new.value(value))
        assert isinstance(value, OpResult)
        if isinstance(op, linalg.ops.IndexOp):
            loop, loops = op.dim.value.data, len(self.scope.dims)
            if not 0 <= loop < loops:
                raise Uncovered(f"index of loop {loop}; need 0..{loops - 1}")
            return nn.Index(((self.scope.dims[loop], 1),))
        if isinstance(op, arith.ConstantOp):
            self.new.convert(op)
            if value in self.new.whole and isinstance(value.type, IndexType):
                return nn.Index((), self.new.whole[value])
            return Read(self.new.value(value))
        if isinstance(op, tensor.ExtractOp):
            return self.scope.picked(self.new.value(op.tensor), list(map(self.operand, op.indices)))
        if type(op) not in SCALARS:
            raise Uncovered(f"{op.name} in a body; need operations of arith and math")
        given = [self.operand(each) for each in op.operands]
        return SCALARS[type(op)](self.scope, op, given)

    def _axes(self, access: AffineMap) -> list[Dim]:
        """The loops that are the axes of a result."""
        found: list[Dim] = []
        for each in access.results:
            dim = self.scope.dims[each.position] if isinstance(each, AffineDimExpr) else None
            if dim is None or dim in found:
                raise Uncovered(f"a result at {access}; need one loop for each axis")
            found.append(dim)
        dims = zip(self.scope.dims, self.loops.reduced, strict=True)
        if {dim for dim, reduced in dims if not reduced} != set(found):
            raise Uncovered(f"a result at {access}; need its axes to be the parallel loops")
        return found


def _is_identity(number: float | int | bool | None, merge: Merge, element: Attribute) -> bool:
    """Whether merging with a number changes nothing."""
    if number is None:
        return False
    identity = COMBINERS[merge.combiner]
    dtype = numpy_dtype(element)
    if is_whole(dtype) and identity in (float("-inf"), float("inf")):
        bits = np.iinfo(dtype if not merge.without_sign else f"u{dtype.itemsize}")
        number = number % (1 << bits.bits) if merge.without_sign else number
        return number == (bits.min if identity < 0 else bits.max)
    if element == i1:
        return bool(number) == (identity > 0)
    return number == identity
