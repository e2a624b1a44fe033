"""Reads a program of StableHLO as a module of the stablehlo dialect."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    Builtin,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    StringAttr,
)
from xdsl.dialects.func import Func, FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation

from ....dialects import stablehlo
from ....dialects.blob_attr import BlobAttr
from ....dialects.levels import SOURCE_DIALECTS, load_dialect
from ....ir.blob import Blob
from ....ir.provenance import named, place
from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ....ir.text import parse_module
from ....ir.upstream import Context, ModuleOp, UnregisteredOp, VerifyException
from ....ir.well_known import ENTRY
from ....passes.complex_pairs.signature import real_signature
from ....passes.convert_stablehlo_to_nn import refusals
from ....passes.stablehlo_to_nn.conversion import ADVICE
from ..building import Names
from ..errors import UnsupportedError
from ..front_end import Reading
from ..uses import Use, Used, gathered, several_refused
from .forms import generic_text
from .in_memory import model_in_memory
from .names import name_all, operation_name, parts_of
from .weights import hold_weights

RESULT = "jax.result_info"
"""The attribute of a result that says where it is in what the user's function returns."""


def read_stablehlo(model: Any, reading: Reading) -> ModuleOp:
    """The module of a program, of the level stablehlo.

    Raises InputError for a damaged program, and UnsupportedError for what abele does not lower.
    """
    module, weights = _parsed(model, reading.place)
    main = _tidy(module, reading.place)
    _check_registered(module, reading.place)
    given = () if reading.weights is None else reading.weights.arrays
    hold_weights(module, main, weights, given, reading.place)
    return module


def uses_of(model: Any, reading: Reading) -> tuple[list[Use], str]:
    """The operations of a program, and why some could not be checked: "" if all were."""
    module, _ = _parsed(model, reading.place)
    _tidy(module, reading.place)
    unknown = {id(op) for op in _unregistered(module)}
    problem = ""
    why = dict[int, str]()
    if not unknown:
        for op in module.walk():
            _check(op, reading.place)
        why = {id(op): text for op, text in refusals(module)}
    else:
        problem = "it has operations that abele does not know"
    nodes = [
        Used(
            operation_name(op),
            "stablehlo" if id(op) not in unknown else "",
            place(op),
            "abele does not know it" if id(op) in unknown else why.get(id(op), ""),
        )
        for op in _operations(module)
    ]
    return gathered(nodes), problem


# Parsing


def _parsed(model: Any, place: str) -> tuple[ModuleOp, Mapping[str, Array]]:
    """The module of a file or of a model in memory, and the values of some of its arguments."""
    if not isinstance(model, str | os.PathLike):
        found = model_in_memory(model)
        return parse_stablehlo(found.text, place), found.weights
    file = Path(cast("str | os.PathLike[str]", model))
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror}") from None
    return parse_stablehlo(generic_text(data, place, file), place), {}


def parse_stablehlo(text: str, place: str) -> ModuleOp:
    """The module of a generic text. Raises InputError."""
    # Operations that abele does not know are listed all at once, so the parser must not refuse the
    # first one.
    context = Context(allow_unregistered=True)
    for dialect in (Builtin, Func, *map(load_dialect, SOURCE_DIALECTS)):
        context.load_dialect(dialect)
    return parse_module(text, context, place, foreign=True)


def _operations(module: ModuleOp) -> Iterator[Operation]:
    """The operations that compute something."""
    ends = ("func.return", "stablehlo.return", "builtin.module", "func.func")
    return (op for op in module.walk() if op.name not in ends)


def _unregistered(module: ModuleOp) -> Iterator[UnregisteredOp]:
    return (op for op in module.walk() if isinstance(op, UnregisteredOp))


def _check_registered(module: ModuleOp, where: str) -> None:
    """Raise UnsupportedError if abele does not know some operations. The message lists all."""
    unknown = [(operation_name(op), place(op)) for op in _unregistered(module)]
    if not unknown:
        return
    error = several_refused(where, unknown, ADVICE)
    if error is None:
        name, node = unknown[0]
        error = UnsupportedError(f"{where}: node {node!r}: {name} is not supported; {ADVICE}")
    raise error


def _check(op: Operation, where: str) -> None:
    """Raise InputError for an operation that breaks its own rules."""
    try:
        op.verify_()
    except VerifyException as error:
        raise InputError(f"{where}: node {place(op)!r}: {op.name}: {error}") from None


# What abele's programs have


def _tidy(module: ModuleOp, where: str) -> FuncOp:
    """Give operations and arguments their names, and drop what says nothing to abele.

    Returns the function that a run begins in.
    """
    if len(module.body.blocks) != 1:
        raise InputError(f"{where}: a module with {len(module.body.blocks)} blocks; need 1")
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    for each in functions:
        for needed in ("sym_name", "function_type"):
            if needed not in each.properties:
                raise InputError(f"{where}: node {place(each)!r}: func.func without {needed}")
    main = _entry(functions, where)
    _check_processes(module, where)
    module.attributes.clear()
    module.properties.clear()
    for each in functions:
        _check_body(each, where, (ReturnOp,) if each is main else (ReturnOp, stablehlo.ReturnOp))
        arguments = [_said(value.location) for value in each.body.block.args]
        results = _result_names(each)
        if each is main:
            each.properties["sym_name"] = StringAttr(ENTRY)
            each.properties.pop("sym_visibility", None)
            # A dump of abele names them itself.
            if "arg_names" not in each.attributes:
                _set_names(each, "arg_names", arguments, "arg")
            if "result_names" not in each.attributes:
                _set_names(each, "result_names", results, "result")
        each.attributes = {k: v for k, v in each.attributes.items() if k in _KEPT}
        for name in ("arg_attrs", "res_attrs"):
            each.properties.pop(name, None)
    real_signature(main)
    name_all(_operations(module))
    for each in functions:
        each.location = named(each.sym_name.data)
        end = each.body.block.last_op
        assert end is not None
        end.location = each.location
    _hold_large_constants(module)
    return main


PROCESSES = {
    "stablehlo.partition_id": "mhlo.num_partitions",
    "stablehlo.replica_id": "mhlo.num_replicas",
}
"""The attribute of a module that says among how many processes each operation numbers them."""


def _check_processes(module: ModuleOp, where: str) -> None:
    """Raise UnsupportedError if a program of several processes asks for its number."""
    held = {**module.attributes, **module.properties}
    for op in module.walk():
        count = held.get(PROCESSES.get(op.name, ""))
        if isinstance(count, IntegerAttr) and count.value.data > 1:
            raise UnsupportedError(
                f"{where}: node {place(op)!r}: {op.name} among {count.value.data} processes is not "
                "supported; a program runs as one process"
            )


_KEPT = ("arg_names", "result_names")


def _entry(functions: Sequence[FuncOp], where: str) -> FuncOp:
    """The function that a run begins in: @main, or the only one that is not private."""
    named_so = [each for each in functions if each.sym_name.data == ENTRY]
    public = [
        each
        for each in functions
        if each.sym_visibility is None or each.sym_visibility.data == "public"
    ]
    found = named_so or public
    if len(found) != 1:
        raise InputError(f"{where}: need a function @{ENTRY}, or one function that is not private")
    return found[0]


def _check_body(function: FuncOp, where: str, ends: tuple[type[Operation], ...]) -> None:
    """Raise InputError unless a function has one block, which ends with one of some operations.

    JAX ends the functions that compare elements for ApproxTopK with stablehlo.return.
    """
    blocks = tuple(function.body.blocks)
    if len(blocks) != 1 or not isinstance(blocks[0].last_op, ends):
        name = function.sym_name.data
        raise InputError(f"{where}: @{name}: need one block, which ends with func.return")


def _said(location: Any) -> str:
    return parts_of(location)[0]


def _result_names(function: FuncOp) -> list[str]:
    attributes = function.res_attrs
    if attributes is None:
        return [""] * len(function.function_type.outputs)
    return [_text(each.data.get(RESULT)) for each in attributes]


def _text(attribute: Attribute | None) -> str:
    return attribute.data if isinstance(attribute, StringAttr) else ""


def _set_names(function: FuncOp, attribute: str, names: Sequence[str], default: str) -> None:
    taken = Names()
    found = [taken.unique(name or f"{default}{i}") for i, name in enumerate(names)]
    function.attributes[attribute] = ArrayAttr(map(StringAttr, found))


def _hold_large_constants(module: ModuleOp) -> None:
    """Let blobs hold large constants, so that dumps and comparisons do not write them out."""
    for op in module.walk():
        # A constant without a value is refused later, by the check of the operation.
        value = op.properties.get("value") if isinstance(op, stablehlo.ConstantOp) else None
        if isinstance(op, stablehlo.ConstantOp) and isinstance(value, DenseIntOrFPElementsAttr):
            try:
                array = op.array
            except ValueError:
                # The check of the operation says which type it is.
                continue
            if array.size > stablehlo.MOST_NUMBERS and any(array.strides):
                op.properties["value"] = BlobAttr(Blob(array))
