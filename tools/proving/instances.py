"""Both sides of a rule at a match, and the same match at other sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ...dialects.blob_attr import BlobAttr
from ...ir.blob import Blob
from ...ir.element_types import element_type, numpy_dtype
from ...ir.number_attr import float_attr, integers_attr
from ...ir.rules.bound_rule import BoundRule, Match
from ...ir.rules.build import with_inferred_types
from ...ir.rules.library import FUNCTIONS, Meaning
from ...ir.rules.matcher import Matcher
from ...ir.rules.syntax import Call, Expression, Listed, Name, Operator
from ...ir.rules.vocabulary import Vocabulary
from ...ir.tensor_type import tensor_type
from ...ir.upstream import UNKNOWN_LOC
from .bodies import Undecided
from .steps import Steps, read_steps


@dataclass(frozen=True)
class Instance:
    """Both sides of a rule at one match.

    Attributes:
        names: the names of the values that both sides read.
    """

    rule: BoundRule
    vocabulary: Vocabulary
    root: Operation
    match: Match
    left: tuple[SSAValue, ...]
    right: tuple[SSAValue, ...]
    names: Mapping[SSAValue, str]

    def steps(self) -> Steps:
        """Both sides as steps. Raises Undecided."""
        return read_steps(self.left, self.right, self.names)

    def has_numbers(self) -> bool:
        """Whether an attribute of the match is a number."""
        return any(
            isinstance(each, FloatAttr)
            for op in self.match.matched
            for each in op.properties.values()
        )

    def resized(
        self,
        sizes: Mapping[int, int],
        elements: Mapping[Attribute, Attribute] | None = None,
        *,
        attributes: bool = True,
        number: Callable[[], float] | None = None,
    ) -> Instance | None:
        """The match with other sizes; None if the rule does not match there.

        Args:
            sizes: the new size of axes, by the size that they have.
            elements: the new element types, by those that tensors have.
            attributes: whether lists of numbers in attributes are sizes too.
            number: returns the new value of an attribute that is a number; None if they stay.
        """
        change = _Change(sizes, elements or {}, attributes, number)
        block = self.root.parent_block()
        assert block is not None
        values: dict[SSAValue, SSAValue] = {}
        ops: list[Operation] = []
        try:
            for op in block.ops:
                if op not in self.match.matched:
                    continue
                for operand in op.operands:
                    if operand not in values:
                        type_ = change.type(operand.type)
                        values[operand] = Block(arg_types=(type_,)).args[0]
                        values[operand].name_hint = operand.name_hint
                new = change.op(op, values)
                values |= dict(zip(op.results, new.results, strict=True))
                ops.append(new)
        except Exception:
            return None
        leaves = [each for each in values.values() if isinstance(each.owner, Block)]
        made = Block(arg_types=[each.type for each in leaves])
        for old, arg in zip(leaves, made.args, strict=True):
            arg.name_hint = old.name_hint
            old.replace_all_uses_with(arg)
        made.add_ops(ops)
        return instance_of(self.rule, ops[-1], self.vocabulary)


@dataclass(frozen=True)
class _Change:
    """Other sizes and other element types for operations."""

    sizes: Mapping[int, int]
    elements: Mapping[Attribute, Attribute]
    lists: bool
    drawn: Callable[[], float] | None

    def op(self, op: Operation, values: Mapping[SSAValue, SSAValue]) -> Operation:
        """The changed operation. Raises VerifyException, or what the operation raises."""
        new = type(op).create(
            operands=[values[each] for each in op.operands],
            result_types=[self.type(each.type) for each in op.results],
            properties={name: self.attribute(each) for name, each in op.properties.items()},
            attributes=dict(op.attributes),
            location=UNKNOWN_LOC,
        )
        new = with_inferred_types(new)
        new.verify(verify_nested_ops=False)
        return new

    def type(self, type_: Attribute) -> Attribute:
        """The changed type."""
        if not isinstance(type_, TensorType):
            return type_
        tensor = cast("TensorType[Attribute]", type_)
        element = self.elements.get(tensor.element_type, tensor.element_type)
        return tensor_type(element, [self.sizes.get(n, n) for n in tensor.get_shape()])

    def attribute(self, attribute: Attribute) -> Attribute:
        """The changed attribute."""
        if isinstance(attribute, DenseArrayBase):
            listed = cast("DenseArrayBase[IntegerType]", attribute)
            if listed.elt_type == i64 and self.lists:
                return integers_attr([self.number(n) for n in listed.get_values()])
        if isinstance(attribute, BlobAttr):
            return self._blob(attribute)
        if isinstance(attribute, FloatAttr) and self.drawn is not None:
            return float_attr(self.drawn(), cast("FloatAttr[AnyFloat]", attribute).type)
        return cast(Attribute, attribute)

    def _blob(self, attribute: BlobAttr) -> BlobAttr:
        array = attribute.array
        shape = [self.sizes.get(n, n) for n in array.shape]
        old = element_type(array.dtype)
        dtype = numpy_dtype(self.elements.get(old, old))
        if dtype != array.dtype:
            array = array.astype(dtype)
            if not np.array_equal(array.astype(np.float64), attribute.array.astype(np.float64)):
                raise Undecided("another type does not hold a constant")
        if list(array.shape) == shape:
            return BlobAttr(Blob(array))
        bits = np.ascontiguousarray(array).reshape(-1).view(f"V{array.itemsize}")
        if not array.size or not bool(np.all(bits == bits[0])):
            raise Undecided("the elements of a constant differ")
        return BlobAttr(Blob(np.full(shape, array.reshape(-1)[0], array.dtype)))

    def number(self, number: int) -> int:
        """A number of an attribute at other sizes: a size, or a product of sizes."""
        if number in self.sizes:
            return self.sizes[number]
        for old, new in self.sizes.items():
            if number and old > 1 and number % old == 0:
                return new * self.number(number // old)
        return number


def instance_of(
    rule: BoundRule, root: Operation, vocabulary: Vocabulary, *, built: bool = True
) -> Instance | None:
    """Both sides of a rule at an operation; None if the rule does not match it.

    Guards on the program around the match, and on elements, are assumed to hold.

    Args:
        built: whether the right side has to be built; else it is empty.
    """
    guards = [each for each in rule.guards if _is_of_types(each)]
    for variant in rule.variants:
        matcher = Matcher(vocabulary)
        try:
            if not (matcher.op(variant, root) and matcher.holds(guards)):
                continue
            match = Match(matcher.env, tuple(matcher.matched))
            if not _may_hold(rule, match):
                continue
            made = rule.make(match) if built else None
        except Exception:
            return None
        if built and made is None:
            return None
        right = () if made is None else tuple(made.values)
        return Instance(rule, vocabulary, root, match, tuple(root.results), right, _names(match))
    return None


def _may_hold(rule: BoundRule, match: Match) -> bool:
    """Whether the guards on elements can hold for the types of a match."""
    for each in rule.guards:
        meaning = meaning_of(each) if isinstance(each, Call) else None
        if meaning is not None and meaning.only is not None and isinstance(each, Call):
            values = [match.env[a.name] for a in each.arguments if isinstance(a, Name)]
            results = [v.results[0] if isinstance(v, Operation) else v for v in values]
            if not all(map(meaning.only, results)):
                return False
    return True


def _names(match: Match) -> dict[SSAValue, str]:
    """The names of the values that a match reads from outside, one each."""
    written: dict[SSAValue, str] = {}
    for name, value in match.env.items():
        if isinstance(value, SSAValue):
            written.setdefault(cast(SSAValue, value), name)
        elif isinstance(value, tuple):
            for i, each in enumerate(cast("tuple[object, ...]", value)):
                if isinstance(each, SSAValue):
                    written.setdefault(cast(SSAValue, each), f"{name}.{i}")
    found: dict[SSAValue, str] = {}
    for op in match.matched:
        for operand in op.operands:
            inside = isinstance(operand, OpResult) and operand.owner in match.matched
            if not inside and operand not in found:
                # A rule may call a value _1; it calls none by two words.
                found[operand] = written.get(operand, f"value {len(found)}")
    return found


# Guards


def calls(expressions: Sequence[Expression]) -> Iterator[Call]:
    """The calls in expressions, the inner ones too."""
    for each in expressions:
        if isinstance(each, Call):
            yield each
            yield from calls(each.arguments)
        elif isinstance(each, Operator):
            yield from calls(each.operands)
        elif isinstance(each, Listed):
            yield from calls(each.items)


def meaning_of(call: Call) -> Meaning | None:
    """What a guard or function means to proofs; None if nobody has said it."""
    known = FUNCTIONS.get(call.name)
    return None if known is None else known.meaning


def _is_of_types(guard: Expression) -> bool:
    """Whether a condition depends on types and attributes only."""
    meanings = [meaning_of(each) for each in calls([guard])]
    return all(each is None or each.subject == "types" for each in meanings)


def promises(rule: BoundRule) -> list[tuple[str, Any]]:
    """What the guards of a rule promise of elements: the name of a value, and an expression."""
    found: list[tuple[str, Any]] = []
    for each in rule.guards:
        meaning = meaning_of(each) if isinstance(each, Call) else None
        if meaning is not None and isinstance(each, Call):
            for argument in each.arguments:
                if isinstance(argument, Name):
                    found += [(argument.name, promise) for promise in meaning.promises]
    return found
