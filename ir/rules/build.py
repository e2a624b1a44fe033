"""Builds the right side of a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NoReturn, Protocol, cast, runtime_checkable

from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import InferenceContext, IRDLOperation, VarResultDef

from ..provenance import fused, place
from ..support.errors import InputError
from ..tensor_type import tensor_type
from ..upstream import UNKNOWN_LOC, NoneAttr, VerifyException
from .bound_rule import Env, Made, Match
from .evaluate import NoValue, evaluate, value_text
from .syntax import (
    Build,
    Expression,
    NewShaped,
    NewType,
    Place,
    Reference,
    Rest,
    Rule,
    Setting,
    TypeOf,
)
from .values import attribute_of, element_type
from .vocabulary import Vocabulary


@runtime_checkable
class Infers(Protocol):
    """An operation with one result, whose type follows from operands and attributes."""

    def infer(self) -> Attribute:
        """The type of the result. Raises VerifyException if operands and attributes disagree."""
        ...


@runtime_checkable
class InfersAll(Protocol):
    """An operation with several results, whose types follow from operands and attributes."""

    def infer_all(self) -> Sequence[Attribute]:
        """The types of the results, independent of the operation's present results and their
        number.

        Raises VerifyException if operands and attributes disagree.
        """
        ...


@runtime_checkable
class InfersFor(Protocol):
    """An operation whose types may be known better from the values that its results replace."""

    def infer_for(self, wanted: Sequence[Attribute]) -> Sequence[Attribute]:
        """The types of the results.

        Raises VerifyException if operands and attributes disagree.

        Args:
            wanted: the types of the values that are replaced.
        """
        ...


class TypesUnknownError(ValueError):
    """The types of results do not follow from operands and attributes."""


@cache
def has_infer(cls: type[Operation]) -> bool:
    """True if operations of a class infer their result. Faster than asking the protocol."""
    return issubclass(cls, Infers)


@cache
def has_infer_all(cls: type[Operation]) -> bool:
    """True if operations of a class infer several results."""
    return issubclass(cls, InfersAll)


def with_inferred_types(op: Operation, read: int = 0) -> Operation:
    """The operation with the types of its results inferred, if it infers them.

    If the operation infers several results, this is a new operation, and the given one loses its
    operands.
    Raises VerifyException if operands and attributes disagree.

    Args:
        read: results that are read. An operation that may have further results has them.
    """
    if has_infer(type(op)):
        op.results[0]._type = cast(Infers, op).infer()  # pyright: ignore[reportPrivateUsage]
    elif has_infer_all(type(op)):
        new = type(op).create(
            operands=tuple(op.operands),
            result_types=_all_types(op, read),
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            location=op.location,
        )
        op.operands = []
        return new
    return op


def _all_types(op: Operation, read: int) -> Sequence[Attribute]:
    if read and isinstance(op, InfersFor):
        return op.infer_for([NoneAttr()] * read)
    return cast(InfersAll, op).infer_all()


@dataclass
class Builder:
    """Builds the right side of one rule for one match.

    Raises InputError for an operation that is not well formed. The error names the rule and the
    operation that it was applied to.
    """

    rule: Rule
    vocabulary: Vocabulary
    match: Match
    ops: list[Operation] = field(default_factory=list[Operation])
    _moved: list[Region] | None = None

    @property
    def env(self) -> Env:
        """The values of the names in the rule."""
        return self.match.env

    def made(self) -> Made:
        """All new operations. Their location is that of the matched operations."""
        root = self.match.matched[0]
        for let in self.rule.lets:
            self.env[let.name] = self._op(let.build, None, let.name)
        values: list[SSAValue] = []
        for i, each in enumerate(self.rule.results):
            if isinstance(each, Build):
                default = tuple(r.type for r in root.results)
                types = default if len(self.rule.results) == 1 else default[i : i + 1]
                op = self._op(each, types)
                values += op.results
            else:
                values.append(self._value(each))
        location = fused(reversed(self.match.matched))
        for op in self.ops:
            op.location = location
        return Made(tuple(self.ops), tuple(values))

    def _value(self, reference: Reference) -> SSAValue:
        found = self.env[reference.name]
        if isinstance(found, Operation):
            index, count = reference.index or 0, len(found.results)
            if index >= count:
                has = f"{count} result{'' if count == 1 else 's'}"
                self._refuse(reference.place, f"{reference.name}#{index}: {found.name} has {has}")
            return found.results[index]
        return cast(SSAValue, found)

    def _read_of(self, name: str) -> int:
        """How many results of a new operation the right side reads, those between them too."""
        pending: list[Build | Reference | Rest] = [*self.rule.results]
        pending += [each.build for each in self.rule.lets]
        most = 0
        while pending:
            each = pending.pop()
            if isinstance(each, Build):
                pending += each.operands
            elif isinstance(each, Reference) and each.name == name:
                most = max(most, (each.index or 0) + 1)
        return most

    def _operands(self, given: Sequence[Build | Reference | Rest]) -> list[SSAValue]:
        operands: list[SSAValue] = []
        for each in given:
            if isinstance(each, Rest):
                operands += cast("tuple[SSAValue, ...]", self.env[each.name])
            elif isinstance(each, Build):
                op = self._op(each, None)
                if len(op.results) != 1:
                    self._refuse(each.place, f"{op.name} has {len(op.results)} results, not one")
                operands.append(op.results[0])
            else:
                operands.append(self._value(each))
        return operands

    def _op(self, build: Build, default: Sequence[Attribute] | None, name: str = "") -> Operation:
        operands = self._operands(build.operands)
        model: Operation | None = None
        if "." in build.head:
            cls = self.vocabulary.ops[build.head]
            if build.like:
                model = self.env[build.like]
        else:
            model = self.env[build.head]
            assert model is not None
            cls = type(model)
        properties, attributes = self._attributes(cls, model, build.settings)
        types = [self._type(each) for each in build.types] if build.types else None
        if default is None and issubclass(cls, InfersFor):
            # An operation that may have further results has those that the rule reads.
            default = [NoneAttr()] * self._read_of(name)
        regions = self._regions(cls, model)
        try:
            op = create(cls, operands, properties, attributes, regions, types, default)
            if not self._renames(build, model, cls):
                op.verify(verify_nested_ops=False)
        except (VerifyException, ValueError, LookupError, ArithmeticError) as error:
            self._refuse(build.place, f"cannot build {cls.name}: {error}")
        self.ops.append(op)
        return op

    def _renames(self, build: Build, model: Operation | None, cls: type[Operation]) -> bool:
        """Whether a new operation is the root with another name, so that it is as well formed."""
        root = self.match.matched[0]
        plain = not (build.settings or build.types or build.operands or root.operands)
        return plain and model is root and verifies_alike(cls, type(root))

    def _evaluate(self, expression: Expression) -> Any:
        try:
            return evaluate(expression, self.env, self.vocabulary)
        except NoValue as error:
            self._refuse(expression.place, str(error))

    def _refuse(self, where: Place, problem: str) -> NoReturn:
        root = self.match.matched[0]
        raise InputError(
            f"{where}: rule {self.rule.name}: {problem}; it was applied to {root.name} at "
            f"{place(root)}"
        ) from None

    def _regions(self, cls: type[Operation], model: Operation | None) -> list[Region]:
        """The model's regions, if their number is that of the new operation.

        The regions of the root move, because the root is removed. The regions of any other
        operation are copied, because it may stay.
        """
        count = self.vocabulary.info(cls).regions
        if not count or model is None:
            return []
        root = self.match.matched[0]
        if model is root and self._moved is None:
            if len(model.regions) != count:
                return []
            self._moved = [model.detach_region(0) for _ in range(count)]
            return self._moved
        regions = model.regions if model is not root or self._moved is None else self._moved
        return [region.clone() for region in regions] if len(regions) == count else []

    def _attributes(
        self, cls: type[Operation], model: Operation | None, settings: Sequence[Setting]
    ) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
        info = self.vocabulary.info(cls)
        properties: dict[str, Attribute] = {}
        attributes: dict[str, Attribute] = {}
        for name, known in info.attributes.items():
            found: Attribute | None = None
            if model is not None:
                found = model.properties.get(name, model.attributes.get(name))
            if found is None:
                found = known.definition.default_value
            if found is not None:
                (properties if known.is_property else attributes)[name] = found
        for each in settings:
            known = info.attributes[each.name]
            value = self._evaluate(each.value)
            into = properties if known.is_property else attributes
            into.pop(each.name, None)
            if value is None or (value is False and known.kind == "bool"):
                continue
            attribute: Attribute | None = None
            why = ""
            try:
                attribute = attribute_of(value, known.definition.constr)
            except ValueError as error:
                why = f": {error}"
            if attribute is None:
                self._refuse(
                    each.place, f"{each.name} of {cls.name} cannot be {value_text(value)}{why}"
                )
            into[each.name] = attribute
        return properties, attributes

    def _type(self, new: NewType) -> Attribute:
        if isinstance(new, TypeOf):
            found = self.env[new.name]
            value = found.results[0] if isinstance(found, Operation) else found
            return cast(SSAValue, value).type
        if isinstance(new, NewShaped):
            sizes: list[int] = []
            for each in new.sizes:
                if isinstance(each, Rest):
                    sizes += self.env[each.name]
                else:
                    sizes.append(self._size(each))
            element = element_type(new.element) or self.env[new.element]
            return tensor_type(cast(Attribute, element), sizes)
        return cast(Attribute, self.env[new.name])

    def _size(self, expression: Expression) -> int:
        size = self._evaluate(expression)
        if not isinstance(size, int) or size < 0:
            self._refuse(expression.place, f"a size of {value_text(size)}; need a whole number")
        return size


def create(
    cls: type[Operation],
    operands: Sequence[SSAValue],
    properties: Mapping[str, Attribute],
    attributes: Mapping[str, Attribute],
    regions: Sequence[Region],
    types: Sequence[Attribute] | None,
    default: Sequence[Attribute] | None,
) -> Operation:
    """A new operation, with the types of its results inferred if the rule does not give them.

    Raises VerifyException or TypesUnknownError if they cannot be inferred.

    Args:
        types: from the rule. Without them, the types are inferred, or else are the default.
    """
    if types is None and issubclass(cls, InfersFor):
        return _created_for(cls, operands, properties, attributes, regions, default or ())
    inferred = types if types is not None else _constrained(cls)
    start = inferred if inferred is not None else default
    infers = types is None and (_infers(cls) or has_infer_all(cls))
    op = cls.create(
        operands=operands,
        # An operation that infers its type may not have one yet.
        result_types=[tensor_type(NoneAttr(), [])] if infers or start is None else start,
        properties=dict(properties),
        attributes=dict(attributes),
        regions=regions,
        location=UNKNOWN_LOC,
    )
    if infers:
        return with_inferred_types(op)
    if start is None:
        raise TypesUnknownError("the type of its result cannot be inferred; write it after a colon")
    return op


def _created_for(
    cls: type[Operation],
    operands: Sequence[SSAValue],
    properties: Mapping[str, Attribute],
    attributes: Mapping[str, Attribute],
    regions: Sequence[Region],
    wanted: Sequence[Attribute],
) -> Operation:
    """A new operation that infers its types with those of the values that it replaces."""

    def created(types: Sequence[Attribute], regions: Sequence[Region]) -> Operation:
        return cls.create(
            operands=operands,
            result_types=types,
            properties=dict(properties),
            attributes=dict(attributes),
            regions=regions,
            location=UNKNOWN_LOC,
        )

    draft = created((), ())
    try:
        types = cast(InfersFor, draft).infer_for(wanted)
    finally:
        draft.operands = []
    return created(types, regions)


@cache
def verifies_alike(one: type[Operation], other: type[Operation]) -> bool:
    """Whether operations of two classes are well formed in the same cases: both have the same
    definition but for the name, and make the same further checks, if any."""
    if not (issubclass(one, IRDLOperation) and issubclass(other, IRDLOperation)):
        return False
    a, b = one.get_irdl_definition(), other.get_irdl_definition()
    alike = all(
        getattr(a, each) == getattr(b, each)
        for each in ("operands", "results", "properties", "attributes", "regions", "successors")
    )
    alike = alike and a.options == b.options and a.traits.traits == b.traits.traits
    return alike and _further_checks(one) == _further_checks(other)


def _further_checks(cls: type[Operation]) -> object:
    """The checks of a class that its definition does not imply, which xDSL calls with it."""
    own = cls.verify_
    cells = dict(zip(own.__code__.co_freevars, own.__closure__ or (), strict=True))
    # A class that xDSL has not wrapped is like itself alone.
    return cells["custom_verify"].cell_contents if "custom_verify" in cells else own


@cache
def _infers(cls: type[Operation]) -> bool:
    """True if the operation infers the type of its only result."""
    return (
        issubclass(cls, IRDLOperation)
        and has_infer(cls)
        and len(cls.get_irdl_definition().results) == 1
    )


@cache
def _constrained(cls: type[Operation]) -> Sequence[Attribute] | None:
    """The result types, if the definition determines them; else None."""
    if not issubclass(cls, IRDLOperation):
        return None
    results = cls.get_irdl_definition().results
    names: set[str] = set()
    if any(isinstance(each, VarResultDef) for _, each in results):
        return None
    if not all(each.constr.can_infer(names, length_known=True) for _, each in results):
        return None
    return [
        each for _, result in results for each in result.constr.infer(InferenceContext(), length=1)
    ]


def builds(rule: Rule) -> list[Build]:
    """The operations of a right side, outer operations before those nested in them."""
    pending: list[Build | Reference | Rest] = [*(let.build for let in rule.lets), *rule.results]
    found: list[Build] = []
    while pending:
        each = pending.pop(0)
        if isinstance(each, Build):
            found.append(each)
            pending = [*each.operands, *pending]
    return found
