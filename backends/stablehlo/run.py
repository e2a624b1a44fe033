"""Run a program of stablehlo: control flow, regions, and what merges elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import nn, stablehlo
from ...dialects.chlo import TopKOp
from ...dialects.host import host_names
from ...dialects.source_types import dtype_of_elements, shape_of
from ...dialects.stablehlo.sized import DynamicGatherOp
from ...ir.provenance import place
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.limits import ITERATIONS
from ...ir.support.number_kinds import is_floating
from ...ir.upstream import ModuleOp
from ...ir.well_known import ENTRY
from ..evaluate.host import Run
from ..host_arrays import host_array
from .elements import compare, converted, dtype_of, function_of, ordered, reduce_precision, wide
from .indexed import gather, merged_at, scatter
from .random_bits import random_bits
from .tensors import MOVING, spaced, windows

Arrays = Sequence[Array]

Observe = Callable[[Operation, Arrays, Arrays], None]
"""Is shown an operation, its operands and its results."""


def run_stablehlo(
    module: ModuleOp,
    inputs: Mapping[str, Array],
    state: Mapping[str, Array] | None = None,
    observe: Observe | None = None,
) -> Run:
    """Run @main once.

    Raises InputError for wrong inputs, and for an operation that is not interpreted.

    Args:
        observe: called with each operation, its operands and its results, in the order of the run.
            Of an operation with regions on single elements, only the operation itself is shown.
    """
    ops = tuple(module.body.block.ops)
    functions = {op.sym_name.data: op for op in ops if isinstance(op, func.FuncOp)}
    main = functions[ENTRY]
    names = host_names(main, "arg_names", len(main.body.block.args))
    states = {op.sym_name.data: op.value.array for op in ops if isinstance(op, nn.StateOp)}
    states |= state or {}
    arguments = [
        host_array(inputs, name, dtype_of_elements(value), shape_of(value), "input")
        for name, value in zip(names, main.body.block.args, strict=True)
    ]
    run = _Interpreter(functions, states, observe)
    with np.errstate(all="ignore"):
        results = run.block(main.body.block, arguments, {})
    named = host_names(main, "result_names", len(results))
    return Run(dict(zip(named, results, strict=True)), {**states, **run.stored})


@dataclass
class _Interpreter:
    """A run.

    Attributes:
        states: the values that states have when the run begins.
        stored: the values that states get for the next run.
        rounds: whether results are rounded to their element types.
        turns: how many iterations and calls there were.
    """

    functions: Mapping[str, func.FuncOp]
    states: Mapping[str, Array]
    observe: Observe | None = None
    rounds: bool = True
    stored: dict[str, Array] = field(default_factory=dict[str, "Array"])
    turns: int = 0

    def block(self, block: Block, arguments: Arrays, outer: dict[SSAValue, Array]) -> list[Array]:
        """Run a block, and return the operands of its last operation."""
        held = {**outer, **dict(zip(block.args, arguments, strict=True))}
        end = block.last_op
        assert end is not None
        for op in block.ops:
            if op is not end:
                found = self.results(op, [held[each] for each in op.operands], held)
                held.update(zip(op.results, found, strict=True))
                if self.observe is not None:
                    self.observe(op, [held[each] for each in op.operands], found)
        return [held[each] for each in end.operands]

    def region(
        self, region: Region, arguments: Arrays, outer: dict[SSAValue, Array]
    ) -> list[Array]:
        """Apply a region on single elements to all elements of arrays.

        Floats are not rounded between its operations, nor from one merge to the next, because
        programs may merge in any order.
        """
        before = self.observe, self.rounds
        self.observe, self.rounds = None, False
        try:
            return self.block(region.block, list(map(wide, arguments)), outer)
        finally:
            self.observe, self.rounds = before

    def results(
        self, op: Operation, operands: Arrays, held: dict[SSAValue, Array]
    ) -> Sequence[Array]:
        """The results of an operation."""
        found = self._computed(op, operands, held)
        return [self._as_result(each, op, i) for i, each in enumerate(found)]

    def _computed(
        self, op: Operation, operands: Arrays, held: dict[SSAValue, Array]
    ) -> Sequence[Any]:
        """The results of an operation, before floats are rounded."""
        function = function_of(op.name)
        if function is not None:
            return [function(*map(wide, operands))]
        if op.name in MOVING:
            return [MOVING[op.name](op, operands)]
        other = _OTHERS.get(op.name)
        if other is None:
            raise InputError(
                f"{op.name} at {place(op)}: not interpreted at stablehlo; run the program at nn"
            )
        return other(self, op, operands, held)

    def _as_result(self, array: Any, op: Operation, result: int) -> Array:
        dtype = dtype_of(op, result)
        if is_floating(dtype) and not self.rounds:
            return np.asarray(array)
        return np.asarray(array).astype(dtype, copy=False)

    def turn(self) -> None:
        """Count an iteration. Raises InputError for too many."""
        self.turns += 1
        if self.turns > ITERATIONS.most:
            raise InputError(ITERATIONS.refusal(f"{self.turns:,} iterations"))


Held = dict[SSAValue, Array]


def _constant(_: _Interpreter, op: stablehlo.ConstantOp, __: Arrays, ___: Held) -> list[Array]:
    return [op.array]


def _load(run: _Interpreter, op: nn.LoadOp, _: Arrays, __: Held) -> list[Array]:
    return [run.states[op.state.string_value()]]


def _store(run: _Interpreter, op: nn.StoreOp, operands: Arrays, __: Held) -> list[Array]:
    (run.stored[op.state.string_value()],) = operands
    return []


def _same(_: _Interpreter, __: Any, operands: Arrays, ___: Held) -> list[Array]:
    return list(operands)


def _convert(_: _Interpreter, op: stablehlo.ConvertOp, operands: Arrays, __: Held) -> list[Array]:
    return [converted(operands[0], dtype_of(op))]


def _compare(_: _Interpreter, op: stablehlo.CompareOp, operands: Arrays, __: Held) -> list[Array]:
    return [compare(op, operands)]


def _select(_: _Interpreter, __: Any, operands: Arrays, ___: Held) -> list[Array]:
    return [np.where(*operands)]


def _clamp(_: _Interpreter, __: Any, operands: Arrays, ___: Held) -> list[Array]:
    low, value, high = operands
    return [np.minimum(np.maximum(value, low), high)]


def _rounded(
    _: _Interpreter, op: stablehlo.ReducePrecisionOp, operands: Arrays, __: Held
) -> list[Array]:
    return [reduce_precision(op, operands).astype(dtype_of(op))]


def _bits(
    _: _Interpreter, op: stablehlo.BitcastConvertOp, operands: Arrays, __: Held
) -> list[Array]:
    value = np.ascontiguousarray(operands[0])
    dtype = dtype_of(op)
    return [np.frombuffer(value.tobytes(), dtype).reshape(shape_of(op.result))]


# Control flow


def _call(run: _Interpreter, op: Any, operands: Arrays, _: Held) -> list[Array]:
    run.turn()
    callee = op.callee if isinstance(op, func.CallOp) else op.decomposition
    return run.block(run.functions[callee.string_value()].body.block, operands, {})


def _if(run: _Interpreter, op: stablehlo.IfOp, operands: Arrays, held: Held) -> list[Array]:
    chosen = op.true_branch if operands[0] else op.false_branch
    return run.block(chosen.block, (), held)


def _case(run: _Interpreter, op: stablehlo.CaseOp, operands: Arrays, held: Held) -> list[Array]:
    number, last = int(operands[0]), len(op.branches) - 1
    return run.block(op.branches[number if 0 <= number <= last else last].block, (), held)


def _while(run: _Interpreter, op: stablehlo.WhileOp, operands: Arrays, held: Held) -> list[Array]:
    values = list(operands)
    while run.block(op.cond.block, values, held)[0]:
        run.turn()
        values = run.block(op.body.block, values, held)
    return values


# Merging


def _merged(
    run: _Interpreter, region: Region, parts: Arrays, first: Arrays, held: Held
) -> list[Array]:
    """Arrays merged along their first axis, in halves, and then with first values."""
    values = list(parts)
    while len(values[0]) > 1:
        half = len(values[0]) // 2
        made = run.region(
            region, [*(v[:half] for v in values), *(v[half : 2 * half] for v in values)], held
        )
        values = [
            np.concatenate([np.broadcast_to(m, v[:half].shape), v[2 * half :]])
            for m, v in zip(made, values, strict=True)
        ]
    if not len(values[0]):
        return [np.broadcast_to(f, v.shape[1:]) for f, v in zip(first, values, strict=True)]
    made = run.region(region, [*first, *(v[0] for v in values)], held)
    return [np.broadcast_to(m, v.shape[1:]) for m, v in zip(made, values, strict=True)]


def _reduce(run: _Interpreter, op: stablehlo.ReduceOp, operands: Arrays, held: Held) -> list[Array]:
    count = len(op.inputs)
    values, first = operands[:count], operands[count:]
    kept = [a for a in range(values[0].ndim) if a not in op.axes]
    sizes = [values[0].shape[a] for a in kept]
    count = int(np.prod([values[0].shape[a] for a in op.axes]))
    rows = [np.transpose(v, [*op.axes, *kept]).reshape(count, *sizes) for v in values]
    return _merged(run, op.body, rows, first, held)


def _under(
    value: Array, window: Sequence[int], strides: Sequence[int], reaches: Sequence[int]
) -> Array:
    """The elements under a window: one row for each place in the window."""
    found, rank = windows(value, window, strides, reaches), value.ndim
    rows = np.transpose(found, [*range(rank, 2 * rank), *range(rank)])
    return rows.reshape(-1, *found.shape[:rank])


def _reduce_window(
    run: _Interpreter, op: stablehlo.ReduceWindowOp, operands: Arrays, held: Held
) -> list[Array]:
    count = len(op.inputs)
    values, first = operands[:count], operands[count:]
    shape = shape_of(op.made[0])
    if 0 in shape:
        return [np.broadcast_to(f, shape) for f in first]
    between = [each - 1 for each in op.dilations]
    rows = [
        _under(spaced(v, f, op.pads, between), op.window, op.strides, op.reaches)
        for v, f in zip(values, first, strict=True)
    ]
    return _merged(run, op.body, rows, first, held)


def _select_and_scatter(
    run: _Interpreter, op: stablehlo.SelectAndScatterOp, operands: Arrays, held: Held
) -> list[Array]:
    value, source, first = operands
    if 0 in source.shape:
        return [np.broadcast_to(first, value.shape)]
    ones = (1,) * value.ndim
    held_at = np.arange(value.size).reshape(value.shape)
    rows = _under(
        spaced(value, np.zeros((), value.dtype), op.pads, [0] * value.ndim),
        op.window,
        op.strides,
        ones,
    )
    at = _under(
        spaced(held_at, np.array(-1), op.pads, [0] * value.ndim), op.window, op.strides, ones
    )
    best: Array = rows[0]
    chosen: Array = at[0]
    for each, number in zip(rows[1:], at[1:], strict=True):
        (stays,) = run.region(op.select, [best, each], held)
        taken: Array = (number >= 0) & ((chosen < 0) | ~stays)
        best, chosen = np.where(taken, each, best), np.where(taken, number, chosen)
    chosen, given = chosen.ravel(), source.ravel()
    made = [np.full(value.size, first, source.dtype)]
    inside = chosen >= 0
    (merged,) = merged_at(
        made, chosen[inside], [given[inside]], lambda pair: run.region(op.scatter, pair, held)
    )
    return [merged.reshape(value.shape)]


def _map(run: _Interpreter, op: stablehlo.MapOp, operands: Arrays, held: Held) -> list[Array]:
    (made,) = run.region(op.computation, operands, held)
    return [np.broadcast_to(made, shape_of(op.result))]


def _sort(run: _Interpreter, op: stablehlo.SortOp, operands: Arrays, held: Held) -> list[Array]:
    return _sorted(run, op.comparator, operands, op.axis, held)


def _sorted(
    run: _Interpreter, comparison: Region, operands: Arrays, axis: int, held: Held
) -> list[Array]:
    """The place of an element is the number of those that come before it."""
    rows = [np.moveaxis(each, axis, -1) for each in operands]
    pairs = [each for row in rows for each in (row[..., :, None], row[..., None, :])]
    (asked,) = run.region(comparison, pairs, held)
    n = rows[0].shape[-1]
    before: Array = np.broadcast_to(asked, (*rows[0].shape, n))
    after: Array = np.swapaxes(before, -1, -2)
    earlier = np.triu(np.ones((n, n), bool), 1)
    at: Array = np.count_nonzero(before | (~after & earlier), -2)
    made: list[Array] = []
    for row in rows:
        ordered = np.empty_like(row)
        np.put_along_axis(ordered, at, row, -1)
        made.append(np.moveaxis(ordered, -1, axis))
    return made


def _top_k(_: _Interpreter, op: TopKOp, operands: Arrays, __: Held) -> list[Array]:
    """The first elements from the largest on in the total order, of equal ones the first."""
    (value,) = operands
    keys = ordered(value) if is_floating(value.dtype) else value
    kept = np.s_[..., : op.k.value.data]
    # The last of equal elements comes last in the opposite order.
    back = np.argsort(keys[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    at = (value.shape[-1] - 1 - back)[kept]
    return [np.take_along_axis(value, at, -1), at.astype(np.int32)]


def _custom_call(
    run: _Interpreter, op: stablehlo.CustomCallOp, operands: Arrays, held: Held
) -> Sequence[Array]:
    name = op.call_target_name.data
    if name == "Sharding":
        return operands
    if name != "ApproxTopK":
        raise InputError(f"{op.name} at {place(op)}: @{name} is not interpreted at stablehlo")
    config: Any = op.attributes["mhlo.backend_config"]
    called: Any = op.called_computations
    axis = config.data["reduction_dim"].value.data
    order = run.functions[called.data[0].string_value()].body
    found = _sorted(run, order, operands[: len(op.made)], axis, held)
    kept = np.arange(shape_of(op.made[0])[int(axis)])
    return [np.take(each, kept, int(axis)) for each in found]


# Places that a run knows


def _starts(operand: Array, sizes: Sequence[int], starts: Arrays) -> list[int]:
    return [
        min(max(int(start), 0), n - size)
        for start, n, size in zip(starts, operand.shape, sizes, strict=True)
    ]


def _dynamic_slice(
    _: _Interpreter, op: stablehlo.DynamicSliceOp, operands: Arrays, __: Held
) -> list[Array]:
    sizes = stablehlo.integers_of(op.slice_sizes, ())
    at = _starts(operands[0], sizes, operands[1:])
    return [operands[0][tuple(slice(a, a + n) for a, n in zip(at, sizes, strict=True))]]


def _dynamic_update_slice(
    _: _Interpreter, __: stablehlo.DynamicUpdateSliceOp, operands: Arrays, ___: Held
) -> list[Array]:
    made, update = np.array(operands[0]), operands[1]
    at = _starts(made, update.shape, operands[2:])
    made[tuple(slice(a, a + n) for a, n in zip(at, update.shape, strict=True))] = update
    return [made]


# Batch normalisation


def _normal(_: _Interpreter, op: Any, operands: Arrays, __: Held) -> list[Array]:
    value, *rest = map(wide, operands)
    axis, epsilon = op.axis, op.epsilon.value.data
    axes = tuple(a for a in range(value.ndim) if a != axis)
    shape = [-1 if a == axis else 1 for a in range(value.ndim)]

    def spread(array: Array) -> Array:
        return array.reshape(shape)

    if isinstance(op, stablehlo.BatchNormGradOp):
        scale, mean, variance, gradient = rest
        count = value.size / max(value.shape[axis], 1)
        centred, deviation = value - spread(mean), np.sqrt(variance + epsilon)
        weighted, total = (gradient * centred).sum(axes), gradient.sum(axes)
        rest_of = count * gradient - spread(total) - centred * spread(weighted / deviation**2)
        found = [spread(scale / deviation / count) * rest_of, weighted / deviation, total]
    else:
        # NumPy warns of the mean of nothing.
        count = np.float64(value.size // max(value.shape[axis], 1))
        mean = value.sum(axes) / count
        own = mean, ((value - spread(mean)) ** 2).sum(axes) / count
        mean, variance = rest[2:] if isinstance(op, stablehlo.BatchNormInferenceOp) else own
        made = (value - spread(mean)) / np.sqrt(spread(variance) + epsilon)
        found = [made * spread(rest[0]) + spread(rest[1]), mean, variance][: len(op.results)]
    return [each.astype(dtype_of(op, i)) for i, each in enumerate(found)]


def _random_bits(
    _: _Interpreter, op: stablehlo.RngBitGeneratorOp, operands: Arrays, __: Held
) -> Sequence[Array]:
    algorithm = op.rng_algorithm.data
    return random_bits(algorithm, operands[0], shape_of(op.output), dtype_of(op, 1))


def _gather(_: _Interpreter, op: stablehlo.GatherOp, operands: Arrays, __: Held) -> list[Array]:
    sizes = stablehlo.integers_of(op.slice_sizes, ())
    return [gather(op.dimension_numbers.data, sizes, *operands)]


def _dynamic_gather(
    _: _Interpreter, op: DynamicGatherOp, operands: Arrays, __: Held
) -> list[Array]:
    value, places, sizes = operands
    return [gather(op.dimension_numbers.data, list(map(int, sizes)), value, places)]


def _scatter(
    run: _Interpreter, op: stablehlo.ScatterOp, operands: Arrays, held: Held
) -> list[Array]:
    return scatter(op, operands, lambda given: run.region(op.update_computation, given, held))


def _alone(_: _Interpreter, op: Any, operands: Arrays, __: Held) -> list[Array]:
    """The values of a group of one process."""
    if op.groups.shape[1] != 1:
        raise _of_other_processes(op)
    return list(operands)


def _permuted(
    _: _Interpreter, op: stablehlo.CollectivePermuteOp, operands: Arrays, __: Held
) -> list[Array]:
    if op.pairs.any():
        raise _of_other_processes(op)
    return [each if op.pairs.size else np.zeros_like(each) for each in operands]


def _of_other_processes(op: Operation) -> InputError:
    return InputError(f"{op.name} at {place(op)}: other processes; a program runs as one")


def _process(_: _Interpreter, __: Any, ___: Arrays, ____: Held) -> list[Array]:
    return [np.array(0, np.uint32)]


_OTHERS: Mapping[str, Callable[[_Interpreter, Any, Arrays, Held], Sequence[Array]]] = {
    "stablehlo.constant": _constant,
    "nn.load": _load,
    "nn.store": _store,
    "stablehlo.optimization_barrier": _same,
    **{each.name: _alone for each in stablehlo.GROUPED},
    "stablehlo.collective_permute": _permuted,
    "stablehlo.partition_id": _process,
    "stablehlo.replica_id": _process,
    "stablehlo.convert": _convert,
    "stablehlo.compare": _compare,
    "stablehlo.select": _select,
    "stablehlo.clamp": _clamp,
    "stablehlo.reduce_precision": _rounded,
    "stablehlo.bitcast_convert": _bits,
    "func.call": _call,
    "stablehlo.composite": _call,
    "stablehlo.if": _if,
    "stablehlo.case": _case,
    "stablehlo.while": _while,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.map": _map,
    "stablehlo.sort": _sort,
    "chlo.top_k": _top_k,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.rng_bit_generator": _random_bits,
    "stablehlo.gather": _gather,
    "stablehlo.dynamic_gather": _dynamic_gather,
    "stablehlo.scatter": _scatter,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.batch_norm_inference": _normal,
    "stablehlo.batch_norm_training": _normal,
    "stablehlo.batch_norm_grad": _normal,
}


def is_interpreted(name: str) -> bool:
    """Whether an operation of this name is interpreted."""
    return function_of(name) is not None or name in MOVING or name in _OTHERS
