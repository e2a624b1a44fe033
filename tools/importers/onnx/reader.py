"""Reads ONNX models as modules of the nn dialect."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from ....dialects import nn
from ....dialects.dtypes import numpy_dtype
from ....dialects.host import HostTexts, set_host_texts, set_optional_inputs
from ....dialects.model_calls import loaded_like, model_call
from ....ir.context import AbeleContext
from ....ir.support.errors import InputError
from ....ir.support.user_entries import add_entry
from ....ir.upstream import ModuleOp
from ..batching import Prepare, read_with_batch
from ..binding import Sizes, bind_lengths, bound_values, input_sizes, largest
from ..bounds import GivenSize
from ..building import Known, Value
from ..errors import UnsupportedError
from ..folded_modules import warnings_of
from ..front_end import Reading, weigh_nothing
from ..given_weights import given_weights
from ..huge_weights import WeightCheck
from ..uses import Use, Used, gathered, others_are, reason_of
from .declared import Declared
from .fixed import fixed_weights
from .folded import folded_in
from .functions import check_calls, check_function, identity, inlined, is_function, model_functions
from .inputs import signature_of, signatures
from .model_file import ModelFile, read_model_file
from .names import check_names
from .node import (
    GraphScope,
    Held,
    Importer,
    Listed,
    Maps,
    Maybe,
    Node,
    Results,
    Texts,
    listed,
)
from .ops_attention import ATTENTIONS
from .ops_categories import CATEGORIES
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
from .ops_support_vectors import SUPPORT_VECTORS
from .ops_texts import with_texts
from .ops_training import TRAINING
from .ops_trees import TREES
from .ops_window import WINDOWS
from .origins import node_origins
from .overrides import optional_tensors
from .reversal import REVERSALS
from .sparse_weights import weights_of
from .tensors import Array, tensor_element
from .users_operator import called_results, users_results
from .uses import Tolerant, check_operators, every_node, inferred_types
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
    "ai.onnx.ml": {**LEARNED, **CATEGORIES, **SUPPORT_VECTORS, **TREES},
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
    """A user's importer of a node's operator, or what builds the operation that the node calls."""
    name = f"{node.domain}.{node.operator}"
    importer = USERS_OPERATORS.get(name)
    if importer is not None:
        return partial(users_results, importer)
    call = model_call(name)
    return None if call is None else partial(called_results, call)


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
    dims: Mapping[str, GivenSize] | None = None,
    values: Mapping[str, ArrayLike] | None = None,
    check: WeightCheck | None = None,
    *,
    batch: int | None = None,
    lenient: bool = False,
    training: bool = False,
    weights: str | os.PathLike[str] | Mapping[str, ArrayLike] | None = None,
    partial_weights: bool = False,
) -> ModuleOp:
    """The module of an ONNX model. Its @main takes the model's inputs and returns its outputs.

    Raises InputError for a damaged model, and UnsupportedError for what abele cannot compile.

    Blobs go to the context's store. Weights become states, loaded at the head of @main. Every
    operation has its node as location.

    Args:
        model: a path, or a model in memory, which has no folder for external data.
        dims: sizes of the inputs' free dimensions, by symbol or by "INPUT:AXIS"; for a size that
            each run chooses, its bounds, such as (0, 64) or "0..64".
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
        weights: a file of safetensors, or arrays by name, that replace the model's weights.
        partial_weights: whether the model and `weights` may each have weights that the other lacks.
    """
    place = "<model>" if isinstance(model, onnx.ModelProto) else str(model)
    given = None if weights is None else given_weights(weights, partial_weights)
    reading = Reading(
        context,
        place,
        dims or {},
        values or {},
        batch,
        lenient,
        training,
        given,
        check=check or weigh_nothing,
    )
    module = read_onnx(model, reading)
    if given is not None:
        _ = given.settle(module, place)
    return module


def read_onnx(model: Model, reading: Reading) -> ModuleOp:
    """The module of an ONNX model, as for import_onnx."""
    file, folder = _file_of(model)
    return read_with_batch(reading, partial(_import, file, folder))


def _file_of(model: Model) -> tuple[ModelFile, Path | None]:
    """A model that was read, and the folder of its external data. Raises InputError."""
    if isinstance(model, onnx.ModelProto):
        return ModelFile(model, {}), None
    path = Path(model)
    if path.is_file() and not path.stat().st_size:
        raise InputError(f"{path}: empty; need an ONNX model")
    return read_model_file(path), path.parent


def _import(file: ModelFile, folder: Path | None, reading: Reading, prepare: Prepare) -> ModuleOp:
    context, place = reading.context, reading.place
    model, lenient = file.model, reading.lenient
    check_names(model, place)
    graph = GraphScope(
        context=context,
        place=place,
        training=reading.training,
        weights=reading.weights,
        folder=folder,
        opsets=_opsets(model, place),
    )
    proto = model.graph
    if not proto.output:
        raise graph.bad("the model's graph has no outputs; is it an ONNX model?")
    for function in model.functions:
        check_function(function, place)
    graph.functions = model_functions(model)
    check_calls(model.graph.node, graph.functions, place)
    graph.read = partial(_read_node, lenient=lenient)
    nodes = _nodes(model, graph)
    check_operators(nodes, _check_operator)
    if not lenient:
        check_valid(model, graph, nodes, ONNX_OPERATORS)
    declarations = () if lenient else (*proto.input, *proto.value_info, *proto.output)
    given, values = _bindings(proto, reading)
    if reading.training:
        reading.notes.extend(warnings_of(folded_in(model), place))
    graph.watcher = prepare(given)
    declared = Declared(declarations, given.fixed)
    _read_values(file, graph, given, values, declared)
    if reading.check is not weigh_nothing:
        check_weights(file, folder, place, reading.check)
    for node in nodes:
        _import_node(node, declared)
    pairs = [pair for each in proto.output for pair in _outputs(graph, each, declared)]
    module = graph.module([(name, _tensor_of(value)) for name, value in pairs])
    set_host_texts(module, _host_texts(graph, proto, pairs))
    optional = (each.name for each in optional_tensors(model))
    set_optional_inputs(module, [name for name in optional if name not in values])
    return module


def _open_axes(graph: GraphScope, value: Held) -> frozenset[int]:
    """The axes of a value whose sizes depend on values."""
    return frozenset(graph.sizes.get(value, ())) if isinstance(value, SSAValue) else frozenset()


def model_uses(
    model: Model,
    context: AbeleContext,
    dims: Mapping[str, GivenSize] | None = None,
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
    graph = GraphScope(context=context, place=place, folder=folder, opsets=_opsets(proto, place))
    graph.functions = model_functions(proto)
    graph.read = partial(_read_node, lenient=False)
    nodes = _nodes(proto, graph)
    every = list(every_node(nodes))
    reasons = {id(node): why for node in every if (why := _refusal(node))}
    problem = ""
    try:
        sizes, given = _bindings(proto.graph, reading)
        sizes.check()
        declared = Declared((), sizes.fixed)
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
    is_text = tensor.elem_type == onnx.TensorProto.STRING
    try:
        element = i32 if is_text else tensor_element(tensor.elem_type, str(node))
    except InputError:
        return False
    body = node.graph.main
    added = body.insert_arg(nn.tensor(sizes, element), len(body.args))
    node.graph.hold(name, Texts(added, is_known=True) if is_text else added)
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


def _tensor_of(value: Value | Texts | Maps) -> Value:
    """The tensor of the program for an output."""
    if isinstance(value, Texts):
        return value.places
    return value.table if isinstance(value, Maps) else value


def _host_texts(
    graph: GraphScope,
    proto: onnx.GraphProto,
    outputs: Sequence[tuple[str, Value | Texts | Maps]],
) -> HostTexts:
    """What the host has to know of strings. Raises UnsupportedError for an output that would be a
    string of the host."""
    results = tuple(name for name, value in outputs if isinstance(value, Texts))
    for name, value in outputs:
        if isinstance(value, Texts) and not value.is_known:
            raise UnsupportedError(
                f"{graph.place}: output {name!r} holds strings of an input; need strings that the "
                "model holds"
            )
    return HostTexts(
        tuple(graph.texts),
        tuple(each.name for each in proto.input if _is_text_input(each, graph)),
        results,
        {name: value.columns for name, value in outputs if isinstance(value, Maps)},
    )


def _is_text_input(value: onnx.ValueInfoProto, graph: GraphScope) -> bool:
    held = graph.lists.get(value.name)
    return isinstance(held, Texts) and not held.is_known


def _outputs(
    graph: GraphScope, output: onnx.ValueInfoProto, declared: Declared
) -> Iterator[tuple[str, Value | Texts | Maps]]:
    """The outputs of the program for one output of the model: one per element of a sequence."""
    value = graph.held(output.name, f"output {output.name!r}")
    if problem := declared.problem(output.name, value, _open_axes(graph, value)):
        raise graph.bad(f"output {problem}")
    if isinstance(value, Maybe):
        if value.value is None:
            return
        value = value.value
    if isinstance(value, Listed):
        yield from ((f"{output.name}[{i}]", each) for i, each in enumerate(value.items))
    else:
        yield output.name, value


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


def _nodes(model: onnx.ModelProto, graph: GraphScope) -> list[Node]:
    """The nodes of a model's graph."""
    every = zip(model.graph.node, node_origins(model), strict=True)
    return [Node(node, each.name, graph, source=each.source) for node, each in every]


def _read_values(
    file: ModelFile,
    graph: GraphScope,
    sizes: Sizes,
    known: Mapping[str, Array],
    declared: Declared,
) -> None:
    """Make weights known values and inputs arguments."""
    proto = file.model.graph
    fixed = fixed_weights(proto)
    for index, tensor in enumerate(proto.initializer):
        graph.add_weight(tensor, file.weights.get(index), fixed=tensor.name in fixed)
    for sparse in proto.sparse_initializer:
        graph.add_sparse_weight(sparse)
    for tensor in weights_of(proto):
        if problem := declared.problem(tensor.name, graph.held(tensor.name, "the graph")):
            raise graph.bad(f"weight {problem}")
    graph.values.update((name, Known.of(name, array)) for name, array in known.items())
    inputs = [i for i in proto.input if i.name not in graph.values | graph.lists]
    seen: set[str] = set()
    for value in inputs:
        if value.name in seen or not value.name:
            raise graph.bad(f"two inputs are called {value.name!r}; need different names")
        seen.add(value.name)
    for value in inputs:
        is_text = value.type.tensor_type.elem_type == onnx.TensorProto.STRING
        dtype = _input_dtype(value, f"{graph.place}: input {value.name!r}")
        shape = sizes.shape(signature_of(value))
        added = graph.add_input(value.name, [*map(largest, shape)], dtype)
        graph.hold(value.name, Texts(added, is_known=False) if is_text else added)
    given = ((graph.values.get(each.name), sizes.shape(signature_of(each))) for each in inputs)
    bind_lengths(graph, [(value, shape) for value, shape in given if isinstance(value, SSAValue)])


def _bindings(proto: onnx.GraphProto, reading: Reading) -> tuple[Sizes, dict[str, Array]]:
    """The sizes of the inputs' axes, and the arrays of inputs whose values are known."""
    inputs, place = signatures(proto), reading.place
    values = bound_values(place, inputs, reading.values)
    weights = {tensor.name for tensor in weights_of(proto)} - values.keys()
    open_inputs = (each for each in inputs if each.name not in weights)
    return input_sizes(place, open_inputs, reading.dims, values), values


_KINDS = {
    "sequence_type": "a sequence",
    "optional_type": "an optional",
    "map_type": "a map",
    "opaque_type": "opaque",
    "sparse_tensor_type": "a sparse tensor",
}
"""The words for the kinds of values."""


def _input_dtype(value: onnx.ValueInfoProto, what: str) -> np.dtype[Any]:
    """The dtype of an input. Raises InputError for one that is no tensor, or has no shape."""
    kind = value.type.WhichOneof("value")
    if kind is None:
        raise InputError(f"{what} has no type")
    if kind != "tensor_type":
        raise UnsupportedError(
            f"{what} is {_KINDS.get(kind, 'a ' + kind)}; only tensors are supported"
        )
    type_ = value.type.tensor_type
    is_text = type_.elem_type == onnx.TensorProto.STRING
    element = i32 if is_text else tensor_element(type_.elem_type, what)
    if not type_.HasField("shape"):
        raise InputError(f"{what} has no shape; give the model one")
    return numpy_dtype(element)


def _check_operator(node: Node) -> None:
    """Raise UnsupportedError for an unknown operator, before anything is built."""
    if is_function(node) and _importer(node) is None:
        return
    known = DOMAINS.get(node.domain)
    of_domain = "" if node.domain == "ai.onnx" else f', "{node.domain}"'
    wanted = f'--load a .py with @onnx_operator("{node.operator}"{of_domain}) to add it'
    if known is None and _importer(node) is None:
        wanted += loaded_like(f"{node.domain}.{node.operator}")
        raise node.unsupported("the domain", f"operators of domain ai.onnx are; {wanted}")
    if node.domain not in node.graph.opsets:
        raise node.bad(f"the model imports no opset of domain {node.domain}")
    if known is not None and _importer(node) is None:
        others = others_are(node.operator, [*known], "onnx")
        raise node.unsupported("the operator", f"{others}; {wanted}")


def _results(node: Node) -> Results:
    """The results of a node's importer."""
    own = _own_importer(node)
    if own is None and _importer(node) is None:
        return inlined(node)
    if own is None:
        users = _users_importer(node)
        assert users is not None, f"{node.operator} is checked"
        return read_sized(node, users)
    with node.checked():
        results = with_texts(node, partial(read_sized, importer=own))
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
    tensors = [each if isinstance(each, SSAValue | Known) else None for each in values]
    node.finish(node.operands(), tensors)
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
        if problem := declared.problem(name, value, _open_axes(node.graph, value)):
            raise node.bad(f"result {problem}")
        node.graph.hold(name, value)
