"""The host's view of a program: names of inputs and outputs, and sizes of outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ..ir.support.errors import InputError
from ..ir.upstream import ModuleOp

DEFAULTS = {"arg_names": "arg", "result_names": "out"}
"""The attributes of a function that list names, each with the prefix of default names."""


def host_names(function: FuncOp, attribute: str, count: int) -> list[str]:
    """The names of a function's arguments or results; "arg0" or "out0" and so on by default.

    Raises InputError if the attribute is there and holds anything but as many names.

    Args:
        attribute: a key of DEFAULTS.
        count: how many values there are.
    """
    given = function.attributes.get(attribute) or function.properties.get(attribute)
    if given is None:
        return [f"{DEFAULTS[attribute]}{i}" for i in range(count)]
    listed = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else ()
    names = [name.data for name in listed if isinstance(name, StringAttr)]
    if len(names) != count:
        raise InputError(f"@{function.sym_name.data}: {len(names)} {attribute}; need {count}")
    return names


OPTIONAL_INPUTS = "abele.optional_inputs"
"""The attribute of a module that lists inputs which have a value in the model."""


def set_optional_inputs(module: ModuleOp, names: Sequence[str]) -> None:
    """Record in a module which inputs of the model have a default value that was compiled in."""
    if names:
        module.attributes[OPTIONAL_INPUTS] = ArrayAttr(map(StringAttr, names))


def optional_inputs(module: ModuleOp) -> tuple[str, ...]:
    """The inputs of the model whose value was compiled in, so that the program does not take them.

    Raises InputError if the attribute holds anything but names.
    """
    given = module.attributes.get(OPTIONAL_INPUTS)
    if given is None:
        return ()
    listed = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else (given,)
    names = [each.data for each in listed if isinstance(each, StringAttr)]
    if len(names) != len(listed):
        raise InputError(f'{OPTIONAL_INPUTS}: {given}; need ["name", ...]')
    return tuple(names)


LENGTHS = "abele.lengths"
"""The attribute of a module that lists inputs which are numbers of elements, with their bounds."""

ARGUMENT_SIZES = "abele.argument_sizes"
"""The attribute of a module that lists inputs of which a part may be padding."""


@dataclass(frozen=True)
class LengthInput:
    """An input that is a number of elements: an i32 without axes.

    Attributes:
        name: at the host.
        least, most: its bounds. A run with another number is a fault.
    """

    name: str
    least: int
    most: int


@dataclass(frozen=True)
class ArgumentSize:
    """An input of which only the first elements along an axis exist; the rest is padding.

    Attributes:
        argument: its name at the host.
        axis: counted from 0.
        offset: a number of elements.
        lengths: the names of the inputs whose sum, with the offset, is the number of elements that
            exist.
    """

    argument: str
    axis: int
    offset: int
    lengths: tuple[str, ...]


def set_argument_sizes(
    module: ModuleOp, lengths: Sequence[LengthInput], sizes: Sequence[ArgumentSize]
) -> None:
    """Record in a module which of its inputs are lengths, and which have padding."""
    for attribute in (LENGTHS, ARGUMENT_SIZES):
        module.attributes.pop(attribute, None)
    if lengths:
        module.attributes[LENGTHS] = ArrayAttr(
            ArrayAttr([StringAttr(n.name), IntegerAttr(n.least, i64), IntegerAttr(n.most, i64)])
            for n in lengths
        )
    if sizes:
        module.attributes[ARGUMENT_SIZES] = ArrayAttr(
            ArrayAttr(
                [
                    StringAttr(s.argument),
                    IntegerAttr(s.axis, i64),
                    IntegerAttr(s.offset, i64),
                    *map(StringAttr, s.lengths),
                ]
            )
            for s in sizes
        )


def _entries(module: ModuleOp, attribute: str) -> list[tuple[tuple[Attribute, ...], Attribute]]:
    """The lists in an attribute that is a list of lists, each with the attribute that it is."""
    given = module.attributes.get(attribute)
    if given is None:
        return []
    entries = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else (given,)
    return [
        (cast("ArrayAttr[Attribute]", each).data if isinstance(each, ArrayAttr) else (), each)
        for each in entries
    ]


def length_inputs(module: ModuleOp) -> tuple[LengthInput, ...]:
    """The inputs of a module that are numbers of elements.

    Raises InputError if the attribute holds anything but names and bounds.
    """
    found: list[LengthInput] = []
    for parts, entry in _entries(module, LENGTHS):
        match parts:
            case (StringAttr(), IntegerAttr(), IntegerAttr()):
                name, least, most = parts
                found.append(LengthInput(name.data, least.value.data, most.value.data))
            case _:
                raise InputError(f'{LENGTHS}: {entry}; need ["input", least, most]')
    return tuple(found)


def argument_sizes(module: ModuleOp) -> tuple[ArgumentSize, ...]:
    """The inputs of a module of which a part may be padding.

    Raises InputError if the attribute holds anything but names and numbers.
    """
    found: list[ArgumentSize] = []
    for parts, entry in _entries(module, ARGUMENT_SIZES):
        names = [each.data for each in parts[3:] if isinstance(each, StringAttr)]
        match parts:
            case (StringAttr() as name, IntegerAttr() as axis, IntegerAttr() as offset, *rest) if (
                0 < len(names) == len(rest)
            ):
                found.append(
                    ArgumentSize(name.data, axis.value.data, offset.value.data, tuple(names))
                )
            case _:
                raise InputError(
                    f'{ARGUMENT_SIZES}: {entry}; need ["input", axis, offset, "length", ...]'
                )
    return tuple(found)


KEPT_SIZES = "abele.kept_sizes"
"""The attribute of a module that lists states of which a part may be padding."""


@dataclass(frozen=True)
class KeptSize:
    """A state of which only the first elements along an axis exist; the rest is padding.

    A run reads the first of these elements, and may read fewer than there are.

    Attributes:
        state: its name.
        axis: counted from 0.
        offset: a number of elements.
        held: the name of the state that holds how many elements exist: an i32 without axes.
        lengths: the names of the inputs whose sum, with the offset, is the number of elements that
            a run reads.
    """

    state: str
    axis: int
    offset: int
    held: str
    lengths: tuple[str, ...]


def set_kept_sizes(module: ModuleOp, sizes: Sequence[KeptSize]) -> None:
    """Record in a module which of its states have padding."""
    if sizes:
        module.attributes[KEPT_SIZES] = ArrayAttr(
            ArrayAttr(
                [
                    StringAttr(s.state),
                    IntegerAttr(s.axis, i64),
                    IntegerAttr(s.offset, i64),
                    StringAttr(s.held),
                    *map(StringAttr, s.lengths),
                ]
            )
            for s in sizes
        )


def kept_sizes(module: ModuleOp) -> tuple[KeptSize, ...]:
    """The states of a module of which a part may be padding.

    Raises InputError if the attribute holds anything but names and numbers.
    """
    found: list[KeptSize] = []
    for parts, entry in _entries(module, KEPT_SIZES):
        match parts:
            case (
                StringAttr() as state,
                IntegerAttr() as axis,
                IntegerAttr() as offset,
                StringAttr() as held,
                *rest,
            ) if rest and all(isinstance(each, StringAttr) for each in rest):
                names = tuple(each.data for each in rest if isinstance(each, StringAttr))
                found.append(
                    KeptSize(state.data, axis.value.data, offset.value.data, held.data, names)
                )
            case _:
                raise InputError(
                    f'{KEPT_SIZES}: {entry}; need ["state", axis, offset, "held", "length", ...]'
                )
    return tuple(found)


RESULT_SIZES = "abele.result_sizes"
"""The attribute of a module that lists results whose size depends on values."""


@dataclass(frozen=True)
class ResultSize:
    """A result of which only the first elements along an axis exist; the rest is padding.

    Attributes:
        result: its name at the host.
        axis: counted from 0.
        size: the name of the result that holds the number of these elements.
    """

    result: str
    axis: int
    size: str


def set_result_sizes(module: ModuleOp, sizes: Sequence[ResultSize]) -> None:
    """Record in a module which of its results have a size that depends on values."""
    module.attributes.pop(RESULT_SIZES, None)
    if sizes:
        listed = (
            ArrayAttr([StringAttr(s.result), IntegerAttr(s.axis, i64), StringAttr(s.size)])
            for s in sizes
        )
        module.attributes[RESULT_SIZES] = ArrayAttr(listed)


def result_sizes(module: ModuleOp) -> tuple[ResultSize, ...]:
    """The results of a module whose size depends on values.

    Raises InputError if the attribute holds anything but names, axes and names.
    """
    found: list[ResultSize] = []
    for parts, entry in _entries(module, RESULT_SIZES):
        match parts:
            case (StringAttr(), IntegerAttr(), StringAttr()):
                result, axis, size = parts
                found.append(ResultSize(result.data, axis.value.data, size.data))
            case _:
                raise InputError(f'{RESULT_SIZES}: {entry}; need ["result", axis, "size"]')
    return tuple(found)


TEXTS = "abele.texts"
"""The attribute of a module that lists strings, and the inputs and results that hold them."""

COLUMNS = "abele.columns"
"""The attribute of a module that names the entries of results along their last axis."""


@dataclass(frozen=True)
class HostTexts:
    """The strings of a program, which computes with integers.

    Attributes:
        table: the strings. Integers of inputs and results that hold strings are places in it; -1
            is any other string.
        inputs, results: the names of those that hold strings.
        columns: the names of the entries along the last axis of results, by result.
    """

    table: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


def _texts(names: Sequence[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr(map(StringAttr, names))


def set_host_texts(module: ModuleOp, texts: HostTexts) -> None:
    """Record in a module which of its inputs and results hold strings, and which have columns."""
    if texts.inputs or texts.results:
        parts = (texts.table, texts.inputs, texts.results)
        module.attributes[TEXTS] = ArrayAttr(map(_texts, parts))
    if texts.columns:
        listed = (_texts((name, *columns)) for name, columns in texts.columns.items())
        module.attributes[COLUMNS] = ArrayAttr(listed)


def host_texts(module: ModuleOp) -> HostTexts:
    """The strings of a module.

    Raises InputError if the attributes hold anything but lists of strings, or if a string of the
    table is there twice.
    """
    parts = [
        _strings(*each, TEXTS, "[strings, inputs, results]") for each in _entries(module, TEXTS)
    ]
    if parts and (len(parts) != 3 or len({*parts[0]}) != len(parts[0])):
        raise InputError(f"{TEXTS}: need [strings, inputs, results], each string once")
    table, inputs, results = parts or ((), (), ())
    columns: dict[str, tuple[str, ...]] = {}
    for each in _entries(module, COLUMNS):
        name, *names = _strings(*each, COLUMNS, '["result", "name", ...]') or ("",)
        columns[name] = tuple(names)
    return HostTexts(table, inputs, results, columns)


def _strings(
    parts: tuple[Attribute, ...], entry: Attribute, attribute: str, need: str
) -> tuple[str, ...]:
    found = tuple(each.data for each in parts if isinstance(each, StringAttr))
    if len(found) != len(parts) or not isinstance(entry, ArrayAttr):
        raise InputError(f"{attribute}: {entry}; need {need}")
    return found
