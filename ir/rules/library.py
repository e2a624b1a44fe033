"""Guards, functions and classes of operations written in Python, by the names rules use.

    @guard
    def one_use(value: SSAValue) -> bool: ...

    @function
    def rank(value: SSAValue) -> int: ...

    @op_class
    def unary(cls: type[Operation]) -> bool: ...

The kinds of their arguments follow from the annotations. A rule that passes another kind is refused
before it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import wraps
from math import prod
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Attribute, Operation, SSAValue

from ..open_types import is_certain
from ..support.errors import InputError
from .bounded import checked_length, product_of
from .values import tensor_parts

F = TypeVar("F", bound=Callable[..., Any])
A = TypeVar("A")
R = TypeVar("R")

KINDS: dict[str, tuple[object, ...]] = {
    "value": (SSAValue,),
    "values": (Sequence[SSAValue], tuple[SSAValue, ...], list[SSAValue]),
    "op": (Operation,),
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "string": (str,),
    "ints": (Sequence[int], tuple[int, ...], list[int]),
    "floats": (Sequence[float], tuple[float, ...], list[float]),
    "attribute": (Attribute,),
    "any": (object, Any),
}
"""The kinds of names in a rule, with the annotations that mean them in Python."""


Subject: TypeAlias = Literal["types", "program", "elements"]
"""What a guard or function reads.

types: the types and attributes that it is given, nothing else. Its result is a formula of the sizes
in them, so that proofs may evaluate it at some sizes.
program: the program around the match. It says nothing of values, so proofs need not assume it.
elements: the elements of its argument, of which it promises something.
"""


@dataclass(frozen=True)
class Meaning:
    """What a guard or function means to a proof.

    Attributes:
        promises: for a guard on elements, the expressions of `a`, an element of its argument, that
            are true if the guard holds.
        only: for a guard on elements, whether it can hold for a value, by its type.
    """

    subject: Subject
    promises: tuple[Any, ...] = ()
    only: Callable[[Any], bool] | None = None


@dataclass(frozen=True)
class Function:
    """A guard or function.

    Attributes:
        kinds: of its parameters.
        result: the kind of its result.
        optional: for each parameter, True if it may be none.
        meaning: what it means to proofs; None if nobody has said it.
    """

    name: str
    kinds: tuple[str, ...]
    optional: tuple[bool, ...]
    result: str
    call: Callable[..., Any]
    meaning: Meaning | None = None

    @property
    def is_guard(self) -> bool:
        """True if it returns a bool, and can therefore be used alone as a condition."""
        return self.result == "bool"

    @property
    def document(self) -> str:
        """The first line of its docstring."""
        return (self.call.__doc__ or "").strip().partition("\n")[0]


FUNCTIONS: dict[str, Function] = {}
CLASSES: dict[str, Callable[[type[Operation]], bool]] = {}


def guard(call: F) -> F:
    """Let rules call a predicate as a condition. Raises InputError as `function` does."""
    return _register(call, "bool")


def function(call: F) -> F:
    """Let rules compute attributes and sizes with a function.

    The function must depend only on its arguments, and change nothing. Raises InputError for an
    annotation that is not a kind, and for a name that another function already has.
    """
    return _register(call, None)


def means(
    subject: Subject, *promises: Any, only: Callable[[Any], bool] | None = None
) -> Callable[[F], F]:
    """Say what a guard or function means, so that rules that call it can be proved for all sizes.

        @means("types")
        @guard
        def same_type(a: SSAValue, b: SSAValue) -> bool: ...

    Args:
        promises: for a guard on elements, what is true of each element `a` of its argument:
            expressions of scalar functions.
        only: for a guard on elements, whether it can hold for a value, by its type.
    """

    def say(call: F) -> F:
        name = _name(call)
        FUNCTIONS[name] = replace(FUNCTIONS[name], meaning=Meaning(subject, promises, only))
        return call

    return say


def op_class(belongs: F) -> F:
    """Let patterns use a class of operations: those for which the predicate is true."""
    name = _name(belongs)
    _check_free(name, CLASSES.get(name), belongs)
    CLASSES[name] = belongs
    return belongs


def forget(module: str) -> None:
    """Remove what a module registered, before the module runs again."""
    for name, each in list(FUNCTIONS.items()):
        if each.call.__module__ == module:
            del FUNCTIONS[name]
    for name, belongs in list(CLASSES.items()):
        if belongs.__module__ == module:
            del CLASSES[name]


_found: ContextVar[dict[tuple[object, int], Any] | None] = ContextVar("found", default=None)


@contextmanager
def one_application() -> Generator[None]:
    """Within the block, a pass applies its rules, and results of once_a_pass are kept."""
    token = _found.set({})
    try:
        yield
    finally:
        _found.reset(token)


def once_a_pass(call: Callable[[A], R]) -> Callable[[A], R]:
    """Call a function once per object while a pass applies its rules, and keep the result.

    Use it for facts that the rules do not change. Guards that looked through the whole module at
    each attempt would make a pass quadratic.
    """

    @wraps(call)
    def asked(of: A) -> R:
        found = _found.get()
        if found is None:
            return call(of)
        key = (call, id(of))
        if key not in found:
            found[key] = call(of)
        return found[key]

    return asked


def _register(call: F, wanted: str | None) -> F:
    name = _name(call)
    hints = get_type_hints(call)
    result = _kind(hints.pop("return", None), f"what {name} returns")[0]
    if wanted is not None and result != wanted:
        raise InputError(f"guard {name} returns {result}; need bool")
    parameters = [_kind(hint, f"{name}: parameter {key}") for key, hint in hints.items()]
    found = FUNCTIONS.get(name)
    _check_free(name, found.call if found else None, call)
    FUNCTIONS[name] = Function(
        name, tuple(k for k, _ in parameters), tuple(o for _, o in parameters), result, call
    )
    return call


def _name(call: Callable[..., Any]) -> str:
    return cast(str, getattr(call, "__name__", "?"))


def _check_free(name: str, found: Callable[..., Any] | None, new: Callable[..., Any]) -> None:
    """Raise InputError if another file registered the name. A file that is loaded again may
    replace its own entries."""

    def home(call: Callable[..., Any]) -> tuple[object, object]:
        return getattr(call, "__module__", None), getattr(call, "__qualname__", None)

    if found is not None and home(found) != home(new):
        raise InputError(
            f"{name} of {home(new)[0]}: {home(found)[0]} has one already; need another name"
        )


def _kind(hint: object, what: str) -> tuple[str, bool]:
    """The kind that an annotation means, and whether the parameter may be none."""
    optional = False
    if get_origin(hint) in (Union, UnionType):
        inner = [each for each in get_args(hint) if each is not NoneType]
        optional = len(inner) < len(get_args(hint))
        hint = inner[0] if len(inner) == 1 else hint
    for kind, spellings in KINDS.items():
        if any(hint == each for each in spellings):
            return kind, optional
    origin = get_origin(hint) or hint
    if isinstance(origin, type):
        for kind, base in (("op", Operation), ("value", SSAValue), ("attribute", Attribute)):
            if issubclass(origin, base):
                return kind, optional
    raise InputError(
        f"{what} is annotated {hint}; need a kind of value that rules know: "
        "SSAValue, Operation, Attribute, int, float, bool, str, or a tuple of them"
    )


# What every rule may use


@means("program")
@guard
def one_use(value: SSAValue) -> bool:
    """Whether the value is used by exactly one operand."""
    return value.has_one_use()


@means("types")
@guard
def same_type(a: SSAValue, b: SSAValue) -> bool:
    """Whether two values have the same type, of which all is known."""
    return a.type == b.type and is_certain(a.type)


@means("types")
@guard
def same_shape(a: SSAValue, b: SSAValue) -> bool:
    """Whether two tensors have the same shape, with any element types."""
    return _shape(a) == _shape(b)


@means("types")
@function
def rank(value: SSAValue) -> int:
    """The number of axes of a tensor."""
    return len(_sizes(value))


@means("types")
@function
def shape(value: SSAValue) -> tuple[int, ...]:
    """The sizes of a tensor's axes."""
    return _shape(value)


@means("types")
@function
def size(value: SSAValue) -> int:
    """The number of elements of a tensor."""
    return prod(_shape(value))


@means("types")
@function
def length(values: tuple[int, ...]) -> int:
    """The length of a list of numbers."""
    return len(values)


@means("types")
@function
def product(values: tuple[int, ...]) -> int:
    """The product of a list of numbers; 1 for an empty list."""
    return product_of(values)


@means("types")
@function
def total(values: tuple[int, ...]) -> int:
    """The sum of a list of numbers."""
    return sum(values)


@means("types")
@function
def at(values: tuple[int, ...], index: int) -> int:
    """One number of a list. Index -1 is the last."""
    if not -len(values) <= index < len(values):
        raise InputError(f"number {index} of {list(values)}: there are {len(values)}")
    return values[index]


@means("types")
@function
def counted(count: int) -> tuple[int, ...]:
    """The list [0, 1, ..., count - 1]."""
    checked_length(count)
    return tuple(range(count))


@means("types")
@function
def repeated(value: int, count: int) -> tuple[int, ...]:
    """A list that repeats one number count times."""
    checked_length(count)
    return (value,) * count


@means("types")
@function
def element(value: SSAValue) -> Attribute:
    """The element type of a tensor."""
    parts = tensor_parts(value.type)
    if parts is None:
        raise InputError(f"element of a value of type {value.type}; need a tensor")
    return parts[1]


def _shape(value: SSAValue) -> tuple[int, ...]:
    sizes = _sizes(value)
    if DYNAMIC_INDEX in sizes:
        raise InputError(f"shape of a value of type {value.type}; need one whose sizes are known")
    return sizes


def _sizes(value: SSAValue) -> tuple[int, ...]:
    parts = tensor_parts(value.type)
    if parts is None:
        raise InputError(f"shape of a value of type {value.type}; need a tensor")
    return parts[0]
