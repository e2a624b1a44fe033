"""Operators with graphs inside: torch.cond, while_loop, scan, and wrappers of one graph.

A condition that is known at import selects its branch then. Loops run on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import Region, SSAValue

from ....dialects import control, nn
from ....ir.support.limits import INLINED_NODES
from ..branches import OtherResultsError, branched
from ..building import Value, dtype_of, shape_of
from ..carried import CarriedValues, GrowsError, opening
from ..lengths import Length
from ..loops import Rows, collecting_loop, in_block, row_at
from ..padding import sizes_of
from .aten_node import AtenNode, Importer, Results, Scope, as_list, is_value, kind_of
from .promotion import Undecided
from .schema import Graph, GraphOf, Symbol, Tensor


class Parts(NamedTuple):
    """The arguments of a node with graphs: the graphs, and what is before and after them."""

    before: list[Any]
    graphs: list[Graph]
    after: list[Any]


def _parts(node: AtenNode, count: int) -> Parts:
    arguments = list(node.call.arguments.values())
    places = [i for i, each in enumerate(arguments) if isinstance(each, GraphOf)]
    graphs = [each.graph for each in arguments if isinstance(each, GraphOf)]
    if len(graphs) != count or places[-1] - places[0] != count - 1:
        raise node.bad(f"{len(graphs)} graphs; need {count}, one after the other")
    before, after = arguments[: places[0]], arguments[places[-1] + 1 :]
    return Parts([*map(node.resolved, before)], graphs, [*map(node.resolved, after)])


def _lists(node: AtenNode, parts: Parts, count: int) -> list[list[Any]]:
    """The lists of operands after the graphs; those that are left out are empty."""
    if len(parts.after) > count:
        raise node.bad(f"{len(parts.after)} lists of operands; need at most {count}")
    missing = count - len(parts.after)
    return [as_list(each) for each in parts.after] + [[] for _ in range(missing)]


def read_graph(node: AtenNode, graph: Graph, operands: Sequence[Any]) -> list[Any]:
    """The results of an inner graph. Its operations go where the node adds operations."""
    if len(operands) != len(graph.inputs):
        raise node.bad(f"{len(operands)} operands of a graph with {len(graph.inputs)} inputs")
    count = node.graph.count
    count.inlined += len(graph.calls)
    if count.inlined > INLINED_NODES.most:
        raise node.bad(INLINED_NODES.refusal(f"inner graphs of {count.inlined} nodes"))
    outer = node.scope
    scope = Scope(
        node.graph, outer.run, tensors=graph.tensors, ranges=outer.ranges, taken=outer.taken
    )
    for argument, value in zip(graph.inputs, operands, strict=True):
        if isinstance(argument, Tensor):
            scope.values[argument.name] = _tensor(node, value)
        elif isinstance(argument, Symbol):
            if not isinstance(value, bool | int | float | Length | Undecided):
                raise node.bad(f"input {argument.name!r} is {kind_of(value)}; need a number")
            scope.numbers[argument.name] = value
    scope.run(scope, graph)
    reads = AtenNode(node.call, node.name, scope, node.source)
    return [reads.resolved(each) for each in graph.outputs]


def _tensor(node: AtenNode, value: Any) -> Value:
    """A tensor, or a number as a tensor without axes."""
    if is_value(value):
        return value
    if isinstance(value, bool | int | float):
        return node.known(np.array(value))
    raise node.bad(f"an operand is {kind_of(value)}; need a tensor")


def _emitted(node: AtenNode, values: Sequence[Any]) -> list[SSAValue]:
    return [node.ssa(_tensor(node, each)) for each in values]


def _wrapped(node: AtenNode) -> Results:
    """The results of the graph in an argument, which the arguments after it go into."""
    parts = _parts(node, 1)
    only_list = len(parts.after) == 1 and isinstance(parts.after[0], list)
    return read_graph(node, parts.graphs[0], as_list(parts.after[0]) if only_list else parts.after)


def _cond(node: AtenNode) -> Results:
    """The results of one of two graphs."""
    parts = _parts(node, 2)
    if len(parts.before) != 1:
        raise node.bad(f"{len(parts.before)} conditions; need one")
    (given,), (operands,) = parts.before, _lists(node, parts, 1)
    if isinstance(given, Undecided):
        raise node.size_refused("the condition of a branch", given.length)
    condition = _tensor(node, given)
    chosen = _truth(node, condition)
    if chosen is not None:
        return read_graph(node, parts.graphs[0 if chosen else 1], operands)

    def build(graph: Graph) -> list[SSAValue]:
        return _emitted(node, read_graph(node, graph, operands))

    try:
        return branched(node, node.ssa(condition), [partial(build, each) for each in parts.graphs])
    except OtherResultsError:
        raise node.unsupported(
            "branches that give different element types or ranks", "need the same"
        ) from None


def _truth(node: AtenNode, condition: Value) -> bool | None:
    """The value of a condition of one element; None if only a run knows it."""
    if dtype_of(condition) != np.bool_ or any(n != 1 for n in shape_of(condition)):
        raise node.bad(
            f"the condition is {dtype_of(condition).name}{list(shape_of(condition))}; need one "
            "truth value"
        )
    array = node.graph.known(condition)
    return None if array is None else bool(array.reshape(()))


def _after(node: AtenNode, carried: CarriedValues, values: Sequence[Any]) -> list[SSAValue]:
    """The carried values after an iteration, and their lengths."""
    try:
        return carried.after(_emitted(node, values))
    except GrowsError as error:
        raise node.unsupported(
            f"a loop in which carried value {error.index} changes its shape or its element type",
            "need the same after each iteration",
        ) from None


def _while_loop(node: AtenNode) -> Results:
    """Values that a graph changes as long as another graph gives a true condition."""
    parts = _parts(node, 2)
    initial, further = _lists(node, parts, 2)
    goes_on, body = parts.graphs
    carried = CarriedValues(node, _emitted(node, initial))

    def build() -> list[SSAValue]:
        before = carried.before
        types = [value.type for value in before]
        with in_block(node, types) as test:
            values = carried.marked(list(test.args))
            found = read_graph(node, goes_on, [*values, *further])
            condition = _emitted(node, found[:1])
            if len(condition) != 1 or nn.element_of(condition[0]) != i1:
                raise node.bad("the condition of a loop; need one truth value")
            node.add_control(control.ConditionOp(node.reshape(condition[0], ())))
        with in_block(node, types) as block:
            values = carried.marked(list(block.args))
            found = read_graph(node, body, [*values, *further])
            node.add_control(control.YieldOp(*_after(node, carried, found)))
        done = node.add_control(control.WhileOp(before, Region(test), Region(block)))
        return carried.marked(done)

    return opening(carried, build)


def _scan(node: AtenNode) -> Results:
    """Values that a graph changes for each row of some tensors, and the rows that it gives."""
    parts = _parts(node, 1)
    initial, scanned, further = _lists(node, parts, 3)
    (graph,) = parts.graphs
    tables = _emitted(node, scanned)
    lengths = {nn.shape_of(each)[0] for each in tables if nn.shape_of(each)}
    if len(lengths) != 1 or not all(map(nn.shape_of, tables)):
        raise node.bad(f"tensors of {sorted(lengths)} rows; need as many of each")
    for each in tables:
        if 0 in sizes_of(node, each):
            raise node.size_refused("the number of iterations", sizes_of(node, each)[0])
    (iterations,) = lengths
    if not iterations:
        raise node.unsupported("a scan of no rows", "need one or more")
    carried = CarriedValues(node, _emitted(node, initial))

    def iteration(values: list[SSAValue], number: SSAValue) -> tuple[list[SSAValue], Rows]:
        rows = [row_at(node, table, number) for table in tables]
        found = read_graph(node, graph, [*carried.marked(values), *rows, *further])
        if len(found) < len(initial):
            raise node.bad(f"a graph with {len(found)} results; need {len(initial)} or more")
        given = _emitted(node, found[len(initial) :])
        for each in given:
            for length in sizes_of(node, each).values():
                raise node.size_refused("the size of a row", length)
        kept = _after(node, carried, found[: len(initial)])
        return kept, [(row, number) for row in given]

    last, rows = opening(
        carried, lambda: collecting_loop(node, iterations, carried.before, iteration)
    )
    return [*carried.marked(last), *rows]


WRAPPERS = (
    "wrap_with_set_grad_enabled",
    "wrap_with_autocast",
    "wrap_inductor_compiled_regions",
    "invoke_subgraph",
)
"""Operators that only compute a graph, whose meaning here is that of its nodes."""

HIGHER_ORDER: dict[str, Importer] = {
    f"higher_order.{name}": importer
    for name, importer in {
        **dict.fromkeys(WRAPPERS, _wrapped),
        "cond": _cond,
        "while_loop": _while_loop,
        "scan": _scan,
    }.items()
}
"""The importers of operators with graphs inside, by their target."""
