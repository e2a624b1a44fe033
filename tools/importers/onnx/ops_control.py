"""ONNX operators with graphs inside: If, Loop and Scan.

A condition that is known at import selects its branch then. A loop that carries tensors of constant
types becomes a loop on the device. Other loops are unrolled, if the number of iterations is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Region, SSAValue

from ....dialects import control, nn
from ..branches import OtherResultsError, branched
from ..building import Value, dtype_of, shape_of
from ..carried import CarriedValues, GrowsError, opening
from ..errors import NotConstantError
from ..length_values import length_of, number_in
from ..lengths import as_length
from ..loops import Rows, collecting_loop, in_block, placed_at, row_at
from ..padding import LEAST_CAPACITY, sized
from .node import Held, Importer, Node, NotTensor, Results
from .subgraphs import of_fixed_size, read_graph, tensors, text_of, truth

MOST_WRITTEN_OUT = 1024
"""The most iterations of a loop that is unrolled."""


# If


def _if(node: Node) -> Results:
    condition = node.value(0)
    branches = [node.inner_graph(name) for name in ("then_branch", "else_branch")]
    chosen = truth(node, condition, "the condition")
    if chosen is not None:
        return read_graph(node, branches[not chosen], [])

    def build(branch: onnx.GraphProto) -> list[SSAValue]:
        results = read_graph(node, branch, [])
        if any(isinstance(each, NotTensor) for each in results):
            raise node.not_constant(
                f"the condition {node.proto.input[0]!r} of branches that give sequences or strings",
                [condition],
                "need a constant",
            )
        return tensors(node, results, "a branch gives")

    try:
        predicate = node.graph.emitted(condition)
        return branched(node, predicate, [partial(build, each) for each in branches])
    except OtherResultsError as error:
        texts = ["(" + ", ".join(map(text_of, each)) + ")" for each in error.results]
        raise node.not_constant(
            f"the condition {node.proto.input[0]!r}, by which the results are {texts[0]} or "
            f"{texts[1]},",
            [condition],
            "need branches whose results have the same element types and ranks, or a constant",
        ) from None


# Loops


class NotInvariant(Exception):
    """The body cannot be a loop on the device: a carried value changes its type, or is not a
    tensor.

    The message says which.
    """


class MayEnd(Exception):
    """The condition of a loop depends on its iterations."""


def _after(
    node: Node,
    carried: CarriedValues,
    initial: Sequence[Value],
    values: Sequence[Held],
    names: Sequence[str],
) -> list[SSAValue]:
    """The carried values after an iteration, and their lengths.

    Raises NotInvariant if their types have changed, and Opened if a size has.
    """
    found: list[SSAValue] = []
    for after, name in zip(values, names, strict=True):
        if isinstance(after, NotTensor):
            raise NotInvariant(f"the loop carries {after}, {name!r}")
        found.append(node.graph.emitted(after))
    try:
        return carried.after(found)
    except GrowsError as error:
        i = error.index
        raise NotInvariant(
            f"the loop carries {names[i]!r}, which is {text_of(initial[i])} before an iteration "
            f"and {text_of(found[i])} after it"
        ) from None


def _rows(node: Node, values: Sequence[Held]) -> list[Value]:
    """The contributions of an iteration to the scan outputs."""
    found: list[Value] = []
    for value in values:
        if isinstance(value, NotTensor):
            raise node.unsupported(f"{value} as a scan output", "only tensors are")
        found.append(of_fixed_size(node, value))
    return found


def _stacked(node: Node, rows: Sequence[Sequence[Value]], like: Sequence[Value]) -> list[Value]:
    """The scan outputs of unrolled iterations.

    Args:
        like: one row of each output.
    """
    found: list[Value] = []
    for i, first in enumerate(like):
        parts = [each[i] for each in rows]
        shape = shape_of(first)
        if any(shape_of(part) != shape for part in parts):
            sizes = ", ".join(str(list(shape_of(part))) for part in parts[:4])
            raise node.bad(f"scan output {i} has rows of shapes {sizes}; need equal ones")
        arrays = [node.graph.exact(part) for part in parts]
        if all(array is not None for array in arrays):
            whole = np.array(arrays, dtype_of(first)).reshape(len(parts), *shape)
            found.append(node.known(whole))
            continue
        emitted = [node.reshape(node.graph.emitted(part), (1, *shape)) for part in parts]
        found.append(emitted[0] if len(emitted) == 1 else node.add(nn.ConcatOp(emitted, 0)))
    return found


@dataclass
class _Loop:
    """A Loop node.

    Attributes:
        iterations: the most iterations, if known.
        bound: the operand with that number.
    """

    node: Node
    body: onnx.GraphProto
    initial: list[Held]
    iterations: int | None
    bound: Value | None
    condition: Value | None

    @property
    def carried(self) -> int:
        """The number of values carried from iteration to iteration."""
        return len(self.initial)

    @property
    def most(self) -> int | None:
        """The most iterations; None if there is no bound."""
        if self.iterations is not None or self.bound is None:
            return self.iterations
        found = length_of(self.node.graph, self.node.graph.emitted(self.bound))
        return None if found is None else max(as_length(found).most, 0)

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.body.input[2:]]

    def iteration(self, number: Value, condition: Value, values: Sequence[Held]) -> list[Held]:
        """Import an iteration. Returns the condition, the carried values, and rows of scan
        outputs."""
        found = read_graph(self.node, self.body, [number, condition, *values])
        if len(found) < 1 + self.carried:
            raise self.node.bad(
                f"graph {self.body.name!r} has {len(found)} outputs; need "
                f"{1 + self.carried} or more"
            )
        return found

    def going_on(self, value: Held) -> Value:
        """The condition that an iteration returns."""
        if isinstance(value, NotTensor):
            raise self.node.bad(f"the condition of the loop is {value}; need one boolean")
        truth(self.node, value, "the condition of the loop")
        return value


def _loop(node: Node) -> Results:
    body = node.inner_graph("body")
    initial = [node.held(i) for i in range(2, node.operand_count)]
    bound = node.value(0) if node.has(0) else None
    condition = node.value(1) if node.has(1) else None
    iterations: int | None = None
    if bound is not None:
        array = node.graph.known(bound)
        iterations = None if array is None else max(int(array.reshape(-1)[0]), 0)
    begins = True if condition is None else truth(node, condition, "the condition of the loop")
    if begins is False:
        iterations, condition = 0, None
    elif begins:
        condition = None
    loop = _Loop(node, body, initial, iterations, bound, condition)
    if iterations == 0 or (iterations is not None and iterations <= 1 and condition is None):
        return _written_out(loop)
    try:
        return _on_device(loop)
    except (NotConstantError, NotInvariant) as problem:
        return _written_out(loop, problem)


def _on_device(loop: _Loop) -> Results:
    """A loop on the device. Raises NotInvariant or NotConstantError if that is impossible."""
    node = loop.node
    for value, name in zip(loop.initial, loop.names, strict=True):
        if isinstance(value, NotTensor):
            raise NotInvariant(f"the loop carries {value}, {name!r}")
    carried = CarriedValues(node, tensors(node, loop.initial, "a loop carries"))
    has_rows = len(loop.body.output) > 1 + loop.carried
    counted = loop.iterations is not None and loop.iterations < control.MOST_NUMBERED
    if loop.iterations is not None and counted and loop.condition is None:
        iterations = loop.iterations
        with suppress(MayEnd):
            return opening(carried, lambda: _counted(loop, carried, iterations))
    if has_rows and loop.most is None:
        reasons = [v for v in (loop.bound, loop.condition) if v is not None]
        raise node.not_constant(
            "the number of iterations, which is the length of the scan outputs,",
            reasons,
            "need a trip count that is a constant, or that follows from a size",
        )
    return opening(carried, lambda: _while(loop, carried))


def _counted(loop: _Loop, values: CarriedValues, iterations: int) -> list[SSAValue]:
    """A loop with a known number of iterations. Raises MayEnd if its condition may end it
    earlier."""
    node = loop.node
    always = node.known(np.array(True))
    initial = tensors(node, loop.initial, "a loop carries")

    def iteration(carried: list[SSAValue], number: SSAValue) -> tuple[list[SSAValue], Rows]:
        found = loop.iteration(node.cast(number, i64), always, values.marked(carried))
        if truth(node, loop.going_on(found[0]), "the condition of the loop") is not True:
            raise MayEnd
        kept = _after(node, values, initial, found[1 : 1 + loop.carried], loop.names)
        rows = _rows(node, found[1 + loop.carried :])
        return kept, [(node.graph.emitted(row), number) for row in rows]

    last, tables = collecting_loop(node, iterations, values.before, iteration)
    return [*values.marked(last), *tables]


def _while(loop: _Loop, values: CarriedValues) -> Results:
    """A loop that ends by its condition, or by a trip count that is computed in the run."""
    node = loop.node
    begin = node.emitted(np.array(0, np.int64))
    first = loop.condition
    if first is None:
        first = node.known(np.array(True))
    going = node.reshape(node.graph.emitted(first), ())
    limit: SSAValue | None = None
    if loop.bound is not None:
        limit = node.reshape(node.cast(node.graph.emitted(loop.bound), i64), ())
    initial, before = tensors(node, loop.initial, "a loop carries"), values.before
    state = [begin, going, *before]
    with in_block(node, [v.type for v in state]) as block:
        number, condition, *carried = block.args
        found = loop.iteration(number, condition, values.marked(carried))
        on = node.reshape(node.graph.emitted(loop.going_on(found[0])), ())
        kept = _after(node, values, initial, found[1 : 1 + loop.carried], loop.names)
        place = node.reshape(node.cast(number, i32), ())
        tables: list[SSAValue] = []
        for row in _rows(node, found[1 + loop.carried :]):
            assert loop.most is not None, "rows are refused without a bound"
            value = node.graph.emitted(row)
            shape = (max(loop.most, LEAST_CAPACITY), *nn.shape_of(value))
            table = block.insert_arg(nn.tensor(shape, nn.element_of(value)), len(block.args))
            tables.append(placed_at(node, table, value, place))
        one = node.constant(1, number)
        node.add_control(control.YieldOp(node.add(nn.AddOp(number, one)), on, *kept, *tables))
    empty = [
        node.graph.emitted(node.filled(np.zeros((), dtype_of(t)), shape_of(t))) for t in tables
    ]
    with in_block(node, [*(v.type for v in state), *(v.type for v in tables)]) as test:
        predicate = test.args[1]
        if limit is not None:
            below = node.add(nn.LessOp(test.args[0], limit))
            predicate = node.add(nn.LogicalAndOp(below, predicate))
        node.add_control(control.ConditionOp(predicate))
    done = node.add_control(control.WhileOp([*state, *empty], Region(test), Region(block)))
    last, rows = done[2 : 2 + len(before)], done[2 + len(before) :]
    if rows:
        assert loop.most is not None
        count = number_in(node.graph, node.cast(done[0], i32), 0, loop.most)
        rows = [sized(node, row, {0: count}) for row in rows]
    return [*values.marked(last), *rows]


def _written_out(loop: _Loop, problem: Exception | None = None) -> Results:
    """The iterations of a loop one after another.

    Args:
        problem: the reason why it cannot be a loop on the device; raised if the number of
            iterations is not known.
    """
    node = loop.node
    why = "" if problem is None else f", because {problem}" * isinstance(problem, NotInvariant)
    known = "need a trip count and a condition that are constants" + why

    def refuse(values: Sequence[Value | None], what: str) -> NotConstantError:
        if isinstance(problem, NotConstantError) and problem.inputs:
            return problem
        return node.not_constant(what, [v for v in values if v is not None], known)

    if loop.iterations is None and loop.bound is not None:
        raise refuse([loop.bound], "the trip count")
    if loop.condition is not None and loop.iterations != 0:
        raise refuse([loop.condition], "the condition of the loop")
    values, rows = list(loop.initial), list[list[Value]]()
    going: Value = node.known(np.array(True))
    iteration = 0
    while loop.iterations is None or iteration < loop.iterations:
        if iteration == MOST_WRITTEN_OUT:
            raise node.unsupported(
                f"a loop of more than {MOST_WRITTEN_OUT} iterations{why or ' that is written out'}",
                "need fewer, or a loop whose values keep their types",
            )
        found = loop.iteration(node.known(np.array(iteration, np.int64)), going, values)
        values = found[1 : 1 + loop.carried]
        rows.append(_rows(node, found[1 + loop.carried :]))
        iteration += 1
        going = loop.going_on(found[0])
        goes_on = truth(node, going, "the condition of the loop")
        if goes_on is None and iteration != loop.iterations:
            raise refuse([going], "the condition of the loop")
        if not goes_on:
            break
    like: Sequence[Value] = rows[0] if rows else ()
    if not rows and len(loop.body.output) > 1 + loop.carried:
        like = _rows_of_no_iteration(loop)
    return [*values, *_stacked(node, rows, like)]


def _rows_of_no_iteration(loop: _Loop) -> list[Value]:
    """Rows of the types that an iteration would give. Their operations are removed."""
    node, zeros = loop.node, list[Value]()
    with suppress(MayEnd), in_block(node, []):
        first, always = node.known(np.array(0, np.int64)), node.known(np.array(True))
        found = loop.iteration(first, always, loop.initial)
        for row in _rows(node, found[1 + loop.carried :]):
            zeros.append(node.known(np.zeros(shape_of(row), dtype_of(row))))
        # This iteration is not executed.
        raise MayEnd
    return zeros


# Scan

PER_BATCH = 9
"""The first opset in which Scan has no batch axis."""


def _scan(node: Node) -> Results:
    body = node.inner_graph("body")
    if node.opset < PER_BATCH:
        return _scan_of_batches(node, body)
    operands = [node.value(i) for i in range(node.operand_count)]
    return _scanned(node, body, operands)


def _scanned(node: Node, body: onnx.GraphProto, operands: Sequence[Value]) -> list[Value]:
    scanned = node.integer("num_scan_inputs")
    states = len(operands) - scanned
    results = len(body.output) - states
    if not 0 < scanned <= len(operands) or results < 0:
        raise node.bad(
            f"num_scan_inputs {scanned} of {len(operands)} operands and {len(body.output)} outputs"
        )
    backward = _directions(node, "scan_input_directions", "directions", scanned)
    placed = _directions(node, "scan_output_directions", "", results)
    inputs: list[SSAValue] = []
    for i, axis in enumerate(_axes(node, "scan_input_axes", scanned)):
        value = node.graph.emitted(operands[states + i])
        inputs.append(_with_first(node, value, node.axis(axis, len(nn.shape_of(value)))))
    lengths = {nn.shape_of(value)[0] for value in inputs}
    if len(lengths) != 1:
        raise node.bad(f"scan inputs of {sorted(lengths)} elements; need as many of each")
    (iterations,) = lengths
    initial = [node.graph.emitted(value) for value in operands[:states]]
    names = [each.name for each in body.input[:states]]

    def at(number: SSAValue | int, turned: bool) -> SSAValue | int:
        """The index of the row that an iteration reads or writes."""
        if not turned:
            return number
        if isinstance(number, int):
            return iterations - 1 - number
        return node.add(nn.SubOp(node.constant(iterations - 1, number), number))

    def iteration(
        carried: Sequence[Held], number: SSAValue | int
    ) -> tuple[list[Held], list[Value]]:
        rows = [
            row_at(node, value, at(number, turned))
            for value, turned in zip(inputs, backward, strict=True)
        ]
        found = read_graph(node, body, [*carried, *rows])
        return found[:states], _rows(node, found[states:])

    if iterations > 1:
        try:
            last, tables = _scan_on_device(node, iterations, initial, names, iteration, placed)
        except (NotConstantError, NotInvariant) as problem:
            if iterations > MOST_WRITTEN_OUT:
                raise node.unsupported(
                    f"a scan of more than {MOST_WRITTEN_OUT} iterations, because {problem},",
                    "need fewer, or values that keep their types",
                ) from None
            last, tables = _scan_written_out(node, iterations, initial, iteration, placed)
    else:
        last, tables = _scan_written_out(node, iterations, initial, iteration, placed)
    moved: list[Value] = []
    for table, axis in zip(tables, _axes(node, "scan_output_axes", results), strict=True):
        rank = len(shape_of(table))
        moved.append(_first_to(node, table, node.axis(axis, rank)))
    return [*_tensors_only(node, last), *moved]


def _tensors_only(node: Node, values: Sequence[Held]) -> list[Value]:
    found: list[Value] = []
    for value in values:
        if isinstance(value, NotTensor):
            raise node.unsupported(f"{value} as a state of a scan", "only tensors are")
        found.append(value)
    return found


_Iteration = Callable[[Sequence[Held], SSAValue | int], tuple[list[Held], list[Value]]]


def _scan_on_device(
    node: Node,
    iterations: int,
    initial: list[SSAValue],
    names: Sequence[str],
    iteration: _Iteration,
    placed: Sequence[bool],
) -> tuple[list[SSAValue], list[SSAValue]]:
    """The states and the tables of results after a scan as a loop on the device."""
    values = CarriedValues(node, initial)

    def numbered(carried: list[SSAValue], number: SSAValue) -> tuple[list[SSAValue], Rows]:
        found, given = iteration(values.marked(carried), number)
        kept = _after(node, values, initial, found, names)
        backward = node.add(nn.SubOp(node.constant(iterations - 1, number), number))
        return kept, [
            (node.graph.emitted(row), backward if turned else number)
            for row, turned in zip(given, placed, strict=True)
        ]

    last, tables = opening(
        values, lambda: collecting_loop(node, iterations, values.before, numbered)
    )
    return values.marked(last), tables


def _scan_written_out(
    node: Node,
    iterations: int,
    initial: Sequence[SSAValue],
    iteration: _Iteration,
    placed: Sequence[bool],
) -> tuple[list[Held], list[Value]]:
    """The states and the tables of results after an unrolled scan."""
    values: list[Held] = list(initial)
    rows: list[list[Value]] = []
    for number in range(iterations):
        values, given = iteration(values, number)
        rows.append(given)
    if not rows:
        raise node.unsupported("a scan of no elements", "need one or more")
    ordered = [
        [
            rows[place][i]
            for place in (range(iterations) if not turned else range(iterations - 1, -1, -1))
        ]
        for i, turned in enumerate(placed)
    ]
    return values, _stacked(node, [*zip(*ordered, strict=True)] if ordered else [], rows[0])


def _axes(node: Node, name: str, count: int) -> list[int]:
    """The axis of each scan input or output; 0 by default."""
    axes = node.integers(name, [0] * count)
    if len(axes) != count:
        raise node.bad(f"{name} {axes}; need {count}")
    return axes


def _directions(node: Node, name: str, old: str, count: int) -> list[bool]:
    """Whether each scan input or output is walked backwards."""
    key = old if old and node.opset < PER_BATCH else name
    given = node.integers(key, [0] * count)
    if len(given) != count or not set(given) <= {0, 1}:
        raise node.bad(f"{key} {given}; need {count} numbers, each 0 or 1")
    return [bool(each) for each in given]


def _with_first(node: Node, value: SSAValue, axis: int) -> SSAValue:
    """A value with an axis moved to the front."""
    rank = len(nn.shape_of(value))
    if axis == 0:
        return value
    order = [axis, *(i for i in range(rank) if i != axis)]
    return node.add(nn.TransposeOp(value, order))


def _first_to(node: Node, value: Value, axis: int) -> Value:
    """A value with its first axis moved elsewhere."""
    if axis == 0:
        return value
    rest = list(range(1, len(shape_of(value))))
    rest.insert(axis, 0)
    return node.add(nn.TransposeOp(node.graph.emitted(value), rest))


def _scan_of_batches(node: Node, body: onnx.GraphProto) -> Results:
    """Scan of opset 8: each element of a batch is scanned separately."""
    if node.has(0):
        raise node.unsupported("sequence_lens", "need sequences of one length")
    operands = [node[i] for i in range(1, node.operand_count)]
    (batch, *others) = {nn.shape_of(value)[0] for value in operands}
    if others:
        raise node.bad("operands of different batches; need one size of the first axis")
    found: list[list[SSAValue]] = []
    for i in range(batch):
        own = [row_at(node, value, i) for value in operands]
        found.append([node.graph.emitted(value) for value in _scanned(node, body, own)])
    return [
        node.add(nn.ConcatOp([node.reshape(v, (1, *nn.shape_of(v))) for v in parts], 0))
        if batch > 1
        else node.reshape(parts[0], (1, *nn.shape_of(parts[0])))
        for parts in zip(*found, strict=True)
    ]


CONTROL: dict[str, Importer] = {"If": _if, "Loop": _loop, "Scan": _scan}
