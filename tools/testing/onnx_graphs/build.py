"""Builds valid ONNX models from sketches, with any operators that the reader supports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from random import Random

import onnx
from onnx import helper, numpy_helper
from onnx.shape_inference import infer_node_outputs

from ...importers.onnx.reader import CONTRIBUTED_DOMAIN, OPERATORS
from ...importers.onnx.reader import OPSETS as READ
from ..generators.sketch import Sketch, Step
from .contributed import CONTRIBUTED
from .control import AROUND, CONTROLLED, MOST_DEPTH
from .graph import ModelCase, every_node
from .lists import LISTED, TAKING_TENSORS, TENSORS_TAKEN
from .node import MOST_RESULT, NodeDraw, NotDrawn
from .operators import DRAWING, NOT_INFERRED
from .pool import TYPES, Pool, PoolValue
from .runtimes import EXPANDED_UNTIL
from .runtimes import OPSETS as RUN
from .selected import OPEN_SIZES

OPSETS = tuple(o for o in READ if o in RUN)
"""Versions of the domain ai.onnx that generated models use."""

TRIES = 12
"""At most this many nodes are drawn for one step, until one is valid."""
TRIES_WITH_GRAPHS = 3
"""The same for nodes with inner graphs, and for nodes on sequences and optional values."""
MOST_RESULTS = 16
"""Outputs of a model, at most."""
MOST_PRODUCTS = 1_000_000
"""Limit on the elements of a result, times the elements per row of the node's second operand. For a
convolution, this is the number of multiplications."""
ALL_SHOWN = 0.7
"""How often all results are outputs of the model. Otherwise, only unused results and a few more
are."""
MOST_LIKELY = 10
"""The largest weight of an operator that few opsets contain, relative to other operators."""
LATEST_FORMAT = 10
"""The latest version of the ONNX file format that models use."""


@lru_cache(maxsize=64)
def operators_of(opset: int) -> tuple[str, ...]:
    """The sorted names of the operators that both the reader and an opset support.

    Operators that draw random numbers are left out, and operators that onnxruntime does not run in
    this opset.
    """
    found: list[str] = []
    for name in sorted(OPERATORS.keys() - DRAWING):
        try:
            schema = onnx.defs.get_schema(name, opset)
        except onnx.defs.SchemaError:
            continue
        if not schema.deprecated and opset <= EXPANDED_UNTIL.get(name, opset):
            found.append(name)
    return tuple(found)


def _likely(opset: int) -> tuple[str, ...]:
    """The operators of an opset. An operator that few opsets contain occurs several times.

    So every operator is generated about equally often if opsets are drawn evenly.
    """
    found = Counter(name for each in OPSETS for name in operators_of(each))
    own = tuple(
        name
        for name in operators_of(opset)
        for _ in range(min(MOST_LIKELY, len(OPSETS) // found[name]))
    )
    return (*own, *CONTRIBUTED)


def build_graph(sketch: Sketch, operators: Collection[str] | None = None) -> ModelCase:
    """The model of a sketch. It depends only on the sketch and the operators.

    The sketch's target is not used.

    Args:
        operators: names of the operators to use, after the domain and a dot for other domains; all
            that the reader supports if None.
    """
    random = Random(f"{sketch.seed} graph")
    opset = random.choice(OPSETS)
    least = helper.find_min_ir_version_for([helper.make_opsetid("", opset)])
    pool = Pool(sketch, opset, random.choice((least, max(least, LATEST_FORMAT))))
    names = [o for o in _likely(opset) if operators is None or o in operators]
    for step in sketch.steps if names else ():
        _add_step(pool, names, step)
    if not pool.results:
        leaf = pool.leaf("tensor(float)", (2,), random)
        result = PoolValue("result", leaf.type, leaf.shape)
        pool.append(helper.make_node("Identity", [leaf.name], [result.name]), [result])
    shown = pool.results
    if random.random() > ALL_SHOWN:
        shown = [v for v in shown if v.name not in pool.used or random.random() < 0.2]
    shown = shown[-MOST_RESULTS:] or pool.results[-1:]
    shown_names = {v.name for v in shown}
    graph = helper.make_graph(
        pool.nodes,
        "graph",
        pool.infos,
        [v.info for v in shown],
        pool.initializers,
        value_info=[v for v in pool.told if v.name not in shown_names],
    )
    opsets = [helper.make_opsetid("", opset)]
    if any(node.domain for node in every_node(graph)):
        opsets.append(helper.make_opsetid(CONTRIBUTED_DOMAIN, 1))
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=pool.ir_version)
    return ModelCase(proto, pool.inputs, sketch)


def _add_step(pool: Pool, names: Sequence[str], step: Step) -> None:
    """Append the nodes of a step, in its control flow.

    Args:
        names: operators to choose from.
    """

    def add(pool: Pool, step: Step) -> None:
        _add_step(pool, names, step)

    operator = names[step.kind % len(names)]
    random = Random(f"{step.seed} {step.kind}")
    around = AROUND.get(step.within)
    if around is not None and around in names and operator not in CONTROLLED:
        plain = replace(step, within="")
        _tried(pool, lambda: CONTROLLED[around](pool, random, add, plain))
    elif operator in CONTROLLED:
        if pool.depth < MOST_DEPTH:
            _tried(pool, lambda: CONTROLLED[operator](pool, random, add, None))
    elif operator in CONTRIBUTED:
        _tried(pool, lambda: CONTRIBUTED[operator](pool, random))
    elif operator in LISTED and not _takes_tensor(operator, pool.opset, random):
        _tried(pool, lambda: LISTED[operator](pool, random))
    else:
        _add_node(pool, operator, step)


def _takes_tensor(operator: str, opset: int, random: Random) -> bool:
    """Whether to give an operator of optional values a tensor instead, which it also takes."""
    return operator in TAKING_TENSORS and opset >= TENSORS_TAKEN and random.random() < 0.3


def _tried(pool: Pool, draw: Callable[[], None]) -> None:
    """Append the nodes that a function draws, or nothing if they are not valid."""
    for _ in range(TRIES_WITH_GRAPHS):
        mark = pool.mark()
        try:
            draw()
            return
        except NotDrawn:
            pool.roll_back(mark)


def _add_node(pool: Pool, operator: str, step: Step) -> None:
    """Append a node and the nodes of its parameters. Append nothing if no valid node is found."""
    random = Random(f"{step.seed} {step.kind}")
    schema = onnx.defs.get_schema(operator, pool.opset)
    for iteration in range(TRIES):
        mark = pool.mark()
        try:
            node = NodeDraw(pool, schema, step, random, new_operand=iteration > TRIES // 2).node()
            results = _results(pool, schema, node)
            pool.append(node, results)
            if operator in NOT_INFERRED:
                pool.told += [v.info for v in results]
            return
        except NotDrawn:
            pool.roll_back(mark)


def _results(pool: Pool, schema: onnx.defs.OpSchema, node: onnx.NodeProto) -> list[PoolValue]:
    """The results of a node. Raises NotDrawn if the node is not valid or too large."""
    there = {v.name: v for v in pool.values}
    operands = [there[name] for name in node.input if name]
    known = {
        v.name: numpy_helper.from_array(v.array, v.name) for v in operands if v.array is not None
    }
    if schema.name == "Gather" and _is_bad_index(operands):
        raise NotDrawn("onnx finds that the index of a size is out of range")
    try:
        found = infer_node_outputs(
            schema,
            node,
            {v.name: v.info.type for v in operands},
            known,
            opset_imports=[helper.make_opsetid("", pool.opset)],
            ir_version=pool.ir_version,
        )
    # onnx raises ValueError for some attributes, such as an unknown dtype of EyeLike.
    except (
        onnx.shape_inference.InferenceError,
        onnx.checker.ValidationError,
        ValueError,
    ) as error:
        raise NotDrawn(str(error)) from None
    if schema.name in NOT_INFERRED:
        found = dict.fromkeys(node.output, operands[0].info.type)
    is_open = schema.name in OPEN_SIZES
    results = [_result(name, found.get(name), is_open=is_open) for name in node.output if name]
    products = max((prod(v.shape[1:]) for v in operands[1:2]), default=1)
    if any(prod(v.shape) * products > MOST_PRODUCTS for v in results):
        raise NotDrawn("too large")
    return results


def _is_bad_index(operands: Sequence[PoolValue]) -> bool:
    """Whether a constant index is out of range of a vector, which onnx takes for a shape."""
    data, index = operands
    if len(data.shape) != 1 or index.array is None:
        return False
    return bool(((index.array < -data.shape[0]) | (index.array >= data.shape[0])).any())


def _result(name: str, type_: onnx.TypeProto | None, *, is_open: bool) -> PoolValue:
    """A value for a result. Raises NotDrawn if its type or size is unsuitable.

    Args:
        is_open: whether its sizes may depend on values; then no node may read it.
    """
    tensor = None if type_ is None else type_.tensor_type
    if tensor is None or not tensor.HasField("shape") or tensor.elem_type not in TYPES:
        raise NotDrawn("the type of the result is not known")
    shape = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim)
    if -1 in shape and not is_open:
        raise NotDrawn("the shape of the result is not known")
    if prod(shape) > MOST_RESULT:
        raise NotDrawn("too large")
    return PoolValue(name, TYPES[tensor.elem_type], shape, shared=not is_open)
