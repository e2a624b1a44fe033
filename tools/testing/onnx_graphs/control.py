"""Draws nodes with inner graphs: If, Loop, Scan and SequenceMap, whose graphs are drawn too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ..generators.sketch import MOST_KINDS, Step
from .draw import Shape
from .lists import new_list
from .node import TYPE_WEIGHTS, NotDrawn
from .pool import CODES, INTEGERS, Listed, Pool, PoolValue

BOOLEAN = "tensor(bool)"

MOST_DEPTH = 2
"""How deep graphs are nested, at most."""
MOST_STEPS = 3
"""Steps of a graph inside a node, at most."""
MOST_ITERATIONS = 5
"""Iterations of a loop, at most."""
TRIES = 4
"""At most this many nodes are drawn for a result whose type and shape are given."""
UNEQUAL = 0.2
"""How often the branches of a constant condition have results of different shapes."""
UNEQUAL_SHAPES = 11
"""The first opset in which onnx allows different shapes in the branches of a condition."""
GROWING = 0.15
"""How often a loop with a known number of iterations carries a growing tensor, or a sequence."""
INTEGERS_COMPARED = 9
"""The first opset in which Less compares integers."""
PER_BATCH = 9
"""The first opset in which Scan has no batch axis. No generated model has this axis."""

AddStep = Callable[[Pool, Step], None]
"""Appends the nodes of a step to a pool, if any are valid."""

Builder = Callable[[Pool, Random, AddStep, Step | None], None]
"""Appends one node with inner graphs to a pool. Raises NotDrawn.

The graphs begin with the given step, if there is one.
"""


class _Body:
    """The inner graph of a node, while it is drawn.

    Attributes:
        first: the step that it begins with; any if None.
    """

    def __init__(
        self,
        outer: Pool,
        parameters: Sequence[PoolValue],
        random: Random,
        add: AddStep,
        first: Step | None = None,
    ) -> None:
        self.pool = outer.inner(parameters)
        self.random = random
        self.add = add
        self.parameters: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.taken: set[str] = set()
        self._first = first

    def fill(self) -> None:
        """Draw the nodes of the graph."""
        if self._first is not None:
            self.add(self.pool, self._first)
        for _ in range(self.random.randint(1, MOST_STEPS)):
            self.add(self.pool, self._step())

    def _step(self, operand: int = -1) -> Step:
        random = self.random
        operand = random.choice((0, 0, 0, 1, 2, 3)) if operand < 0 else operand
        return Step(random.randrange(MOST_KINDS), operand, random.randrange(1 << 16))

    def made(self) -> list[PoolValue]:
        """The results of nodes that can be outputs of the graph."""
        there = [v for v in self.pool.results if min(v.shape, default=1) >= 0]
        return [v for v in there if v.name not in self.taken]

    def give(self, value: PoolValue) -> PoolValue:
        """Make a value an output of the graph."""
        self.taken.add(value.name)
        self.outputs.append(value.info)
        return value

    def give_like(self, like: PoolValue) -> PoolValue:
        """Make a value with the type and shape of `like` an output, preferably a node's result."""
        alike = [v for v in self.made() if (v.type, v.shape) == (like.type, like.shape)]
        if alike:
            return self.give(self.random.choice(alike))
        pool = self.pool
        there = pool.of_shape(like.type, like.shape)
        base = self.random.choice(there) if there else pool.leaf(like.type, like.shape, self.random)
        for _ in range(TRIES):
            mark = pool.mark()
            # The latest value is the first operand of the step.
            pool.values.append(base)
            self.add(pool, self._step(0))
            alike = [v for v in self.made() if (v.type, v.shape) == (like.type, like.shape)]
            if alike:
                return self.give(alike[-1])
            pool.roll_back(mark)
        return self.give_copy(base)

    def give_copy(self, value: PoolValue) -> PoolValue:
        """Make a copy of a value an output of the graph."""
        copy = PoolValue(self.pool.name(self.random), value.type, value.shape)
        self.pool.append(helper.make_node("Identity", [value.name], [copy.name]), [copy])
        return self.give(copy)

    def graph(self, name: str) -> onnx.GraphProto:
        pool = self.pool
        return helper.make_graph(
            pool.nodes, name, self.parameters, self.outputs, pool.initializers, value_info=pool.told
        )


def _parameter(pool: Pool, random: Random, type_: str, shape: Shape) -> PoolValue:
    """A parameter of an inner graph, given by the node. Its elements are unknown."""
    return PoolValue(pool.name(random), type_, shape)


def _condition(
    pool: Pool, random: Random, known: bool | None = None, shape: Shape | None = None
) -> PoolValue:
    """One boolean: an existing value, an input, a constant, or a computed value.

    Args:
        known: the value of the constant, if it must be one.
        shape: () or (1,); either if None.
    """
    shapes = ((), (1,)) if shape is None else (shape,)
    shape = random.choice(shapes)
    if known is not None:
        return pool.given(np.full(shape, known), BOOLEAN, random, known=True)
    there = [v for v in pool.shared if v.type == BOOLEAN and v.shape in shapes]
    if there and random.random() < 0.6:
        return random.choice(there)
    value = pool.leaf(BOOLEAN, shape, random)
    if random.random() < 0.5:
        turned = PoolValue(pool.name(random), BOOLEAN, shape)
        pool.append(helper.make_node("Not", [value.name], [turned.name]), [turned], False)
        return turned
    return value


def _append(
    pool: Pool,
    random: Random,
    operator: str,
    operands: Sequence[str],
    results: Sequence[tuple[str, Shape]],
    *,
    alike: bool = True,
    **attributes: Any,
) -> None:
    """Append a node whose results have the given types and shapes, which onnx may not infer.

    Args:
        alike: whether onnx infers the same shapes. If it may not, no node reads the results.
    """
    values = [
        PoolValue(pool.name(random), t, shape if alike else (-1,) * len(shape), shared=alike)
        for t, shape in results
    ]
    node = helper.make_node(operator, operands, [v.name for v in values], **attributes)
    if random.random() > 0.3:
        node.name = f"{operator}_{pool.made}"
    pool.append(node, values)
    if alike:
        pool.told += [v.info for v in values]


# If


def _if(pool: Pool, random: Random, add: AddStep, first: Step | None) -> None:
    chosen = random.choice((None, None, True, False))
    condition = _condition(pool, random, chosen)
    bodies = [_Body(pool, (), random, add, first) for _ in range(2)]
    for body in bodies:
        body.fill()
    then, other = bodies
    made = then.made()
    if not made:
        raise NotDrawn("a branch without results")
    picked = random.sample(made, min(len(made), random.choice((1, 1, 2))))
    results = [then.give(value) for value in picked]
    unequal = chosen is not None and not pool.depth and pool.opset >= UNEQUAL_SHAPES
    if unequal and random.random() > UNEQUAL:
        unequal = False
    if unequal:
        there = other.made()
        if len(there) < len(results):
            raise NotDrawn("a branch with too few results")
        lead = results[0]
        same = [v for v in there if v.type == lead.type and len(v.shape) == len(lead.shape) > 0]
        if not same:
            raise NotDrawn("branches of different types")
        others = [other.give(random.choice(same))]
        others += [other.give_like(value) for value in results[1:]]
        results = results if chosen else others
    else:
        for value in results:
            other.give_like(value)
    _append(
        pool,
        random,
        "If",
        [condition.name],
        [(v.type, v.shape) for v in results],
        alike=not unequal,
        then_branch=then.graph("then"),
        else_branch=other.graph("else"),
    )


# Loop


def _carried(pool: Pool, random: Random, least: int) -> list[PoolValue]:
    """Values that a loop carries."""
    there = [v for v in pool.shared if v.type in TYPE_WEIGHTS]
    wanted = random.choice((least, 1, 1, 2))
    found = random.sample(there, min(len(there), wanted))
    while len(found) < wanted:
        found.append(pool.leaf("tensor(float)", _small(pool, random), random))
    return found


def _small(pool: Pool, random: Random) -> Shape:
    return tuple(random.choice(pool.sketch.sizes) for _ in range(random.choice((0, 1, 2))))


def _loop(pool: Pool, random: Random, add: AddStep, first: Step | None) -> None:
    """A loop with a fixed number of iterations, or one that a value ends.

    It may have scan outputs.
    """
    if random.random() < GROWING:
        _growing_loop(pool, random)
        return
    counted = random.random() < 0.55
    iterations = random.randint(0, MOST_ITERATIONS)
    initial = _carried(pool, random, 0)
    number = _parameter(pool, random, INTEGERS, ())
    going = _parameter(pool, random, BOOLEAN, ())
    inside = [_parameter(pool, random, v.type, v.shape) for v in initial]
    body = _Body(pool, [number, going, *inside], random, add, first)
    body.parameters += [v.info for v in (number, going, *inside)]
    body.fill()
    trip = condition = ""
    limit: PoolValue | None = None
    if counted:
        shape: Shape = random.choice(((), (1,)))
        trip = pool.given(np.full(shape, iterations), INTEGERS, random, known=True).name
        if random.random() < 0.4:
            condition = _condition(pool, random, True, ()).name
    else:
        # The number of iterations is unknown until the run: an input, or a condition on an input.
        if random.random() < 0.6:
            trip = pool.given(np.array(iterations), INTEGERS, random).name
        if not trip or random.random() < 0.6:
            condition = _condition(pool, random, shape=()).name
        if (not trip or random.random() < 0.6) and pool.opset >= INTEGERS_COMPARED:
            limit = pool.given(np.array(random.randint(0, MOST_ITERATIONS - 1)), INTEGERS, random)
            body.pool.values.append(limit)
    if limit is None:
        body.give_copy(going)
    else:
        on = PoolValue(body.pool.name(random), BOOLEAN, ())
        node = helper.make_node("Less", [number.name, limit.name], [on.name])
        body.pool.append(node, [on], False)
        body.give(on)
    for value in inside:
        body.give_like(value)
    rows: list[PoolValue] = []
    if counted:
        made = body.made()
        rows = random.sample(made, min(len(made), random.choice((0, 1, 1, 2))))
    results = [(v.type, v.shape) for v in initial]
    results += [(v.type, (iterations, *v.shape)) for v in map(body.give, rows)]
    if not results:
        raise NotDrawn("a loop without results")
    operands = [trip, condition, *(v.name for v in initial)]
    least = onnx.defs.get_schema("Loop", pool.opset).min_input
    while not operands[-1] and len(operands) > least:
        operands.pop()
    if len(operands) < least or (limit is None and not (trip or counted)):
        raise NotDrawn("a loop that carries nothing, or that does not end")
    _append(pool, random, "Loop", operands, results, body=body.graph("body"))


def _growing_loop(pool: Pool, random: Random) -> None:
    """A loop that carries a sequence of tensors, or a tensor that grows in each iteration."""
    iterations = random.randint(1, MOST_ITERATIONS)
    there = [v for v in pool.shared if v.type in TYPE_WEIGHTS and 0 < len(v.shape) < 4]
    if not there or pool.opset < 13:
        raise NotDrawn("no tensor to carry")
    value = random.choice(there)
    trip = pool.given(np.array(iterations), INTEGERS, random, known=True)
    number = _parameter(pool, random, INTEGERS, ())
    going = _parameter(pool, random, BOOLEAN, ())
    inside = pool.inner([number, going])
    carried, grown, on = (inside.name(random) for _ in range(3))
    inside.append(helper.make_node("Identity", [going.name], [on]), [], False)
    if random.random() < 0.5:
        axis = random.randrange(len(value.shape))
        made = helper.make_node("Concat", [carried, value.name], [grown], axis=axis)
        infos = [
            helper.make_tensor_value_info(n, CODES[value.type], None) for n in (carried, grown)
        ]
        begin, size = value.name, (1 + iterations) * value.shape[axis]
        shape = (*value.shape[:axis], size, *value.shape[axis + 1 :])
    else:
        made = helper.make_node("SequenceInsert", [carried, value.name], [grown])
        infos = [
            helper.make_tensor_sequence_value_info(n, CODES[value.type], None)
            for n in (carried, grown)
        ]
        begin = pool.name(random)
        empty = helper.make_node("SequenceEmpty", [], [begin], dtype=CODES[value.type])
        pool.append(empty, [], False)
        shape = ()
    inside.append(made, [], False)
    flag = helper.make_tensor_value_info(on, CODES[BOOLEAN], ())
    body = helper.make_graph(
        inside.nodes, "body", [number.info, going.info, infos[0]], [flag, infos[1]]
    )
    if shape:
        _append(pool, random, "Loop", [trip.name, "", begin], [(value.type, shape)], body=body)
        return
    name = pool.name(random)
    pool.append(helper.make_node("Loop", [trip.name, "", begin], [name], body=body), [], False)
    pool.lists.append(Listed(name, value.type, (value.shape,) * iterations))


# Scan


def _scan(pool: Pool, random: Random, add: AddStep, first: Step | None) -> None:
    if pool.opset < PER_BATCH:
        raise NotDrawn("a scan of batches")
    # onnxruntime's Scan divides by the elements of a row.
    there = [v for v in pool.shared if v.type in TYPE_WEIGHTS and v.shape and 0 not in v.shape]
    lead = random.choice(there) if there else pool.leaf("tensor(float)", (3, 2), random)
    axis = random.randrange(len(lead.shape))
    iterations = lead.shape[axis]
    if not 0 < iterations <= 8:
        raise NotDrawn("too many iterations, or none")
    scanned = [(lead, axis)]
    if random.random() < 0.4:
        alike = [(v, i) for v in there for i, n in enumerate(v.shape) if n == iterations]
        scanned.append(random.choice(alike) if alike else (lead, axis))
    states = _carried(pool, random, 0)
    inside = [_parameter(pool, random, v.type, v.shape) for v in states]
    rows = [_parameter(pool, random, v.type, _without(v.shape, i)) for v, i in scanned]
    body = _Body(pool, [*inside, *rows], random, add, first)
    body.parameters += [v.info for v in (*inside, *rows)]
    body.fill()
    for value in inside:
        body.give_like(value)
    made = body.made()
    given = random.sample(made, min(len(made), random.choice((0, 1, 2))))
    if not states and not given:
        given = made[:1]
    if not states and not given:
        raise NotDrawn("a scan without results")
    results = [(v.type, v.shape) for v in states]
    signed = pool.opset >= 11
    places = [random.randint(0, len(v.shape)) for v in map(body.give, given)]
    for value, place in zip(given, places, strict=True):
        results.append((value.type, (*value.shape[:place], iterations, *value.shape[place:])))
    attributes: dict[str, Any] = {"num_scan_inputs": len(scanned)}
    if any(i for _, i in scanned) or random.random() < 0.3:
        attributes["scan_input_axes"] = [
            _counted_back(random, i, len(v.shape), signed) for v, i in scanned
        ]
    if any(places) or (places and random.random() < 0.3):
        attributes["scan_output_axes"] = [
            _counted_back(random, place, len(v.shape) + 1, signed)
            for v, place in zip(given, places, strict=True)
        ]
    if random.random() < 0.4:
        attributes["scan_input_directions"] = [random.choice((0, 1)) for _ in scanned]
    if given and random.random() < 0.4:
        attributes["scan_output_directions"] = [random.choice((0, 1)) for _ in given]
    operands = [*(v.name for v in states), *(v.name for v, _ in scanned)]
    _append(pool, random, "Scan", operands, results, body=body.graph("body"), **attributes)


def _counted_back(random: Random, axis: int, rank: int, signed: bool) -> int:
    return axis - rank if signed and random.random() < 0.4 else axis


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


# SequenceMap


def _map(pool: Pool, random: Random, add: AddStep, first: Step | None) -> None:
    """A SequenceMap: a graph for each element of a sequence of tensors of one shape."""
    if pool.depth:
        raise NotDrawn("onnxruntime does not find what a function reads outside of graphs")
    alike = [v for v in pool.lists if v.shapes and len(set(v.shapes)) == 1]
    whole = random.choice(alike) if alike else new_list(pool, random, alike=True)
    element = _parameter(pool, random, whole.type, whole.shapes[0])
    others = random.sample(pool.shared, min(len(pool.shared), random.choice((0, 0, 1))))
    inside = [_parameter(pool, random, v.type, v.shape) for v in others]
    body = _Body(pool, [*inside, element], random, add, first)
    body.pool.depth = MOST_DEPTH
    body.parameters += [v.info for v in (element, *inside)]
    body.fill()
    made = body.made()
    if not made:
        raise NotDrawn("a graph without results")
    given = random.sample(made, min(len(made), random.choice((1, 1, 2))))
    names = [pool.name(random) for _ in given]
    operands = [whole.name, *(v.name for v in others)]
    for value in given:
        body.give(value)
    graph = body.graph("each")
    pool.append(helper.make_node("SequenceMap", operands, names, body=graph), [], False)
    pool.lists += [
        Listed(name, v.type, (v.shape,) * len(whole.shapes))
        for name, v in zip(names, given, strict=True)
    ]


CONTROLLED: dict[str, Builder] = {"If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _map}
"""Operators with graphs inside."""

AROUND = {"if": "If", "repeat": "Loop", "while": "Loop"}
"""The operator whose graph a step is put into, by the control flow that a sketch wants."""
