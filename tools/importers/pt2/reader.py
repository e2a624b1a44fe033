"""Reads archives of torch.export as modules of the nn dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import i64

from ....dialects import nn
from ....dialects.dtypes import element_type
from ....dialects.model_calls import loaded_like
from ....dialects.tensor_limits import check_tensor_limits
from ....ir.support.arrays import Array
from ....ir.support.errors import InputError
from ....ir.support.limits import INLINED_NODES
from ....ir.upstream import ModuleOp
from ..applying import applying_scope
from ..batching import Prepare, read_with_batch
from ..binding import Sizes, add_inputs, bound_values
from ..building import Known, Names, NodeBuilder, Value, dtype_of, shape_of
from ..errors import UnsupportedError
from ..folded_modules import Called, folded_modules, warnings_of
from ..front_end import Reading, weigh_nothing
from ..huge_weights import WeightCheck
from ..length_values import emitted_length
from ..lengths import Length
from ..onnx.node import GraphScope
from ..uses import Use, Used, gathered, others_are, reason_of, several_refused
from .archive import Archive
from .aten_node import (
    AtenNode,
    Importer,
    Results,
    Scope,
    as_list,
    is_value,
    kind_of,
    number_dtype,
)
from .expressions import value_of
from .free_sizes import FreeSizes
from .node_names import class_of, line_of, location_of, module_of, node_names
from .operators import ATEN, OPERATORS, is_in_place, sized_importer_of
from .payloads import dtype_of_code, payload_array, shape_of_meta
from .promotion import Size, Undecided
from .schema import (
    Argument,
    Call,
    Graph,
    Input,
    Payload,
    Program,
    Symbol,
    Tensor,
    nodes_in,
    read_payloads,
    read_program,
)
from .signatures import archive_of, signatures
from .users_operator import users_importer
from .views import follow_same, follow_view, write

DECOMPOSE = "program.run_decompositions() before torch.export.save may replace it by others"

STUMBLES = (KeyError, ArithmeticError, AttributeError)
"""Errors of importers for arguments of wrong kinds, besides those of building operations."""

TOO_DEEP = "views of views, nested too deeply"


def read_pt2(model: Any, reading: Reading) -> ModuleOp:
    """The module of an archive, or of an exported program. Its @main takes the user's inputs.

    Raises InputError for a damaged archive, and UnsupportedError for what abele cannot compile.
    Parameters and buffers become states; buffers that the program changes are stored at its end.
    """
    archive = archive_of(model, reading.place)
    program = read_program(archive.graph(), reading.place)
    return read_with_batch(reading, partial(_import, archive, program))


def _import(archive: Archive, program: Program, reading: Reading, prepare: Prepare) -> ModuleOp:
    graph = _new_scope(reading)
    _check_operators(graph, program.graph)
    weights = _weights(archive, program, graph.program, reading.check)
    scope, sizes = _begun(graph, program, weights, reading)
    if reading.training:
        called = (Called(module_of(c), class_of(c), c.target) for c in nodes_in(program.graph))
        reading.notes.extend(warnings_of(folded_modules(called), reading.place))
    graph.program.watcher = prepare(sizes)
    scope.values.update(add_inputs(scope.program, sizes))
    _run(scope, program.graph)
    _store(scope, program, weights)
    return graph.program.module(_outputs(scope, program))


def _new_scope(reading: Reading) -> Scope:
    return Scope(applying_scope(reading), _run)


# Weights


def _weights(
    archive: Archive, program: Program, made: GraphScope, check: WeightCheck
) -> dict[str, Known]:
    """The parameters, buffers and constants, by their name in the graph."""
    place = archive.place
    stored = {
        "weights": read_payloads(archive.config("weights"), place),
        "constants": read_payloads(archive.config("constants"), place),
    }
    used = _names_read(program.graph) | {
        each.argument.name for each in program.outputs if isinstance(each.argument, Tensor)
    }
    found: dict[str, Known] = {}
    bytes_of: dict[str, int] = {}
    for each in program.inputs:
        if each.kind not in ("parameter", "buffer", "tensor_constant"):
            continue
        assert isinstance(each.argument, Tensor)
        if each.argument.name not in used:
            if made.weights is not None:
                made.weights.declared.add(each.target)
            continue
        weight = _weight(archive, stored, each, made)
        found[each.argument.name] = weight
        size = weight.dtype.itemsize
        for n in weight.shape:
            size *= n
        bytes_of[each.target] = size
    if check is not weigh_nothing:
        check(bytes_of)
    return found


def _weight(
    archive: Archive, stored: Mapping[str, Mapping[str, Payload]], spec: Input, made: GraphScope
) -> Known:
    what = f"{archive.place}: {spec.kind.replace('_', ' ')} {spec.target[:200]!r}"
    folders = (
        ("weights", "constants") if spec.kind != "tensor_constant" else ("constants", "weights")
    )
    folder = next((each for each in folders if spec.target in stored[each]), None)
    if folder is None:
        raise InputError(f"{what}: damaged archive: nothing says where its elements are")
    payload = stored[folder][spec.target]
    if payload.pickled or payload.meta is None:
        raise UnsupportedError(
            f"{what}: stored as a pickle, which abele never opens; only a plain tensor is raw bytes"
        )
    shape, dtype = shape_of_meta(payload.meta, what), dtype_of_code(payload.meta.code, what)

    def read() -> Array:
        return payload_array(archive, folder, payload, what)

    # Files of weights are state dictionaries, which hold neither constants nor other buffers.
    is_kept = spec.kind != "tensor_constant" and spec.persistent
    weight = made.weight(
        spec.target, shape, dtype, read, replaceable=is_kept, fixed=spec.kind == "buffer"
    )
    return replace(weight, state=None) if spec.kind == "tensor_constant" else weight


def _names_read(graph: Graph) -> set[str]:
    """The names of the tensors that nodes and outputs of a graph read."""
    found: set[str] = set()
    pending: list[Argument] = [*graph.outputs]
    for call in graph.calls:
        pending += call.arguments.values()
    while pending:
        each = pending.pop()
        if isinstance(each, Tensor):
            found.add(each.name)
        elif isinstance(each, tuple):
            pending += each
    return found


# Inputs


def _begun(
    graph: Scope, program: Program, weights: Mapping[str, Known], reading: Reading
) -> tuple[Scope, Sizes]:
    """The scope with the weights, and the sizes of the inputs as far as they are given."""
    place, inputs = reading.place, list(signatures(program, reading.place))
    known = bound_values(place, inputs, reading.values)
    sizes = FreeSizes.of(program, place).sizes(inputs, reading.dims, known)
    given = {name: Known.of(name, array) for name, array in known.items()}
    values = {**weights, **given}
    scope = replace(graph, values=values, tensors=program.graph.tensors, ranges=program.ranges)
    return scope, sizes


# Nodes


def _operator(call: Call) -> str:
    """The name of an operator in messages: "aten.conv2d.default" is aten.conv2d."""
    return call.target.removeprefix("torch.ops.").removesuffix(".default")


def _reader(call: Call) -> Importer | None:
    """What reads a node; None if nothing does."""
    operator = _operator(call)
    return sized_importer_of(operator) or users_importer(operator)


def _check_operators(scope: Scope, graph: Graph) -> None:
    """Raise UnsupportedError if some operators have no importer. The message lists all of them."""
    place = scope.program.place
    calls = list(nodes_in(graph))
    if len(calls) > INLINED_NODES.most:
        raise InputError(f"{place}: {INLINED_NODES.refusal(f'a program of {len(calls)} nodes')}")
    refused = [
        (call, name)
        for call, name in zip(calls, node_names(calls), strict=True)
        if _reader(call) is None
    ]
    if not refused:
        return
    advice = f"--list-ops shows all operators; {DECOMPOSE}"
    error = several_refused(place, [(_operator(call), name) for call, name in refused], advice)
    if error is None:
        call, name = refused[0]
        node = AtenNode(call, name, scope, location_of(call))
        error = node.unsupported("the operator", f"{_others(call)}; {DECOMPOSE}")
    raise error


def _others(call: Call) -> str:
    operator = _operator(call)
    if not operator.startswith(ATEN):
        near = loaded_like(operator)
        return f"{len(OPERATORS)} of aten are, and operations of --load by their names{near}"
    name = operator.removeprefix(ATEN).partition(".")[0]
    return others_are(name, [*OPERATORS], "pytorch")


def _run(scope: Scope, graph: Graph) -> None:
    """Import the nodes of a graph."""
    names = node_names(graph.calls, scope.taken)
    for call, name in zip(graph.calls, names, strict=True):
        _import_node(scope, call, name)


def _import_node(scope: Scope, call: Call, name: str) -> None:
    node = AtenNode(call, name, scope, location_of(call))
    importer = _reader(call)
    assert importer is not None, f"{call.target} is checked"
    with node.checked():
        try:
            _hold(node, importer(node), importer)
        except RecursionError:
            raise node.unsupported(TOO_DEEP, DECOMPOSE) from None
        except STUMBLES as error:
            raise node.bad(str(error)[:500]) from error


def _hold(node: AtenNode, results: Results, importer: Importer) -> None:
    """Give the results of a node their names."""
    found: list[Value | Size | None] = (
        list(results) if isinstance(results, list | tuple) else [cast("Value", results)]
    )
    names = list(_result_names(node.call))
    if len(names) > len(found):
        raise node.bad(f"{len(names)} results; the operator has {len(found)}")
    tensors = [each if is_value(each) else None for each in found]
    node.finish(node.operands, tensors[: max(len(names), 1)])
    for argument, value in zip(names, found, strict=False):
        if isinstance(argument, Symbol):
            _hold_number(node, argument.name, value)
        elif isinstance(argument, Tensor):
            _hold_tensor(node, argument.name, value)
    operator = _operator(node.call)
    if operator.startswith(ATEN):
        _follow(node, operator, [each for each in tensors if each is not None], importer)


def _hold_number(node: AtenNode, name: str, value: Value | Size | None) -> None:
    number = node.scalar(value, name) if is_value(value) else value
    if not isinstance(number, bool | int | float | Length | Undecided):
        raise node.bad(f"result {name!r} is missing")
    node.scope.numbers[name] = number


def _hold_tensor(node: AtenNode, name: str, value: Value | Size | None) -> None:
    if name in node.scope.values:
        raise node.bad(f"result {name!r} is the name of an earlier value")
    if value is None:
        node.scope.absent[name] = "abele does not compute this result"
    elif is_value(value):
        node.scope.values[name] = _as_declared(node, name, value)
    else:
        raise node.bad(f"result {name!r} is a number")


def _as_declared(node: AtenNode, name: str, value: Value) -> Value:
    """A result, whose element type must be the one that the file says."""
    meta = node.scope.tensors.get(name)
    if meta is None:
        return value
    dtype = dtype_of_code(meta.code, f"{node.graph.place}: {node}: result {name!r}")
    if len(meta.sizes) != len(shape_of(value)):
        raise node.bad(
            f"result {name!r} has {len(shape_of(value))} axes; the file says {len(meta.sizes)}"
        )
    for made, said in zip(shape_of(value), meta.sizes, strict=True):
        if isinstance(said, int) and made != said and node.graph.watcher is None:
            raise node.bad(
                f"result {name!r} has shape {list(shape_of(value))}; the file says "
                f"{list(meta.sizes)}"
            )
    if dtype_of(value) != dtype:
        raise node.bad(f"result {name!r} is {dtype_of(value).name}; the file says {dtype.name}")
    return value


def _follow(node: AtenNode, operator: str, results: list[Value], importer: Importer) -> None:
    """Write into the operand of an operator with an underscore, or remember a view."""
    target = node.call.arguments.get("self")
    if not results or not isinstance(target, Tensor):
        return
    if is_in_place(operator.split(".")[1]):
        old = node.scope.values[target.name]
        value = node.expanded(node.converted(results[0], dtype_of(old)), shape_of(old))
        write(node.scope, target.name, value)
        follow_same(node, target.name)
    else:
        follow_view(node, operator, results, importer)


def _result_names(call: Call) -> Iterator[Argument]:
    """The names of the results, of which a list of tensors has several."""
    for each in call.results:
        if isinstance(each, tuple):
            yield from each
        else:
            yield each


# Outputs


def _store(scope: Scope, program: Program, weights: Mapping[str, Known]) -> None:
    """At the end of a run, store the buffers that the program changes."""
    by_target = {
        each.target: weights.get(each.argument.name)
        for each in program.inputs
        if isinstance(each.argument, Tensor)
    }
    changed: dict[str, tuple[Known, Value]] = {}
    for name, weight in weights.items():
        value = scope.current(name)
        if value is not weight:
            changed[weight.name] = weight, value
    for each in program.outputs:
        if each.kind in ("buffer_mutation", "parameter_mutation"):
            assert isinstance(each.argument, Tensor)
            weight = by_target.get(each.target)
            if weight is None:
                raise InputError(
                    f"{scope.program.place}: damaged program: it changes {each.target[:200]!r}, "
                    "which it has not"
                )
            changed[each.target] = weight, _output_value(scope, each.argument.name)
    for name, (weight, value) in changed.items():
        if shape_of(value) != weight.shape or dtype_of(value) != weight.dtype:
            raise InputError(f"{scope.program.place}: buffer {name!r} gets a value of another type")
        if weight.state is None:
            raise UnsupportedError(f"{scope.program.place}: the program changes constant {name!r}")
        scope.program.store(weight, value)


def _output_value(scope: Scope, name: str) -> Value:
    if name in scope.absent:
        raise UnsupportedError(f"{scope.program.place}: output {name!r}: {scope.absent[name]}")
    if name not in scope.values:
        raise InputError(f"{scope.program.place}: output {name[:200]!r} is no value of the program")
    return scope.current(name)


CHANGED = "{} (changed)"
"""The name of the output for an input that the program writes into."""


def _outputs(scope: Scope, program: Program) -> Iterator[tuple[str, Value]]:
    """The outputs: those of the user, and the inputs that the program writes into."""
    taken, given = Names(), [each for each in program.outputs if each.kind == "user_output"]
    names = _output_names(program.returned, len(given))
    for index, each in enumerate(given):
        argument = each.argument
        if isinstance(argument, Tensor):
            value = _output_value(scope, argument.name)
            yield taken.unique(names[index] or argument.name), value
        elif isinstance(argument, Symbol):
            name = taken.unique(names[index] or argument.name)
            yield name, _number_held(scope, name, scope.numbers.get(argument.name))
        elif isinstance(argument, bool | int | float):
            name = taken.unique(names[index] or f"output {index}")
            yield name, _number_held(scope, name, argument)
        elif argument is not None:
            raise UnsupportedError(
                f"{scope.program.place}: output {index} is {kind_of(argument)}; need tensors"
            )
    for each in program.outputs:
        if each.kind == "user_input_mutation":
            assert isinstance(each.argument, Tensor)
            name = taken.unique(CHANGED.format(each.target))
            yield name, _output_value(scope, each.argument.name)
        elif each.kind not in ("user_output", "buffer_mutation", "parameter_mutation", "token"):
            raise UnsupportedError(f"{scope.program.place}: an output of kind {each.kind!r}")
    lengths = {each.name for each in scope.program.length_inputs}
    for argument, name in scope.program.inputs.items():
        if name in lengths:
            continue
        value = scope.current(name)
        if value is not argument:
            yield taken.unique(CHANGED.format(name)), value


def _number_held(scope: Scope, name: str, number: Size | None) -> Value:
    """A number that is an output, as a tensor without axes."""
    if isinstance(number, Length):
        node = NodeBuilder(name, scope.program)
        value = node.cast(emitted_length(node, number), i64)
        node.finish([], [value])
        return value
    if number is None or isinstance(number, Undecided):
        raise InputError(f"{scope.program.place}: output {name!r} is no number")
    return Known.of(name, np.array(number, number_dtype(number)))


def _output_names(returned: str, count: int) -> list[str]:
    """Names for outputs from how they were nested in Python: the keys of dictionaries.

    "" where there is none.
    """
    try:
        tree = json.loads(returned)[1]
        names = [".".join(path) for path in _leaves(tree, ())]
    except (ValueError, LookupError, TypeError, RecursionError):
        return [""] * count
    return names if len(names) == count else [""] * count


def _leaves(tree: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if tree["type"] is None:
        yield path if any(path) and not path[-1].isdigit() else ()
        return
    keys = _keys(tree)
    for key, child in zip(keys, tree["children_spec"], strict=True):
        yield from _leaves(child, (*path, key) if key else path)


def _keys(tree: Any) -> Sequence[str]:
    """The names of the children of a container; "" for those of a list or tuple."""
    context: Any = json.loads(tree["context"]) if tree["context"] else None
    count = len(tree["children_spec"])
    options: list[Any] = [context, as_list(context)[-1] if context else None]
    for each in options:
        keys: list[Any] = as_list(each)
        if len(keys) == count and all(isinstance(key, str) and key.isprintable() for key in keys):
            return keys
    return [""] * count


# What a model uses


def uses_of(model: Any, reading: Reading) -> tuple[list[Use], str]:
    """The operators of a program, and why not every node could be checked; "" if all were.

    Each node is imported. Results of nodes that cannot be get the types that the file says. Raises
    InputError for a damaged archive.
    """
    archive = archive_of(model, reading.place)
    program = read_program(archive.graph(), reading.place)
    calls = list(nodes_in(program.graph))
    names = node_names(calls)
    reasons = {id(call): "the operator has no importer" for call in calls if _reader(call) is None}
    problem = ""
    graph = _new_scope(reading)
    try:
        weights = _weights(archive, program, graph.program, weigh_nothing)
        scope, sizes = _begun(graph, program, weights, reading)
        sizes.check()
        scope.values.update(add_inputs(scope.program, sizes))
    except InputError as error:
        problem = str(error)
    else:
        for call, name in zip(program.graph.calls, node_names(program.graph.calls), strict=True):
            _try(scope, call, name, sizes, reasons)
    used = (
        Used(
            _operator(call),
            "" if _reader(call) is None else "abele",
            _place(call, name),
            reasons.get(id(call), ""),
        )
        for call, name in zip(calls, names, strict=True)
    )
    return gathered(used), problem


def _place(call: Call, name: str) -> str:
    """A node with its line of Python."""
    line = line_of(call)
    return name if line is None else f"{name} ({line})"


def _try(scope: Scope, call: Call, name: str, sizes: Sizes, reasons: dict[int, str]) -> None:
    """Import a node, or give its results the types that the file says."""
    node = AtenNode(call, name, scope, location_of(call))
    if id(call) not in reasons:
        try:
            _import_node(scope, call, name)
            return
        except InputError as error:
            reasons[id(call)] = reason_of(node, error)
    for argument in _result_names(call):
        if isinstance(argument, Tensor) and argument.name not in scope.values:
            _stand_in(scope, argument.name, sizes)


def _stand_in(scope: Scope, name: str, sizes: Sizes) -> None:
    meta = scope.tensors.get(name)
    try:
        assert meta is not None
        shape = [n if isinstance(n, int) else value_of(n, sizes.fixed) for n in meta.sizes]
        dtype = dtype_of_code(meta.code, name)
        check_tensor_limits(shape, dtype.itemsize)
        body = scope.program.main
        scope.values[name] = body.insert_arg(nn.tensor(shape, element_type(dtype)), len(body.args))
    except (InputError, ValueError, KeyError, AssertionError):
        scope.absent[name] = "the node that makes it is not imported"
