"""Shrinks failing models, by simplifying the sketch and by cutting the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import process_time

import numpy as np

from ...driver.arrays import Array
from ..search.shrink import simpler
from .build import build_graph
from .graph import ModelCase, every_node, inner_graphs
from .runtimes import RefusedByRuntime, by_onnxruntime
from .unrolled import NotWrittenOut, written_out

Fails = Callable[[ModelCase], bool]
"""Whether a model still fails in the same way."""

LARGE = 8
"""Weights of more elements than this become inputs of the model."""


def smallest(graph: ModelCase, fails: Fails, seconds: float) -> ModelCase:
    """The smallest model found that fails like the given one.

    Args:
        seconds: CPU time limit of the search.
    """
    end = process_time() + seconds
    best, changed = graph, True
    while changed and process_time() < end:
        changed = False
        for candidate in _smaller(best):
            if process_time() > end:
                break
            if _size(candidate) < _size(best) and fails(candidate):
                best, changed = candidate, True
                break
    return best


def _size(graph: ModelCase) -> tuple[int, int, int, int]:
    """The size of a model: number of nodes, of all elements, of weights' elements, of outputs."""
    proto = graph.proto.graph
    held = sum(int(np.prod(t.dims)) for t in proto.initializer)
    given = sum(array.size for array in graph.inputs.values())
    return len(list(every_node(proto))), held + given, held, len(proto.output)


def _smaller(graph: ModelCase) -> Iterator[ModelCase]:
    """Smaller models, most promising first."""
    whole = graph.with_all_results()
    results = [v.name for v in whole.proto.graph.output]
    for name in results:
        yield graph.reduced_to([name])
    if graph.sketch is not None:
        for sketch in simpler(graph.sketch):
            yield build_graph(sketch)
    try:
        values = by_onnxruntime(whole.proto, whole.inputs)
    except RefusedByRuntime:
        return
    yield from _written_out(graph, values)
    shown = {v.name for v in graph.proto.graph.output}
    for node in reversed(graph.proto.graph.node):
        if not shown & set(node.output) and all(name in values for name in node.output):
            yield graph.with_inputs({name: values[name] for name in node.output})
    for name, array in graph.weights.items():
        if array.size > LARGE and name not in shown:
            yield graph.with_inputs({name: array})


def _written_out(graph: ModelCase, values: Mapping[str, Array]) -> Iterator[ModelCase]:
    """The model with one node replaced by its inner graphs, and with one result of theirs."""
    for node in graph.proto.graph.node:
        if not inner_graphs(node):
            continue
        try:
            plain = written_out(graph, node, values)
        except NotWrittenOut:
            continue
        yield plain
        names = [v.name for v in plain.with_all_results().proto.graph.output]
        for name in names:
            yield plain.reduced_to([name])
