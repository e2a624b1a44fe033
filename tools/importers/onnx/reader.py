"""Reads ONNX models as modules of the nn dialect."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import ArrayLike
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ....dialects.host import ResultSize, set_optional_inputs, set_result_sizes
from ....dialects.random_states import STEP
from ....dialects.tensor_limits import check_tensor_limits
from ....ir.context import AbeleContext
from ....ir.provenance import named
from ....ir.support.errors import InputError
from ....ir.support.user_entries import add_entry
from ....ir.upstream import ModuleOp, VerifyException
from ..errors import UnsupportedError
from ..front_end import Reading, weigh_nothing
from ..huge_weights import WeightCheck
from ..uses import Use, Used, gathered
from .batching import Batch, Shapes
from .binding import Sizes, bound_value
from .declared import Declared
from .functions import check_calls, check_function, identity, inlined, is_function, model_functions
from .model_file import ModelFile, read_model_file
from .names import check_names
from .node import GraphScope, Held, Importer, Listed, Maybe, Names, Node, Results, Value, listed
from .node import known as known_array
from .ops_attention import ATTENTIONS
from .ops_contraction import CONTRACTIONS
from .ops_contrib import CONTRIBUTED, rms_norm
from .ops_control import CONTROL
from .ops_determinant import DETERMINANTS
from .ops_einsum import EINSUMS
from .ops_elementwise import ELEMENTWISE
from .ops_extremes import EXTREMES
from .ops_indexed import INDEXED
from .ops_learned import LEARNED
from .ops_lists import LISTS
from .ops_movement import MOVEMENTS
from .ops_ngrams import NGRAMS
from .ops_normalise import NORMALISATIONS
from .ops_quantised import QUANTISED
from .ops_random import RANDOM
from .ops_recurrent import RECURRENT
from .ops_resize import RESIZES
from .ops_sampling import SAMPLINGS
from .ops_selected import SELECTED
from .ops_sequence import SEQUENCES
from .ops_signal import SIGNALS
from .ops_sized import read_sized
from .ops_training import TRAINING
from .ops_trees import TREES
from .ops_window import WINDOWS
from .overrides import optional_tensors
from .reversal import REVERSALS
from .tensors import Array, tensor_element
from .users_operator import users_results
from .uses import Tolerant, check_operators, every_node, inferred_types, reason_of
from .valid import check_node, check_valid
from .weights import check_weights

SECTIONS: dict[str, dict[str, Importer]] = {
    "on elements": ELEMENTWISE,
    "quantised": QUANTISED,
    "products": {**CONTRACTIONS, **EINSUMS, **DETERMINANTS},
    "windows and reductions": {**WINDOWS, **EXTREMES},
    "normalisation": NORMALISATIONS,
    "attention": ATTENTIONS,
    "movement and shapes": MOVEMENTS,
    "indices": {**INDEXED, **NGRAMS},
    "images": {**RESIZES, **SAMPLINGS},
    "scans and sorts": SEQUENCES,
    "signals": SIGNALS,
    "random numbers": RANDOM,
    "sizes that depend on values": SELECTED,
    "control flow": CONTROL,
    "recurrent layers": {**RECURRENT, **REVERSALS},
    "sequences and optionals": LISTS,
}
"""The importers of the domain ai.onnx, by the kind of operator."""

OPERATORS: dict[str, Importer] = {
    name: importer for section in SECTIONS.values() for name, importer in section.items()
}
"""The importers of the domain ai.onnx, by operator."""

CONTRIBUTED_DOMAIN = "com.microsoft"
"""The domain of the operators that onnxruntime adds."""

RUNTIMES_OPERATORS: dict[str, Importer] = {
    "LayerNormalization": NORMALISATIONS["LayerNormalization"],
    "SimplifiedLayerNormalization": rms_norm,
}
"""The importers of operators that onnxruntime adds to the domain ai.onnx at any opset, by
operator."""

ONNX_OPERATORS = OPERATORS.keys() - RUNTIMES_OPERATORS.keys()
"""The operators of ai.onnx that need a definition in ONNX at the model's opset."""

DOMAINS: Mapping[str, Mapping[str, Importer]] = {
    # A view, not a copy: tests of the test kit replace importers in OPERATORS.
    "ai.onnx": ChainMap(OPERATORS, RUNTIMES_OPERATORS),
    "ai.onnx.ml": {**LEARNED, **TREES},
    "ai.onnx.preview.training": TRAINING,
    CONTRIBUTED_DOMAIN: CONTRIBUTED,
}
"""The importers of abele, by domain and operator."""

USERS_OPERATORS: dict[str, Importer] = {}
"""The importers of extensions, by domain and name: "com.example.Gelu"."""


def register_operator(domain: str, name: str, importer: Importer, owner: str) -> None:
    """Register a user's importer of an operator. Raises InputError if the operator has one."""
    fixed = {each: own for each, own in DOMAINS.items() if each != CONTRIBUTED_DOMAIN}
    reserved = [f"{each}.{operator}" for each, own in fixed.items() for operator in own]
    add_entry(USERS_OPERATORS, "ONNX operator", f"{domain}.{name}", importer, owner, reserved)


def _own_importer(node: Node) -> Importer | None:
    """The importer of abele for a node's operator. Users may replace onnxruntime's operators."""
    if node.domain == CONTRIBUTED_DOMAIN and _users_importer(node) is not None:
        return None
    return DOMAINS.get(node.domain, {}).get(node.operator)


def _users_importer(node: Node) -> Importer | None:
    return USERS_OPERATORS.get(f"{node.domain}.{node.operator}")


def _importer(node: Node) -> Importer | None:
    return _own_importer(node) or _users_importer(node)


OPSETS = range(6, 29)
"""The supported versions of the domain ai.onnx."""

LARGEST_VERSION = 2**31 - 1
"""The largest version of any domain. onnx looks operators up by 32-bit numbers."""

Model = str | os.PathLike[str] | onnx.ModelProto


def import_onnx(
    model: Model,
    context: AbeleContext,
    dims: Mapping[str, int] | None = None,
    values: Mapping[str, ArrayLike] | None = None,
    check: WeightCheck | None = None,
    *,
    batch: int | None = None,
    lenient: bool = False,
    training: bool = False,
) -> ModuleOp:
    """The module of an ONNX model. Its @main takes the model's inputs and returns its outputs.

    Raises InputError for a damaged model, and UnsupportedError for what abele cannot compile.

    Blobs go to the context's store. Weights become states, loaded at the head of @main. Every
    operation has its node as location.

    Args:
        model: a path, or a model in memory, which has no folder for external data.
        dims: sizes of the inputs' free dimensions, by symbol or by "INPUT:AXIS".
        values: inputs that are known at import, such as shapes; they are not arguments of @main,
            and sizes of symbols follow from their shapes. The value of an input that is a weight as
            well replaces the weight.
        check: rejects weights before they are read.
        batch: the number of samples, which is the size of the inputs' first axis; constant shapes
            with the file's own number are adapted.
        lenient: whether to import a model that breaks rules of ONNX, as long as its nodes make
            sense to abele.
        training: whether the program is to be trained; then Dropout is active even if the model was
            written for inference.
    """
    place = "<model>" if isinstance(model, onnx.ModelProto) else str(model)
    more = {} if check is None else {"check": check}
    return read_onnx(
        model,
        Reading(context, place, dims or {}, values or {}, batch, lenient, training, **more),
    )


def read_onnx(model: Model, reading: Reading) -> ModuleOp:
    """The module of an ONNX model, as for import_onnx."""
    file, folder = _file_of(model)
    if reading.batch is None:
        return _import(file, folder, reading)
    shapes = Shapes()
    trial = replace(reading, context=AbeleContext())
    _import(file, folder, trial, lambda graph, sizes: _record(graph, sizes, shapes))
    # Types that the file declares hold its own number of samples.
    again, count = replace(reading, check=weigh_nothing, lenient=True), reading.batch
    return _import(file, folder, again, lambda graph, sizes: _rebatch(graph, sizes, count, shapes))


def _file_of(model: Model) -> tuple[ModelFile, Path | None]:
    """A model that was read, and the folder of its external data. Raises InputError."""
    if isinstance(model, onnx.ModelProto):
        return ModelFile(model, {}), None
    path = Path(model)
    if path.is_file() and not path.stat().st_size:
        raise InputError(f"{path}: empty; need an ONNX model")
    return read_model_file(path), path.parent


Prepare = Callable[[GraphScope, Sizes], None]
"""Changes the sizes of inputs, and how a graph is imported, before the import."""


def _record(graph: GraphScope, sizes: Sizes, shapes: Shapes) -> None:
    sizes.one_sample()
    graph.shapes = shapes


def _rebatch(graph: GraphScope, sizes: Sizes, count: int, shapes: Shapes) -> None:
    sizes.one_sample()
    sizes.check()
    old = sizes.rebatch(count)
    graph.batch = Batch(old, count, shapes) if old != count else None


def _import(
    file: ModelFile, folder: Path | None, reading: Reading, prepare: Prepare | None = None
) -> ModuleOp:
    context, place = reading.context, reading.place
    model, lenient = file.model, reading.lenient
    check_names(model, place)
    main = Block()
    graph = GraphScope(context, place, folder, _opsets(model, place), body=main, main=main)
    graph.training = reading.training
    proto = model.graph
    if not proto.output:
        raise graph.bad("the model's graph has no outputs; is it an ONNX model?")
    for function in model.functions:
        check_function(function, place)
    graph.functions = model_functions(model)
    check_calls(model.graph.node, graph.functions, place)
    graph.read = partial(_read_node, lenient=lenient)
    names = _node_names(proto)
    nodes = [Node(node, name, graph) for node, name in zip(proto.node, names, strict=True)]
    check_operators(nodes, _check_operator)
    if not lenient:
        check_valid(model, graph, nodes, ONNX_OPERATORS)
    declarations = () if lenient else (*proto.input, *proto.value_info, *proto.output)
    values = _given_values(proto, reading.values, place)
    given = _sizes(proto, reading.dims, values, place)
    if prepare is not None:
        prepare(graph, given)
    given.check()
    declared = Declared(declarations, given.symbols)
    inputs = _read_values(file, graph, given, values, declared)
    if reading.check is not weigh_nothing:
        check_weights(file, folder, place, reading.check)
    for node in nodes:
        _import_node(node, declared)
    pairs = [pair for each in proto.output for pair in _outputs(graph, each, declared)]
    outputs = [name for name, _ in pairs]
    results = [graph.emitted(value) for _, value in pairs]
    sizes = _result_sizes(graph, outputs, results)
    module = _module(graph, inputs, outputs, results)
    set_result_sizes(module, sizes)
    optional = (each.name for each in optional_tensors(model))
    set_optional_inputs(module, [name for name in optional if name not in values])
    return module


def _result_sizes(graph: GraphScope, names: list[str], results: list[SSAValue]) -> list[ResultSize]:
    """The outputs whose size depends on values. Appends these sizes to the results."""
    taken = Names(set(names))
    sizes: list[ResultSize] = []
    named_by: dict[SSAValue, str] = {}
    for name, value in tuple(zip(names, results, strict=True)):
        size = graph.sizes.get(value)
        if size is None:
            continue
        if size.count not in named_by:
            named_by[size.count] = taken.unique(f"{name}, size of axis {size.axis}")
            names.append(named_by[size.count])
            results.append(size.count)
        sizes.append(ResultSize(name, size.axis, named_by[size.count]))
    return sizes


def _open_axis(graph: GraphScope, value: Held) -> int | None:
    """The axis of a value whose size depends on values; None if all sizes are fixed."""
    size = graph.sizes.get(value) if isinstance(value, SSAValue) else None
    return None if size is None else size.axis


def model_uses(
    model: Model,
    context: AbeleContext,
    dims: Mapping[str, int] | None = None,
    values: Mapping[str, ArrayLike] | None = None,
) -> tuple[list[Use], str]:
    """The operators of an ONNX model, as for uses_of. The parameters are as for import_onnx."""
    place = "<model>" if isinstance(model, onnx.ModelProto) else str(model)
    return uses_of(model, Reading(context, place, dims or {}, values or {}))


def uses_of(model: Model, reading: Reading) -> tuple[list[Use], str]:
    """The operators of an ONNX model, and why not every node could be checked; "" if all were.

    Each node is imported, as far as the types of what it reads are known. If sizes of inputs are
    unknown, operators are checked by name only. Raises InputError for a damaged model.
    """
    file, folder = _file_of(model)
    proto, context, place = file.model, reading.context, reading.place
    check_names(proto, place)
    main = Block()
    graph = GraphScope(context, place, folder, _opsets(proto, place), body=main, main=main)
    graph.functions = model_functions(proto)
    graph.read = partial(_read_node, lenient=False)
    names = _node_names(proto.graph)
    nodes = [Node(node, name, graph) for node, name in zip(proto.graph.node, names, strict=True)]
    every = list(every_node(nodes))
    reasons = {id(node): why for node in every if (why := _refusal(node))}
    problem = ""
    try:
        given = _given_values(proto.graph, reading.values, place)
        sizes = _sizes(proto.graph, reading.dims, given, place)
        sizes.check()
        declared = Declared((), sizes.symbols)
        _read_values(file, graph, sizes, given, declared)
    except InputError as error:
        problem = str(error)
    else:
        types = inferred_types(proto, nodes, graph)
        trial = Tolerant(lambda node: _check_and_import(node, declared), types, _stand_in)
        trial.go_on(nodes, reasons)
        reasons |= trial.reasons
    nodes_used = (
        Used(_title(node), _how(node), node.name, reasons.get(id(node), "")) for node in every
    )
    return gathered(nodes_used), problem


def _title(node: Node) -> str:
    """What tables call the operator of a node."""
    return node.operator if node.domain == "ai.onnx" else f"{node.domain}.{node.operator}"


def _refusal(node: Node) -> str:
    """The reason why a node's operator has no importer; "" if it has one."""
    try:
        _check_operator(node)
    except InputError as error:
        return reason_of(node, error)
    return ""


def _check_and_import(node: Node, declared: Declared) -> None:
    check_node(node, ONNX_OPERATORS)
    _import_node(node, declared)


def _stand_in(node: Node, name: str, type_: onnx.TypeProto) -> bool:
    """Give the name of a result a value of a type; returns False if the type has no sizes."""
    tensor = type_.tensor_type
    sizes = [each.dim_value for each in tensor.shape.dim if each.HasField("dim_value")]
    if not tensor.HasField("shape") or len(sizes) < len(tensor.shape.dim):
        return False
    try:
        element = tensor_element(tensor.elem_type, str(node))
    except InputError:
        return False
    body = node.graph.main
    node.graph.values[name] = body.insert_arg(nn.tensor(sizes, element), len(body.args))
    return True


def _how(node: Node) -> str:
    """The source of the meaning of a node's operator; "" if it has none."""
    if _own_importer(node) is not None:
        return "abele"
    if _users_importer(node) is not None:
        return "an extension"
    if identity(node.proto) in node.graph.functions:
        return "a function of the model"
    return "its function body" if is_function(node) else ""


def _outputs(
    graph: GraphScope, output: onnx.ValueInfoProto, declared: Declared
) -> Iterator[tuple[str, Value]]:
    """The outputs of the program for one output of the model: one per element of a sequence."""
    value = graph.held(output.name, f"output {output.name!r}")
    if problem := declared.problem(output.name, value, _open_axis(graph, value)):
        raise graph.bad(f"output {problem}")
    if isinstance(value, Maybe):
        if value.value is None:
            return
        value = value.value
    if isinstance(value, Listed):
        yield from ((f"{output.name}[{i}]", each) for i, each in enumerate(value.items))
    else:
        yield output.name, value


def _module(
    graph: GraphScope, inputs: list[str], outputs: list[str], results: list[SSAValue]
) -> ModuleOp:
    """@main and the states, without unused operations."""
    body = graph.body
    end = ReturnOp(*results)
    body.add_op(end)
    if graph.loads:
        first = body.first_op
        assert first is not None
        body.insert_ops_before(graph.loads, first)
    for op in reversed(tuple(body.ops)):
        if op is not end and not any(r.first_use for r in op.results):
            body.erase_op(op)
    _count_runs(graph, end)
    used = {op.state.string_value() for op in body.ops if isinstance(op, nn.LoadOp)}
    main = FuncOp("main", ([a.type for a in body.args], [v.type for v in results]), Region(body))
    main.attributes["arg_names"] = ArrayAttr(map(StringAttr, inputs))
    main.attributes["result_names"] = ArrayAttr(map(StringAttr, outputs))
    main.location = end.location = named("main")
    states = [state for state in graph.states if state.sym_name.data in used]
    return ModuleOp([*states, main])


def _count_runs(graph: GraphScope, end: ReturnOp) -> None:
    """Before the end of @main, increase the number of the run, if random numbers depend on it."""
    step = graph.random.get(STEP)
    if step is None or step.first_use is None:
        return
    one = nn.ConstantOp(graph.context.blobs.add(np.ones((), np.uint32)))
    following = nn.AddOp(step, one.result)
    store = nn.StoreOp(following.result, STEP)
    for op in (one, following, store):
        op.location = named(STEP)
    graph.main.insert_ops_before([one, following, store], end)


def _opsets(model: onnx.ModelProto, place: str) -> dict[str, int]:
    """The version of each domain. Raises InputError if ai.onnx has none, or an unsupported one."""
    if not model.HasField("graph"):
        raise InputError(f"{place}: damaged, or not an ONNX model: it has no graph")
    opsets = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    version = opsets.get("ai.onnx")
    if version is None:
        if not opsets:
            raise InputError(f"{place}: damaged, or not an ONNX model: it imports no opset")
        return opsets
    for domain, number in opsets.items():
        if not 1 <= number <= LARGEST_VERSION:
            raise InputError(
                f"{place}: opset {number} of domain {domain}; need a version from 1 to "
                f"{LARGEST_VERSION}"
            )
    if version not in OPSETS:
        raise UnsupportedError(
            f"{place}: opset {version} of domain ai.onnx is not supported; "
            f"{OPSETS[0]} to {OPSETS[-1]} are"
        )
    return opsets


def _node_names(proto: onnx.GraphProto) -> list[str]:
    """A name for each node: its own, or that of its first result. Repeated names get numbers."""
    taken = Names()
    names: list[str] = []
    for index, node in enumerate(proto.node):
        first = next((o for o in node.output if o), "")
        names.append(taken.unique(node.name or first or f"node {index}"))
    return names


def _read_values(
    file: ModelFile,
    graph: GraphScope,
    sizes: Sizes,
    known: Mapping[str, Array],
    declared: Declared,
) -> list[str]:
    """Make weights known values and inputs arguments. Returns the inputs' names."""
    proto = file.model.graph
    if proto.sparse_initializer:
        raise UnsupportedError(f"{graph.place}: sparse weights are not supported; need dense ones")
    for index, tensor in enumerate(proto.initializer):
        graph.add_weight(tensor, file.weights.get(index))
        if problem := declared.problem(tensor.name, graph.values[tensor.name]):
            raise graph.bad(f"weight {problem}")
    graph.values.update((name, known_array(name, array)) for name, array in known.items())
    inputs = [i for i in proto.input if i.name not in graph.values]
    seen: set[str] = set()
    for value in inputs:
        if value.name in seen or not value.name:
            raise graph.bad(f"two inputs are called {value.name!r}; need different names")
        seen.add(value.name)
    for value in inputs:
        type_ = _input_type(value, graph, sizes)
        argument = graph.body.insert_arg(type_, len(graph.body.args))
        argument.location = named(value.name)
        graph.values[value.name] = argument
        graph.inputs[argument] = value.name
        if graph.batch is not None and value.name in sizes.samples:
            graph.batch.axes[argument] = 0
    return [value.name for value in inputs]


def _sizes(
    proto: onnx.GraphProto, dims: Mapping[str, int], values: Mapping[str, Array], place: str
) -> Sizes:
    """The sizes of the inputs' axes, from the model, from options, and from the inputs' values."""
    weights = {tensor.name for tensor in proto.initializer}
    inputs = {value.name: value for value in proto.input}
    free = [each for each in proto.input if each.name not in weights and each.name not in values]
    sizes = Sizes(free, place)
    sizes.add_dims(dims)
    for name, array in values.items():
        sizes.add_value(inputs[name], array.shape)
    return sizes


def _given_values(
    proto: onnx.GraphProto, values: Mapping[str, ArrayLike], place: str
) -> dict[str, Array]:
    """The arrays of inputs whose values are known at import."""
    inputs = {value.name: value for value in proto.input}
    for name in values:
        if name not in inputs:
            listed = ", ".join(inputs) or "none"
            raise InputError(f"{place}: no input {name!r} to give a value; there are {listed}")
    return {name: bound_value(inputs[name], given, place) for name, given in values.items()}


_KINDS = {
    "sequence_type": "a sequence",
    "optional_type": "an optional",
    "map_type": "a map",
    "opaque_type": "opaque",
    "sparse_tensor_type": "a sparse tensor",
}
"""The words for the kinds of values."""


def _input_type(value: onnx.ValueInfoProto, graph: GraphScope, sizes: Sizes):
    what = f"{graph.place}: input {value.name!r}"
    kind = value.type.WhichOneof("value")
    if kind is None:
        raise InputError(f"{what} has no type")
    if kind != "tensor_type":
        raise UnsupportedError(
            f"{what} is {_KINDS.get(kind, 'a ' + kind)}; only tensors are supported"
        )
    type_ = value.type.tensor_type
    element = tensor_element(type_.elem_type, what)
    if not type_.HasField("shape"):
        raise InputError(f"{what} has no shape; give the model one")
    shape: list[int] = []
    for axis in range(len(type_.shape.dim)):
        size = sizes.size(value, axis)
        assert size is not None, f"{what}: axis {axis} is checked"
        shape.append(size)
    try:
        check_tensor_limits(shape, numpy_dtype(element).itemsize)
    except ValueError as error:
        raise InputError(f"{what}: {error}") from None
    return nn.tensor(shape, element)


REMEDIES = {
    ("ai.onnx.ml", "ZipMap"): "only tensors are: a map of scores by class is none. Export without "
    "it, such as skl2onnx.to_onnx(..., options={'zipmap': False}); the result is then a table of "
    "scores, one column for each class"
}
"""Advice for operators that many exporters write, and that no program can compute."""


def _check_operator(node: Node) -> None:
    """Raise UnsupportedError for an unknown operator, before anything is built."""
    if is_function(node) and _importer(node) is None:
        return
    known = DOMAINS.get(node.domain)
    of_domain = "" if node.domain == "ai.onnx" else f', "{node.domain}"'
    wanted = f'--load a .py with @onnx_operator("{node.operator}"{of_domain}) to add it'
    if known is None and _importer(node) is None:
        raise node.unsupported("the domain", f"operators of domain ai.onnx are; {wanted}")
    if node.domain not in node.graph.opsets:
        raise node.bad(f"the model imports no opset of domain {node.domain}")
    if known is not None and _importer(node) is None:
        near = get_close_matches(node.operator, known)
        guess = f"; did you mean {' or '.join(near)}?" if near else ""
        remedy = REMEDIES.get((node.domain, node.operator))
        if remedy is not None:
            raise node.unsupported("the operator", remedy)
        raise node.unsupported(
            "the operator", f"{len(known)} others are (docs/reference/onnx.md){guess}; {wanted}"
        )


def _results(node: Node) -> Results:
    """The results of a node's importer."""
    own = _own_importer(node)
    if own is None and _importer(node) is None:
        return inlined(node)
    if own is None:
        users = USERS_OPERATORS[f"{node.domain}.{node.operator}"]
        return read_sized(node, partial(users_results, users))
    try:
        results = read_sized(node, own)
    except InputError:
        raise
    except (VerifyException, ValueError, TypeError, IndexError, OverflowError) as error:
        raise node.bad(str(error)) from error
    unread = sorted(set(node.attributes) - node.read)
    # ONNX's schemas list the attributes of its own operators. onnxruntime's schemas are not
    # available.
    if unread and node.domain == CONTRIBUTED_DOMAIN:
        raise node.unsupported(f"attribute {unread[0]}", f"{', '.join(sorted(node.read))} are")
    return results


def _read_node(node: Node, *, lenient: bool) -> list[Operation]:
    """Import a node of a nested graph, and return its operations."""
    _check_operator(node)
    if not lenient:
        check_node(node, ONNX_OPERATORS)
    _import_node(node, Declared((), {}))
    return node.ops


def _import_node(node: Node, declared: Declared) -> None:
    results = _results(node)
    values = listed(results)
    first = values[0] if values else ""
    node.locate(None if isinstance(first, str) else first)
    tensors = [str(each) if isinstance(each, Listed | Maybe) else each for each in values]
    if node.graph.shapes is not None:
        node.graph.shapes.record(node, tensors)
    if node.graph.batch is not None:
        node.graph.batch.check(node, tensors)
    for index, name in enumerate(node.proto.output):
        if not name:
            continue
        if index >= len(values):
            raise node.bad(f"result {index} {name!r}: the operator has {len(values)}")
        if name in node.graph.values or name in node.graph.lists:
            raise node.bad(f"result {name!r} is the name of an earlier value")
        value = values[index]
        if isinstance(value, str):
            node.graph.absent[name] = value
            continue
        if problem := declared.problem(name, value, _open_axis(node.graph, value)):
            raise node.bad(f"result {problem}")
        node.graph.hold(name, value)
