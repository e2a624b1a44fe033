"""The elements of a program's results as terms, at the sizes that its types have.

Nothing here knows an operator: a term follows from the space, the maps and the body of an
operation, from its moves, or from its parts. Sums are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Block, Operation, SSAValue

from ...backends.reference.gather import gathered, whole_box
from ...backends.reference.operation import parts_of
from ...dialects import nn
from ...dialects.structured import (
    Body,
    Composite,
    Movement,
    Reinterpretation,
    Structure,
    Structured,
)
from ...ir.geometry.space import NO_INDEX, AccessMap, Space, positions_of
from .bodies import (
    Undecided,
    begin_dtype,
    constant,
    function_value,
    identity_of,
    is_float,
    keeps_more,
    merged,
    stages_value,
)
from .steps import shape_and_dtype
from .terms import Const, Term, Var

Terms: TypeAlias = "NDArray[Any]"
"""An array of terms, in the shape of a tensor."""

MOST_TERMS = 6000
"""The most elements of a tensor, and the most points of a space, that are written as terms."""


@dataclass
class Unrolled:
    """The terms of the values of one program.

    Attributes:
        names: the names of the elements of values that nothing computes.
        rounds: whether a body that was read keeps values between its functions unrounded.
    """

    names: Mapping[SSAValue, str]
    rounds: bool = False
    _known: dict[SSAValue, Terms] = field(default_factory=dict[SSAValue, "Terms"])

    def of(self, value: SSAValue) -> Terms:
        """The terms of a value, in the shape of its type.

        Raises Undecided for operations without a meaning, and for too many elements.
        """
        if value not in self._known:
            owner = value.owner
            if value in self.names:
                self._known[value] = _unknown(self.names[value], value)
            elif isinstance(owner, Block):
                raise Undecided("a value comes from outside the pattern")
            else:
                found = self._results(owner)
                self._known |= dict(zip(owner.results, found, strict=True))
        return self._known[value]

    def _results(self, op: Operation) -> Sequence[Terms]:
        for kind, meaning in _MEANINGS.items():
            if isinstance(op, kind):
                operands = list(map(self.of, op.operands))
                if isinstance(op, Structured):
                    self._note(op.structure().body, shape_and_dtype(op.results[0])[1])
                return meaning(self, op, operands)
        raise Undecided(f"{op.name} has no space, no moves and no parts")

    def _note(self, body: Body, dtype: str) -> None:
        """Note whether a body rounds in an order that it leaves open."""
        sums = body.combiner in ("sum", "prod") and is_float(dtype)
        self.rounds = self.rounds or sums or keeps_more(body, dtype)

    def constant(self, op: Operation, operands: Sequence[Terms]) -> Sequence[Terms]:
        """The elements of a constant."""
        assert isinstance(op, nn.ConstantOp)
        shape, dtype = shape_and_dtype(op.result)
        _checked(prod(shape), "elements")
        as_kind = float if is_float(dtype) else int
        values = np.asarray(op.value.array).reshape(-1)
        return [_array([Const(as_kind(each), dtype) for each in values], shape)]

    def moved(self, op: Operation, operands: Sequence[Terms]) -> Sequence[Terms]:
        """The elements that an operation moves."""
        return _moved(op, operands)

    def reshaped(self, op: Operation, operands: Sequence[Terms]) -> Sequence[Terms]:
        """The same elements in another shape."""
        return [operands[0].reshape(shape_and_dtype(op.results[0])[0])]

    def computed(self, op: Operation, operands: Sequence[Terms]) -> Sequence[Terms]:
        """The elements that a body computes."""
        return _computed(op, operands)

    def composed(self, op: Operation, operands: Sequence[Terms]) -> Sequence[Terms]:
        """The elements that the parts of an operation compute."""
        block, arguments = parts_of(op)
        given: dict[SSAValue, Terms] = {
            arg: operands[i] for arg, i in zip(block.args, arguments, strict=True)
        }
        inner = Unrolled({}, _known=given)
        end = block.last_op
        assert end is not None
        found = [inner.of(value) for value in end.operands]
        self.rounds = self.rounds or inner.rounds
        return found


def _checked(count: int, what: str) -> None:
    if count > MOST_TERMS:
        raise Undecided(f"{count} {what}; at most {MOST_TERMS} are written as terms")


def _array(terms: Sequence[Term], shape: Sequence[int]) -> Terms:
    made = np.empty(len(terms), object)
    made[:] = terms
    return made.reshape(shape)


def _unknown(name: str, value: SSAValue) -> Terms:
    shape, dtype = shape_and_dtype(value)
    _checked(prod(shape), "elements")
    listed = [Var(f"{name}[{','.join(map(str, index))}]", dtype) for index in np.ndindex(*shape)]
    return _array(listed, shape)


def _moved(op: Operation, operands: Sequence[Terms]) -> Sequence[Terms]:
    assert isinstance(op, Movement)
    shape, dtype = shape_and_dtype(op.results[0])
    _checked(prod(shape), "elements")
    made = _array([constant(0, dtype)] * prod(shape), (prod(shape),))
    for space, operand in zip(op.moves(), operands, strict=True):
        if 0 in space.sizes:
            continue
        read = _read(operand, space.operands[0], space.sizes, dtype)
        places = _indices(space.results[0], space.sizes)
        made[np.broadcast_to(places, space.sizes)] = read
    return [made.reshape(shape)]


def _computed(op: Operation, operands: Sequence[Terms]) -> Sequence[Terms]:
    assert isinstance(op, Structured)
    structure = op.structure()
    body = structure.body
    if body.along is not None or body.member_kinds:
        what = body.along.name if body.along is not None else body.combiner
        raise Undecided(f"{op.name} computes {what}, which is no sum and no extreme")
    if structure.space.relations or body.updates or body.combiner in ("pick", "last"):
        raise Undecided(f"{op.name} reads where an operand of indices says")
    _checked(structure.space.points, "points")
    return [_structure(structure, operands, *shape_and_dtype(op.results[0]))]


def _structure(
    structure: Structure, operands: Sequence[Terms], shape: tuple[int, ...], dtype: str
) -> Terms:
    space, body = structure.space, structure.body
    if 0 in shape:
        return _array([], shape)
    result = space.results[0]
    kept = [d for axis in result.axes for d, _ in axis.terms]
    reduced = [d for d in range(len(space.dims)) if d not in kept]
    inner = begin_dtype(body, [_dtype(each, dtype) for each in operands], dtype)
    if 0 in space.sizes:
        assert body.combiner is not None
        parts = _array([identity_of(body.combiner, inner)] * prod(shape), (prod(shape),))
    else:
        reads = [
            np.broadcast_to(_read(operand, access, space.sizes, dtype), space.sizes)
            for operand, access in zip(operands, space.operands, strict=True)
        ]
        ordered = structure.with_coordinates(reads, _coordinates(space, inner))
        turned = [each.transpose([*kept, *reduced]) for each in ordered]
        arity, points = body.function_arity, prod(space.sizes[d] for d in reduced)
        own = [each.reshape(prod(shape), points) for each in turned[:arity]]
        parts = _merged(body, own, inner)
        if body.then:
            # The chain reads one element for each element of the result.
            firsts = [each.reshape(prod(shape), points)[:, 0] for each in turned[arity:]]
            staged = [
                stages_value(body, [parts[i], *(each[i] for each in firsts)], dtype)
                for i in range(prod(shape))
            ]
            return _array(staged, shape)
    if body.then:
        raise Undecided("a chain after a merge of no elements")
    return _array([each for each in parts], shape)


def _dtype(terms: Terms, default: str) -> str:
    flat = terms.reshape(-1)
    return cast(Term, flat[0]).dtype if flat.size else default


def _merged(body: Any, own: Sequence[Terms], dtype: str) -> Terms:
    rows, points = own[0].shape
    made: list[Term] = []
    for i in range(rows):
        args = [function_value(body, [each[i, j] for each in own], dtype) for j in range(points)]
        made.append(merged(body.combiner, args, dtype) if body.combiner else args[0])
    return _array(made, (rows,))


def _indices(access: AccessMap, sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """The row-major number of the element that each point reaches; -1 outside the tensor."""
    numbers = np.arange(prod(access.shape), dtype=np.int64).reshape(access.shape)
    return gathered(numbers, replace(access, fill=-1.0), whole_box(sizes))


def _read(operand: Terms, access: AccessMap, sizes: tuple[int, ...], dtype: str) -> Terms:
    """The terms that a map reads at all points, with one axis per dimension."""
    table = np.empty(operand.size + 1, object)
    table[:-1] = operand.reshape(-1)
    table[-1] = constant(access.fill, _dtype(operand, dtype))
    return table[_indices(access, sizes)]


def _coordinates(space: Space, dtype: str) -> list[Terms]:
    points = np.indices(space.sizes)
    made: list[Terms] = []
    for position in space.coordinates:
        numbers = positions_of(position, list(points))
        assert not (numbers == NO_INDEX).any()
        listed: list[Term] = [constant(int(each), dtype) for each in numbers.reshape(-1)]
        made.append(_array(listed, space.sizes))
    return made


_MEANINGS: dict[type[Any], Callable[[Unrolled, Operation, Sequence[Terms]], Sequence[Terms]]] = {
    nn.ConstantOp: Unrolled.constant,
    Structured: Unrolled.computed,
    Movement: Unrolled.moved,
    Reinterpretation: Unrolled.reshaped,
    Composite: Unrolled.composed,
}
"""How the terms of an operation's results follow from those of its operands, by its kind."""
