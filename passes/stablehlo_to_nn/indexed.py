"""Gathers, scatters, and slices that begin at indices of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from ...dialects import nn, stablehlo
from .conversion import Lower, ToNn
from .regions import combiner_of
from .stored_types import computed_wide
from .windows_at_indices import Windows, gathered, scattered, sliced_at, updated_at


def _gather(op: stablehlo.GatherOp, new: ToNn) -> Sequence[SSAValue]:
    operand, indices = new.value(op.operand), new.value(op.start_indices)
    axes, sizes = op.dimension_numbers.data, stablehlo.integers_of(op.slice_sizes, ())
    gone = {*axes.collapsed_slice_dims, *axes.operand_batching_dims}
    windows = Windows(
        nn.shape_of(operand),
        sizes,
        tuple(a for a in range(len(sizes)) if a not in gone),
        tuple(sorted(axes.offset_dims)),
        axes.start_index_map,
        axes.index_vector_dim,
        axes.operand_batching_dims,
        axes.start_indices_batching_dims,
    )
    return [gathered(new, operand, indices, windows, new.known(indices))]


def _scatter(op: stablehlo.ScatterOp, new: ToNn) -> Sequence[SSAValue]:
    indices, axes = new.value(op.scatter_indices), op.scatter_dimension_numbers.data
    gone = {*axes.inserted_window_dims, *axes.input_batching_dims}
    combiners = _combiners(op, new)
    results: list[SSAValue] = []
    for given, update, (combiner, negated) in zip(op.inputs, op.updates, combiners, strict=True):
        operand, more = new.value(given), new.value(update)
        if combiner == "first":
            results.append(operand)
            continue
        shape, own = nn.shape_of(operand), nn.shape_of(more)
        placed = tuple(a for a in range(len(shape)) if a not in gone)
        at = dict(zip(placed, sorted(axes.update_window_dims), strict=True))
        windows = Windows(
            shape,
            tuple(own[at[a]] if a in at else 1 for a in range(len(shape))),
            placed,
            tuple(at.values()),
            axes.scatter_dims_to_operand_dims,
            axes.index_vector_dim,
            axes.input_batching_dims,
            axes.scatter_indices_batching_dims,
        )
        if negated:
            more = new.add(nn.NegOp(more))
        known = new.known(indices)
        results.append(scattered(new, operand, indices, more, windows, combiner, known))
    return results


def _combiners(op: stablehlo.ScatterOp, new: ToNn) -> list[tuple[str, bool]]:
    """How each tensor is merged with its updates, and whether these are negated first.

    "first" keeps the tensor as it is. Raises Unsupported for what nn.update cannot do.
    """
    block, count = op.update_computation.block, len(op.inputs)
    end = block.last_op
    assert end is not None
    found: list[tuple[str, bool]] = []
    for i, value in enumerate(end.operands):
        old, update = block.args[i], block.args[count + i]
        combiner, made = combiner_of(op.update_computation, i), value.owner
        if value is update or value is old:
            found.append(("last" if value is update else "first", False))
        elif combiner is not None:
            found.append((combiner, False))
        elif isinstance(made, Operation) and (made.name, *made.operands) == (
            "stablehlo.subtract",
            old,
            update,
        ):
            found.append(("sum", True))
        else:
            raise new.unsupported(
                "merging by this region",
                "need the update, or one of add, subtract, multiply, maximum, minimum, and of "
                "truth values also and, or",
            )
    return found


def _dynamic_slice(op: stablehlo.DynamicSliceOp, new: ToNn) -> Sequence[SSAValue]:
    sizes = stablehlo.integers_of(op.slice_sizes, ())
    return [sliced_at(new, new.value(op.operand), _starts(op.start_indices, new), sizes)]


def _dynamic_update_slice(op: stablehlo.DynamicUpdateSliceOp, new: ToNn) -> Sequence[SSAValue]:
    operand, update = new.value(op.operand), new.value(op.update)
    return [updated_at(new, operand, update, _starts(op.start_indices, new))]


def _starts(given: Sequence[SSAValue], new: ToNn) -> list[SSAValue | int]:
    """Indices, as numbers where they are known."""
    values = [new.value(each) for each in given]
    known = [new.known(each) for each in values]
    return [
        value if array is None else int(array) for value, array in zip(values, known, strict=True)
    ]


TABLE: Mapping[str, Lower] = {
    "stablehlo.gather": _gather,
    "stablehlo.scatter": computed_wide(_scatter),
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
}
"""What lowers each operation, by name."""
