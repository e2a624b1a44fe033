"""Calls by which models reach operations of users: their names, and building the operations.

A node of a domain of one's own in ONNX, a custom call of StableHLO and a custom operator of PyTorch
all give a name, operands, and attributes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from traceback import walk_tb
from types import TracebackType

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.traits import Pure

from ..ir.rules.build import TypesUnknownError, create
from ..ir.rules.values import Plain, attribute_of
from ..ir.rules.vocabulary import Attributed, OpInfo, op_info
from ..ir.support.errors import InputError, one_line
from ..ir.support.suggestions import similar_names, suggestion
from ..ir.support.user_entries import add_entry
from ..ir.upstream import VerifyException
from .levels import USERS_DIALECTS

KINDS: Mapping[str, str] = {
    "int": "an integer",
    "float": "a number",
    "string": "a text",
    "ints": "a list of integers",
    "floats": "a list of numbers",
    "bool": "true or false",
}
"""What attributes may be, in messages, by the kind of their definition."""


@dataclass(frozen=True)
class ModelCall:
    """A name by which models call an operation of a user's.

    SOFTSIGN = ModelCall("com.example.Softsign", SoftsignOp, {"alpha": "slope"})

    Without one, an operation is called by its own name: "mine.softsign".

    Attributes:
        name: a domain of ONNX or a namespace of PyTorch, a dot, and an operator; or the target of a
            custom call.
        op: the operation.
        attributes: names of the operation's attributes, by the names that models use for them.
    """

    name: str
    op: type[Operation]
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def info(self) -> OpInfo:
        """The definition of the operation."""
        return op_info(self.op)

    @cached_property
    def known(self) -> Mapping[str, Attributed]:
        """The operation's attributes, by the names that models use for them."""
        others = {own: name for name, own in self.attributes.items()}
        return {others.get(name, name): each for name, each in self.info.attributes.items()}

    @property
    def is_pure(self) -> bool:
        """Whether the operation does nothing but compute its results."""
        return self.op.has_trait(Pure)


MODEL_CALLS: dict[str, ModelCall] = {}
"""The names that extensions declare."""


def register_model_call(call: ModelCall, owner: str) -> None:
    """Let models call an operation by a name.

    Raises InputError if the name is taken, and if the operation lacks an attribute that is renamed.
    """
    for name in call.attributes.values():
        if name not in call.info.attributes:
            hint = suggestion(name, call.info.attributes)
            raise InputError(
                f"{owner}: call {call.name!r}: {call.op.name} has no attribute {name!r}{hint}"
            )
    add_entry(MODEL_CALLS, "call", call.name, call, owner)


def model_call(name: str) -> ModelCall | None:
    """What a model's name calls; None if no extension knows the name."""
    found = MODEL_CALLS.get(name)
    if found is not None:
        return found
    dialect = USERS_DIALECTS.get(name.partition(".")[0])
    named = (op for op in dialect.operations if op.name == name) if dialect else ()
    return next((ModelCall(name, op) for op in named), None)


def callable_names() -> list[str]:
    """All names that models may call."""
    ops = (op.name for dialect in USERS_DIALECTS.values() for op in dialect.operations)
    return [*MODEL_CALLS, *ops]


def loaded_like(name: str) -> str:
    """Text to append to "no such name": the names of extensions that are like it."""
    near = similar_names(name, callable_names())
    return f"; did you mean {' or '.join(near)} of a file that was loaded?" if near else ""


def called_operation(
    call: ModelCall,
    operands: Sequence[SSAValue],
    given: Mapping[str, Plain],
    types: Sequence[Attribute] | None = None,
) -> Operation:
    """The operation that a call stands for, with results of the types that it infers.

    Raises VerifyException for operands, attributes or types of results that do not fit. If the
    operation's own code fails, the message has the line in the user's file.

    Args:
        given: the values of attributes, by the names that the model uses. An integer may be a
            flag.
        types: of the results, as the model declares them; None if it does not.
    """
    name, info = call.op.name, call.info
    if info.segmented or info.regions:
        what = "regions" if info.regions else "operands of which each may be absent or several"
        raise VerifyException(f"{name} has {what}, so no model can call it")
    if not info.takes(len(operands)):
        raise VerifyException(f"{len(operands)} operands; {name} takes {_operands(call)}")
    for key in given:
        if key not in call.known:
            hint = suggestion(key, call.known)
            raise VerifyException(f"{name} has no attribute {key!r}{hint}")
    properties: dict[str, Attribute] = {}
    attributes: dict[str, Attribute] = {}
    for key, known in call.known.items():
        found = _attribute(call, key, known, given.get(key))
        if found is not None:
            (properties if known.is_property else attributes)[known.name] = found
    try:
        op = create(call.op, operands, properties, attributes, [], None, types)
        op.verify(verify_nested_ops=False)
    except MemoryError:
        raise
    except TypesUnknownError:
        raise VerifyException(
            f"the types of the results of {name} do not follow from its operands; give it a method "
            "infer"
        ) from None
    except Exception as error:
        raise VerifyException(_described(call.op, error)) from error
    made = [each.type for each in op.results]
    if types is not None and made != list(types):
        wanted = ", ".join(map(str, types)) or "none"
        op.erase()
        raise VerifyException(
            f"the model declares results {wanted}; {name} has {', '.join(map(str, made))}"
        )
    return op


def _operands(call: ModelCall) -> str:
    """The operands of an operation in messages: how many, and their names."""
    least, most = call.info.least, call.info.most
    ends = f"{least}" if least == most else f"{least}..{most}"
    count = f"{least} or more" if most is None else ends
    if not issubclass(call.op, IRDLOperation):
        return count
    names = [name for name, _ in call.op.get_irdl_definition().operands]
    return f"{count} ({', '.join(names)})" if names else count


def _attribute(call: ModelCall, key: str, known: Attributed, given: Plain) -> Attribute | None:
    """The attribute for a value that a model gives; None if it has none and needs none."""
    if given is None:
        if known.default is None and not known.is_optional:
            raise VerifyException(f"attribute {key} of {call.op.name} is missing")
        return known.default
    kind = known.kind
    if kind == "bool" and type(given) is int and given in (0, 1):
        given = bool(given)
    if given is False and kind == "bool" and known.is_optional:
        return None
    why = ""
    try:
        found = attribute_of(given, known.definition.constr)
    except ValueError as error:
        found, why = None, f" ({one_line(error)})"
    if found is None:
        wanted = KINDS.get(kind, "another kind of value")
        raise VerifyException(
            f"attribute {key} of {call.op.name} is {_text(given)}; need {wanted}{why}"
        )
    return found


def _text(given: Plain) -> str:
    """A value in messages, cut if it is long."""
    shown = f"the text {given!r}" if isinstance(given, str) else str(given)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _described(op: type[Operation], error: Exception) -> str:
    """The text of an error. Unless a verifier raised it, it begins with the line of the operation's
    file that did.
    """
    if isinstance(error, VerifyException):
        return str(error)
    file = getattr(sys.modules.get(op.__module__), "__file__", None)
    line = _line_in(file, error.__traceback__)
    where = "" if line is None else f"{file}:{line}: "
    return f"{where}{one_line(error)}"


def _line_in(file: str | None, traceback: TracebackType | None) -> int | None:
    """The line of a file that a traceback last went through; None if it did not."""
    lines = [line for frame, line in walk_tb(traceback) if frame.f_code.co_filename == file]
    return lines[-1] if lines else None
