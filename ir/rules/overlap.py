"""Finds conflicts between rules: a rule that is never reached, or two that match the same
operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import cast

from xdsl.ir import Operation, OpResult, SSAValue

from .bound_rule import BoundNested, BoundOperand, BoundPattern, BoundRule
from .orders import MOST_ORDERS, Orders
from .syntax import Field, Name, Rest, Shaped, Size, TypeName, TypePattern, Variable
from .values import element_type
from .vocabulary import Vocabulary

ANY = "_"


# A pattern that matches everything that another one matches


def shadows(first: BoundRule, second: BoundRule, vocabulary: Vocabulary) -> bool:
    """True if the first rule provably matches every operation that the second rule matches."""
    if isinstance(first.variants, Orders) or isinstance(second.variants, Orders):
        # So many orders are not compared.
        return False
    return not first.guards and all(
        any(_Covering(vocabulary).op(general, special) for general in first.variants)
        for special in second.variants
    )


@dataclass
class _Covering:
    """One attempt to see a pattern as a special case of a more general one.

    Attributes:
        bound: the parts of the special pattern that the names of the general one stand for.
    """

    vocabulary: Vocabulary
    bound: dict[str, object] = field(default_factory=dict[str, object])

    def op(self, general: BoundPattern, special: BoundPattern) -> bool:
        return (
            special.classes <= general.classes
            and self._absent(general, special)
            and all(self._field(each, special) for each in general.fields)
            and self._types(general, special)
            and self._operands(general, special)
        )

    def _absent(self, general: BoundPattern, special: BoundPattern) -> bool:
        none = {each.name for each in special.fields if each.value is None}
        known = {name for cls in special.classes for name in self.vocabulary.info(cls).attributes}
        return known.intersection(general.absent) <= none.union(special.absent)

    def _field(self, wanted: Field, special: BoundPattern) -> bool:
        given = next((each for each in special.fields if each.name == wanted.name), None)
        if isinstance(wanted.value, Name):
            value = None if given is None else given.value
            if isinstance(value, Name) and value.name == ANY:
                value = object()
            # An attribute that the special pattern leaves open equals nothing else.
            open_ = given is None and wanted.name not in special.absent
            return self._bind(wanted.value.name, object() if open_ else value)
        if given is None:
            return wanted.value is None and wanted.name in special.absent
        same_kind = isinstance(given.value, bool) == isinstance(wanted.value, bool)
        return given.value == wanted.value and same_kind

    def _bind(self, name: str, value: object) -> bool:
        if name == ANY or not name:
            return True
        if name not in self.bound:
            self.bound[name] = value
            return True
        return self.bound[name] == value

    def _types(self, general: BoundPattern, special: BoundPattern) -> bool:
        given = (*special.types, *[None] * len(general.types))
        return all(self._type(w, g) for w, g in zip(general.types, given, strict=False))

    def _operands(self, general: BoundPattern, special: BoundPattern) -> bool:
        wanted, given = general.operands, special.operands
        if not general.takes_more:
            return len(wanted) == len(given) and all(map(self._operand, wanted, given))
        at = next(i for i, each in enumerate(wanted) if isinstance(each, Rest))
        after = len(wanted) - at - 1
        if special.fixed < general.fixed or len(given) < at + after:
            return False
        middle = given[at : len(given) - after]
        rest = cast(Rest, wanted[at])
        return (
            all(map(self._operand, wanted[:at], given[:at]))
            and all(map(self._operand, wanted[at + 1 :], given[len(given) - after :]))
            and self._bind(rest.name, _values(middle))
        )

    def _operand(self, wanted: BoundOperand, given: BoundOperand) -> bool:
        if isinstance(wanted, Rest) or isinstance(given, Rest):
            return False
        if isinstance(wanted, BoundNested):
            return (
                isinstance(given, BoundNested)
                and wanted.index == given.index
                and self.op(wanted.pattern, given.pattern)
            )
        type_ = given.type if isinstance(given, Variable) else _type_of(given)
        return self._bind(wanted.name, _value(given)) and (
            wanted.type is None or self._type(wanted.type, type_)
        )

    def _type(self, wanted: TypePattern, given: TypePattern | None) -> bool:
        if isinstance(wanted, TypeName):
            return self._bind(wanted.name, given.name if isinstance(given, TypeName) else object())
        if not isinstance(given, Shaped):
            return False
        if wanted.element and element_type(wanted.element) is not None:
            if given.element != wanted.element:
                return False
        elif not self._bind(wanted.element, given.element):
            return False
        return self._sizes(wanted.sizes, given.sizes)

    def _sizes(self, wanted: Sequence[Size | Rest], given: Sequence[Size | Rest]) -> bool:
        at = next((i for i, each in enumerate(wanted) if isinstance(each, Rest)), None)
        if at is None:
            return len(wanted) == len(given) and all(map(self._size, wanted, given))
        after = len(wanted) - at - 1
        if len(given) < at + after:
            return False
        return (
            all(map(self._size, wanted[:at], given[:at]))
            and all(map(self._size, wanted[at + 1 :], given[len(given) - after :]))
            and self._bind(cast(Rest, wanted[at]).name, tuple(given[at : len(given) - after]))
        )

    def _size(self, wanted: Size | Rest, given: Size | Rest) -> bool:
        if isinstance(wanted, Rest) or isinstance(given, Rest):
            return False
        if isinstance(wanted.value, int):
            return wanted.value == given.value
        return self._bind(wanted.value, object() if given.value == ANY else given.value)


def _value(operand: BoundOperand) -> object:
    """A key for an operand: two operands have equal keys only if they have the same name."""
    if isinstance(operand, Variable) and operand.name != ANY:
        return operand.name
    return object()


def _values(operands: Sequence[BoundOperand]) -> object:
    return tuple(map(_value, operands))


def _type_of(operand: BoundNested) -> TypePattern | None:
    types = operand.pattern.types
    return types[operand.index] if operand.index < len(types) else None


# A pattern that matches what two others match


def common_patterns(first: BoundRule, second: BoundRule) -> Iterator[BoundPattern]:
    """Patterns for roots that two rules may both match.

    If two parts of one pattern share a name, this is not carried into the other pattern. The
    result may match too much, so try each program made from it with both rules.
    """
    for a in islice(first.variants, MOST_ORDERS):
        for b in islice(second.variants, MOST_ORDERS):
            found = _common(a, b)
            if found is not None:
                yield found


def _common(a: BoundPattern, b: BoundPattern) -> BoundPattern | None:
    classes = a.classes & b.classes
    operands = _common_operands(a, b)
    fields = _common_fields(a, b)
    types = _common_types(a.types, b.types)
    if not classes or operands is None or fields is None or types is None:
        return None
    mentioned = {each.name for each in fields}
    absent = tuple(sorted({*a.absent, *b.absent} - mentioned))
    return BoundPattern(
        a.place, a.heads, classes, operands, fields, "", types, absent, a.others and b.others
    )


def _common_fields(a: BoundPattern, b: BoundPattern) -> tuple[Field, ...] | None:
    found: list[Field] = []
    theirs: Mapping[str, Field] = {each.name: each for each in b.fields}
    ours = {each.name for each in a.fields}
    for each in (*a.fields, *(each for each in b.fields if each.name not in ours)):
        other = theirs.get(each.name) if each.name in ours else None
        absent = each.name in (b.absent if each.name in ours else a.absent)
        literal = not isinstance(each.value, Name)
        if other is None:
            if absent and literal and each.value is not None:
                return None
            found.append(replace(each, value=None) if absent else each)
        elif isinstance(other.value, Name) or not literal:
            found.append(each if literal else other)
        elif other.value == each.value:
            found.append(each)
        else:
            return None
    return tuple(found)


def _common_operands(a: BoundPattern, b: BoundPattern) -> tuple[BoundOperand, ...] | None:
    if b.takes_more and not a.takes_more:
        a, b = b, a
    if a.takes_more and not b.takes_more:
        spare = len(b.operands) - a.fixed
        if spare < 0:
            return None
        ours = [
            each
            for operand in a.operands
            for each in (
                [Variable(operand.place, ANY, None)] * spare
                if isinstance(operand, Rest)
                else [operand]
            )
        ]
    else:
        ours = list(a.operands)
    if len(ours) != len(b.operands):
        # Two lists of any length, of which one starts or ends later: try the longer one.
        return a.operands if a.fixed > b.fixed else b.operands
    found: list[BoundOperand] = []
    for mine, theirs in zip(ours, b.operands, strict=True):
        both = _common_operand(mine, theirs)
        if both is None:
            return None
        found.append(both)
    return tuple(found)


def _common_operand(a: BoundOperand, b: BoundOperand) -> BoundOperand | None:
    if isinstance(a, Rest) or isinstance(b, Rest):
        return a if isinstance(b, Rest) else b
    if isinstance(a, BoundNested) and isinstance(b, BoundNested):
        inner = _common(a.pattern, b.pattern) if a.index == b.index else None
        return None if inner is None else replace(a, pattern=inner)
    if isinstance(a, BoundNested):
        return a
    if isinstance(b, BoundNested):
        return b
    types = _common_types((a.type,) if a.type else (), (b.type,) if b.type else ())
    if types is None:
        return None
    return Variable(a.place, b.name if a.name == ANY else a.name, types[0] if types else None)


def _common_types(
    a: Sequence[TypePattern], b: Sequence[TypePattern]
) -> tuple[TypePattern, ...] | None:
    found: list[TypePattern] = []
    for mine, theirs in zip(a, b, strict=False):
        if isinstance(mine, Shaped) and isinstance(theirs, Shaped):
            both = _common_shape(mine, theirs)
            if both is None:
                return None
            found.append(both)
        else:
            found.append(mine if isinstance(mine, Shaped) else theirs)
    return (*found, *a[len(found) :], *b[len(found) :])


def _common_shape(a: Shaped, b: Shaped) -> Shaped | None:
    known = [each.element for each in (a, b) if each.element and element_type(each.element)]
    if len(set(known)) > 1:
        return None
    element = known[0] if known else a.element
    if any(isinstance(each, Rest) for each in a.sizes):
        a, b = b, a
    if any(isinstance(each, Rest) for each in a.sizes):
        return replace(a, element=element)
    fixed = sum(isinstance(each, Size) for each in b.sizes)
    if fixed > len(a.sizes) or (fixed == len(b.sizes) and fixed < len(a.sizes)):
        return None
    if fixed < len(b.sizes):
        return replace(a, element=element)
    sizes: list[Size | Rest] = []
    for mine, theirs in zip(cast("tuple[Size, ...]", a.sizes), b.sizes, strict=True):
        other = cast(Size, theirs)
        if isinstance(mine.value, int) and isinstance(other.value, int):
            if mine.value != other.value:
                return None
        sizes.append(mine if isinstance(mine.value, int) else other)
    return replace(a, element=element, sizes=tuple(sizes))


def same_values(a: Sequence[SSAValue], b: Sequence[SSAValue]) -> bool:
    """True if values are computed by equal operations from the same leaves."""
    return len(a) == len(b) and all(map(_same_value, a, b))


def _same_value(a: SSAValue, b: SSAValue) -> bool:
    if a is b:
        return True
    if not (isinstance(a, OpResult) and isinstance(b, OpResult)):
        return False
    return a.index == b.index and _same_op(a.op, b.op)


def _same_op(a: Operation, b: Operation) -> bool:
    return (
        type(a) is type(b)
        and not a.regions
        and a.properties == b.properties
        and a.attributes == b.attributes
        and [each.type for each in a.results] == [each.type for each in b.results]
        and same_values(a.operands, b.operands)
    )
