"""A faster version of xDSL's check of an operation against its definition.

xDSL interprets the definition again for every operation that it checks. This module prepares a
check once per definition. If an operation does not pass it, xDSL checks the operation again and
raises its own error. A definition that constrains more than numbers and kinds is left to xDSL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.func import CallOp, CallOpSymbolUserOpInterface, FuncOp
from xdsl.ir import Attribute, Operation, OpTrait, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrConstraint,
    AttributeDef,
    BaseAttr,
    EqAttrConstraint,
    EqIntConstraint,
    IRDLOperation,
    OpDef,
    OperandDef,
    OptAttributeDef,
    OptionalDef,
    OptPropertyDef,
    ParamAttrConstraint,
    PropertyDef,
    RangeConstraint,
    RangeLengthConstraint,
    RangeOf,
    ResultDef,
    VariadicDef,
    VerificationContext,
)
from xdsl.traits import IsolatedFromAbove, SymbolTable

from ..upstream import VerifyException, irdl_op_verify_regions
from .cached_by_form import cached_by_form
from .fields import operands_of, successors_of

_Test = Callable[[Attribute], bool]


def speed_up_check(op_class: type[Operation]) -> None:
    """Replace the check of a class by a faster one, with the same verdicts and errors."""
    if issubclass(op_class, IRDLOperation):
        definition = op_class.get_irdl_definition()
        check = _Check.of(definition)
        if check is not None:
            vars(definition)["verify"] = check


@dataclass(frozen=True)
class _Arguments:
    """A check of the operands or of the results: single ones, at most one list, single ones.

    Attributes:
        before, after: a test per single value before and after the list.
        between: the test of each value in the list; None without a list.
        most: the greatest length of the list; None for any.
    """

    before: tuple[_Test, ...]
    between: _Test | None
    most: int | None
    after: tuple[_Test, ...]

    @staticmethod
    def of(definitions: Iterable[OperandDef | ResultDef]) -> _Arguments | None:
        """The check that definitions describe; None if only xDSL can check them."""
        before: list[_Test] = []
        after: list[_Test] = []
        between: _Test | None = None
        most: int | None = 0
        for each in definitions:
            variadic = isinstance(each, VariadicDef)
            test = _range_test(each.constr, variadic)
            if test is None or (variadic and between is not None):
                return None
            if variadic:
                between, most = test, 1 if isinstance(each, OptionalDef) else None
            else:
                (before if between is None else after).append(test)
        return _Arguments(tuple(before), between, most, tuple(after))

    def hold(self, values: Sequence[SSAValue]) -> bool:
        first, last = len(self.before), len(self.after)
        between = len(values) - first - last
        if between < 0 or (self.most is not None and between > self.most):
            return False
        for test, value in zip(self.before, values, strict=False):
            if not test(value.type):
                return False
        if self.between is None:
            return True
        for value in values[first : first + between]:
            if not self.between(value.type):
                return False
        return all(
            test(value.type)
            for test, value in zip(self.after, values[first + between :], strict=True)
        )


@dataclass
class _Check:
    """The faster check of one definition.

    Attributes:
        properties, attributes: for each, its name, its test, and whether it may be absent.
        own_checks: the checks that the operation's traits make.
        traits: the traits from which own_checks was made, to notice when traits are added.
    """

    definition: OpDef
    operands: _Arguments
    results: _Arguments
    properties: tuple[tuple[str, _Test, bool], ...]
    attributes: tuple[tuple[str, _Test, bool], ...]
    traits: frozenset[OpTrait] | None = None
    own_checks: tuple[Callable[[Operation], None], ...] = ()

    def __post_init__(self) -> None:
        self.holds = cached_by_form(self._holds)

    @staticmethod
    def of(definition: OpDef) -> _Check | None:
        """The check of a definition; None if only xDSL can check it."""
        operands = _Arguments.of(each for _, each in definition.operands)
        results = _Arguments.of(each for _, each in definition.results)
        properties, attributes = _named(definition.properties), _named(definition.attributes)
        if operands is None or results is None or properties is None or attributes is None:
            return None
        if definition.options or definition.successors:
            return None
        return _Check(definition, operands, results, properties, attributes)

    def __call__(self, op: Operation) -> None:
        """Raise VerifyException if an operation does not match its definition."""
        if successors_of(op) or not self.holds(op):
            OpDef.verify(self.definition, op)
            return
        traits = self.definition.traits.traits
        if traits is not self.traits:
            checked = (each for each in traits if type(each).verify is not OpTrait.verify)
            self.own_checks, self.traits = tuple(map(_check_of, checked)), traits
        for check in self.own_checks:
            check(op)

    def _holds(self, op: Operation) -> bool:
        if not (
            self.operands.hold(operands_of(op))
            and self.results.hold(op.results)
            and _present(self.properties, op.properties) == len(op.properties)
            and _present(self.attributes, op.attributes) is not None
        ):
            return False
        if not self.definition.regions:
            return not op.regions
        try:
            irdl_op_verify_regions(op, self.definition, VerificationContext())
        except VerifyException:
            return False
        return True


def _check_of(trait: OpTrait) -> Callable[[Operation], None]:
    """The check that a trait makes, or a faster one with the same verdicts and errors."""
    surely_holds = _FASTER.get(type(trait))
    if surely_holds is None:
        return trait.verify

    def check(op: Operation) -> None:
        if not surely_holds(op):
            trait.verify(op)

    return check


def _uses_its_own_values(op: Operation) -> bool:
    """Whether all values that are read in an operation are defined in it.

    Operations that are isolated from above by themselves are left out.
    """
    made: set[int] = set()
    read: set[int] = set()
    waiting = [*op.regions]
    while waiting:
        for block in waiting.pop().blocks:
            made.update(map(id, block.args))
            each = block.first_op
            while each is not None:
                read.update(map(id, operands_of(each)))
                made.update(map(id, each.results))
                if each.regions and not each.has_trait(IsolatedFromAbove):
                    waiting += each.regions
                each = each.next_op
    return read <= made


_FUNCTIONS = "_functions_by_name"


def _calls_a_function_of_its_types(op: Operation) -> bool:
    """Whether a call fits the function of its name in the symbol table around it.

    xDSL looks through the whole table for every call. The functions of a table are found once, and
    again when a name is not where it was.
    """
    table: Operation | None = op
    while table is not None and not table.has_trait(SymbolTable):
        table = table.parent_op()
    if table is None or not isinstance(op, CallOp):
        return False
    name, block = op.callee.root_reference.data, table.regions[0].first_block
    known: dict[str, FuncOp] = getattr(table, _FUNCTIONS, {})
    found = known.get(name)
    if found is None or found.parent is not block or found.sym_name.data != name:
        ops = () if block is None else block.ops
        known = {each.sym_name.data: each for each in ops if isinstance(each, FuncOp)}
        setattr(table, _FUNCTIONS, known)
        found = known.get(name)
    if found is None or op.callee.nested_references.data:
        return False
    kinds = found.function_type
    return kinds.inputs.data == tuple(value.type for value in op.arguments) and (
        kinds.outputs.data == tuple(value.type for value in op.results)
    )


_FASTER: Mapping[type[OpTrait], Callable[[Operation], bool]] = {
    IsolatedFromAbove: _uses_its_own_values,
    CallOpSymbolUserOpInterface: _calls_a_function_of_its_types,
}
"""For some traits, a function that says whether an operation surely has the trait. If not, xDSL
checks it."""


def _present(
    wanted: tuple[tuple[str, _Test, bool], ...], found: Mapping[str, Attribute]
) -> int | None:
    """The number of attributes that are present; None if one is missing or fails its test."""
    count = 0
    for name, test, optional in wanted:
        attribute = found.get(name)
        if attribute is None:
            if not optional:
                return None
        elif test(attribute):
            count += 1
        else:
            return None
    return count


def _named(
    definitions: Mapping[str, PropertyDef] | Mapping[str, AttributeDef],
) -> tuple[tuple[str, _Test, bool], ...] | None:
    found: list[tuple[str, _Test, bool]] = []
    for name, each in definitions.items():
        test = _test(each.constr)
        if test is None:
            return None
        found.append((name, test, isinstance(each, OptPropertyDef | OptAttributeDef)))
    return tuple(found)


def _range_test(constraint: RangeConstraint, variadic: bool) -> _Test | None:
    """A test for each value in a list, or for a single value; None if only xDSL can check it.

    Args:
        variadic: whether the values are a list.
    """
    if not variadic and isinstance(constraint, RangeLengthConstraint):
        if constraint.length != EqIntConstraint(1):
            return None
        constraint = constraint.constraint
    return _test(constraint.constr) if isinstance(constraint, RangeOf) else None


def _test(constraint: AttrConstraint) -> _Test | None:
    """A test whether an attribute satisfies a constraint; None if the constraint uses variables."""
    if isinstance(constraint, AnyAttr):
        return _always
    if isinstance(constraint, BaseAttr):
        return _is_a(constraint.attr)
    if isinstance(constraint, EqAttrConstraint):
        return _equals(constraint.attr)
    if isinstance(constraint, ParamAttrConstraint):
        made = cast(ParamAttrConstraint[ParametrizedAttribute], constraint)
        return _is_made_of(_is_a(made.base_attr), made.param_constrs)
    return None if constraint.variables() else constraint.verifies


def _always(attribute: Attribute) -> bool:
    del attribute
    return True


def _is_a(kind: type[Attribute]) -> _Test:
    # Compare the class first: isinstance is slow for abstract classes.
    return lambda attribute: type(attribute) is kind or isinstance(attribute, kind)


def _equals(wanted: Attribute) -> _Test:
    return lambda attribute: attribute is wanted or attribute == wanted


def _is_made_of(kind: _Test, constraints: Sequence[AttrConstraint]) -> _Test | None:
    tests = [test for each in constraints if (test := _test(each)) is not None]

    def holds(attribute: Attribute) -> bool:
        if not kind(attribute):
            return False
        assert isinstance(attribute, ParametrizedAttribute)
        parameters = attribute.parameters
        return len(parameters) == len(tests) and all(
            test(parameter) for test, parameter in zip(tests, parameters, strict=True)
        )

    return holds if len(tests) == len(constraints) else None
