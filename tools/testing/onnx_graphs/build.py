"""From a sketch to an ONNX model: valid by construction, whatever operators the reader has."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from math import prod
from random import Random

import onnx
from onnx import helper, numpy_helper
from onnx.shape_inference import infer_node_outputs

from ...importers.onnx.reader import OPERATORS
from ...importers.onnx.reader import OPSETS as READ
from ..generators.sketch import Sketch, Step
from .graph import Graph
from .node import MOST_RESULT, NodeDraw, NotDrawn
from .pool import TYPES, Pool, Value
from .runtimes import OPSETS as RUN

OPSETS = tuple(o for o in READ if o in RUN)
"""Versions of the domain ai.onnx that models are made of."""

TRIES = 12
"""Nodes that are tried for one step, until one is valid."""
MOST_RESULTS = 16
MOST_PRODUCTS = 1_000_000
"""Elements of a result, times those of a row of what it is multiplied by: of a convolution for
instance, the numbers that it multiplies."""
ALL_SHOWN = 0.7
"""How often every result is an output; otherwise those that nobody reads, and a few."""
LATEST_FORMAT = 10


@lru_cache(maxsize=64)
def operators_of(opset: int) -> tuple[str, ...]:
    """The operators that the reader supports and that there are in an opset, by name."""
    found: list[str] = []
    for name in sorted(OPERATORS):
        try:
            schema = onnx.defs.get_schema(name, opset)
        except onnx.defs.SchemaError:
            continue
        if not schema.deprecated:
            found.append(name)
    return tuple(found)


def build_graph(sketch: Sketch, operators: Collection[str] | None = None) -> Graph:
    """The model of a sketch: the same one each time. The sketch's target means nothing here.

    operators: those that nodes are made of; all that the reader supports if None.
    """
    random = Random(f"{sketch.seed} graph")
    opset = random.choice(OPSETS)
    least = helper.find_min_ir_version_for([helper.make_opsetid("", opset)])
    pool = Pool(sketch, opset, random.choice((least, max(least, LATEST_FORMAT))))
    names = [o for o in operators_of(opset) if operators is None or o in operators]
    for step in sketch.steps if names else ():
        _add_node(pool, names[step.kind % len(names)], step)
    if not pool.results:
        leaf = pool.leaf("tensor(float)", (2,), random)
        result = Value("result", leaf.type, leaf.shape)
        pool.append(helper.make_node("Identity", [leaf.name], [result.name]), [result])
    shown = pool.results
    if random.random() > ALL_SHOWN:
        shown = [v for v in shown if v.name not in pool.used or random.random() < 0.2]
    graph = helper.make_graph(
        pool.nodes, "graph", pool.infos, [v.info for v in shown[-MOST_RESULTS:]], pool.initializers
    )
    proto = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=pool.ir_version
    )
    return Graph(proto, pool.inputs, sketch)


def _add_node(pool: Pool, operator: str, step: Step) -> None:
    """Append one node, and those that its parameters take; none if none is valid."""
    random = Random(f"{step.seed} {step.kind}")
    schema = onnx.defs.get_schema(operator, pool.opset)
    for turn in range(TRIES):
        mark = pool.mark()
        try:
            node = NodeDraw(pool, schema, step, random, alone=turn > TRIES // 2).node()
            pool.append(node, _results(pool, schema, node))
            return
        except NotDrawn:
            pool.back_to(mark)


def _results(pool: Pool, schema: onnx.defs.OpSchema, node: onnx.NodeProto) -> list[Value]:
    """The results of a node. Raises NotDrawn if it is not valid, or too large."""
    there = {v.name: v for v in pool.values}
    operands = [there[name] for name in node.input if name]
    known = {
        v.name: numpy_helper.from_array(v.array, v.name) for v in operands if v.array is not None
    }
    try:
        found = infer_node_outputs(
            schema,
            node,
            {v.name: v.info.type for v in operands},
            known,
            opset_imports=[helper.make_opsetid("", pool.opset)],
            ir_version=pool.ir_version,
        )
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        raise NotDrawn(str(error)) from None
    results = [_result(name, found.get(name)) for name in node.output if name]
    products = max((prod(v.shape[1:]) for v in operands[1:2]), default=1)
    if any(prod(v.shape) * products > MOST_PRODUCTS for v in results):
        raise NotDrawn("too large")
    return results


def _result(name: str, type_: onnx.TypeProto | None) -> Value:
    tensor = None if type_ is None else type_.tensor_type
    if tensor is None or not tensor.HasField("shape") or tensor.elem_type not in TYPES:
        raise NotDrawn("not all is known of the result")
    if not all(d.HasField("dim_value") and d.dim_value >= 0 for d in tensor.shape.dim):
        raise NotDrawn("not all sizes are known")
    shape = tuple(d.dim_value for d in tensor.shape.dim)
    if prod(shape) > MOST_RESULT:
        raise NotDrawn("too large")
    return Value(name, TYPES[tensor.elem_type], shape)
