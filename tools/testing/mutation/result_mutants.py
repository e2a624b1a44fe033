"""Mutants with a mistake in the output of a pass, in whichever language the pass is written.

If the pass has changed a program, the mutant breaks one place of the result: the first, the last,
or a random one of the places where the class of mistakes applies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    IntegerAttr,
    TensorType,
    f16,
    f32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.traits import Commutative

from ....dialects import control, exchange, nn, partition
from ....dialects.abele import PlanAttr, SpaceAttr
from ....dialects.blob_attr import BlobAttr
from ....dialects.home import ADDRESS
from ....dialects.partition import laid_out, partition_type
from ....dialects.scalar_functions import FUNCTIONS
from ....dialects.steps import Copy, Output, Superstep, Sync, Vertices
from ....dialects.variable import ALIGNMENT, Variable
from ....ir.blob import Blob
from ....ir.equal import same_program
from ....ir.geometry.space import Space
from ....ir.upstream import Context, ModuleOp, ModulePass, Rewriter
from ....passes.schedule_supersteps import SUPERSTEP
from ..search.contracts import with_apply
from .chip_classes import CHIP_CLASSES
from .compare import Case
from .mutant import Mutant
from .result_class import Break, ResultClass, set_property

# Values


def _drop_operation(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        if len(op.results) != 1 or op.regions or op.results[0].first_use is None:
            continue
        alike = [v for v in op.operands if v.type == op.results[0].type]
        if alike:
            yield partial(op.results[0].replace_all_uses_with, alike[0])


def _swap_operands(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        if _commutes(op):
            continue
        for values in _swapped(tuple(op.operands), lambda a, b: a.type == b.type):
            yield partial(setattr, op, "operands", values)
        if isinstance(op, Vertices | Copy):
            for names in _swapped(op.reads.data, lambda a, b: True):
                yield partial(set_property, op, "reads", ArrayAttr(names))


def _swapped(items: Sequence[Any], may: Callable[[Any, Any], bool]) -> Iterator[tuple[Any, ...]]:
    """The items with two different neighbours swapped, for each pair that `may` accepts."""
    for i, (a, b) in enumerate(pairwise(items)):
        if a != b and may(a, b):
            yield (*items[:i], b, a, *items[i + 2 :])


def _commutes(op: Operation) -> bool:
    """Whether swapping the operands keeps the meaning and is therefore no mistake."""
    if isinstance(op, Vertices | partition.ComputeOp):
        body = op.structure().body
        known = FUNCTIONS.get(body.function)
        return known is not None and known.commutative and not body.then
    return op.has_trait(Commutative)


def _other_value(module: ModuleOp) -> Iterator[Break]:
    known: dict[tuple[Attribute, Block | None], list[OpResult]] = {}
    for op in module.walk():
        for i, value in enumerate(op.operands):
            latest_first = reversed(known.get((value.type, op.parent), ()))
            other = next((each for each in latest_first if each is not value), None)
            if other is not None:
                yield partial(_set_operand, op, i, other)
        for result in op.results:
            known.setdefault((result.type, op.parent), []).append(result)


def _set_operand(op: Operation, index: int, value: SSAValue) -> None:
    op.operands[index] = value


_CONSTANTS = (nn.ConstantOp, partition.ConstantOp, nn.StateOp, partition.StateOp, Variable)


def _wrong_element(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        for name, value in op.properties.items():
            if isinstance(op, _CONSTANTS) and isinstance(value, BlobAttr) and value.array.size:
                wrong = _with_wrong_element(value.array)
                yield partial(set_property, op, name, BlobAttr(Blob(wrong)))


def _with_wrong_element(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of an array in which the last element is wrong."""
    new = np.array(array)
    last = new.reshape(-1)[-1:]
    last[:] = ~last if new.dtype == np.bool_ else np.where(last == 1, 0, 1)
    return new


def _wrong_number(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        for name, value in op.properties.items():
            if isinstance(value, FloatAttr):
                number = cast("FloatAttr[Any]", value)
                yield partial(
                    set_property, op, name, FloatAttr(number.value.data + 1.0, number.type)
                )
            elif isinstance(value, IntegerAttr) and isinstance(op, control.RepeatOp):
                iterations = cast("IntegerAttr[Any]", value)
                yield partial(
                    set_property, op, name, IntegerAttr(iterations.value.data + 1, iterations.type)
                )


# Values between two operations


def _narrow(module: ModuleOp) -> Iterator[Break]:
    ops = list(module.walk())
    for op in ops:
        if isinstance(op, partition.ComputeOp) and op.structure().body.combiner == "sum":
            users = [use.operation for use in op.result.uses]
            gathers = [each for each in users if isinstance(each, partition.RelayoutOp)]
            wide = partition_type(op.result).tensor.element_type == f32
            if wide and users and len(gathers) == len(users):
                yield partial(_narrow_values, [op.result, *(each.result for each in gathers)])
    yield from _narrow_variables(ops)


def _narrow_values(values: Sequence[SSAValue]) -> None:
    for value in values:
        type_ = partition_type(value)
        tensor = TensorType(f16, type_.tensor.get_shape())
        value._type = laid_out(tensor, type_.layout.data)  # pyright: ignore[reportPrivateUsage]


def _narrow_variables(ops: Sequence[Operation]) -> Iterator[Break]:
    variables = {op.symbol: op for op in ops if isinstance(op, Variable)}
    shown = {op.reads.string_value() for op in ops if isinstance(op, Output)}
    for op in ops:
        if not isinstance(op, Vertices) or op.structure().body.combiner != "sum":
            continue
        made = op.destination
        readers = [each for each in ops if isinstance(each, Copy | Vertices)]
        readers = [each for each in readers if made in each.sources]
        names = {made, *(each.destination for each in readers)}
        copied = all(isinstance(each, Copy) and len(each.sources) == 1 for each in readers)
        wide = variables[made].tensor.element_type == f32
        if readers and copied and wide and names.isdisjoint(shown):
            yield partial(_narrow_named, [variables[name] for name in sorted(names)])


def _narrow_named(variables: Sequence[Variable]) -> None:
    for each in variables:
        each.properties["tensor"] = TensorType(f16, each.tensor.get_shape())


_STORES = (nn.StoreOp, partition.StoreOp, Copy)


def _skip_copy(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        if isinstance(op, _STORES):
            yield partial(Rewriter.erase_op, op)


# Where and when


def _spaces(op: Operation) -> Iterator[tuple[Space, Callable[[Space], None]]]:
    """The spaces of an operation, each with a function that replaces it."""
    space = op.properties.get("space")
    if isinstance(space, SpaceAttr):
        yield space.data, lambda new: set_property(op, "space", SpaceAttr(new))
    moves = op.properties.get("moves")
    if isinstance(moves, ArrayAttr):
        given = cast("ArrayAttr[SpaceAttr]", moves).data
        for i, each in enumerate(given):

            def put(new: Space, i: int = i) -> None:
                set_property(op, "moves", ArrayAttr([*given[:i], SpaceAttr(new), *given[i + 1 :]]))

            yield each.data, put


def _offset(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        for space, put in _spaces(op):
            for i, operand in enumerate(space.operands):
                for j in range(len(operand.axes)):
                    yield partial(_add_to_offset, space, put, i, j)


def _add_to_offset(space: Space, put: Callable[[Space], None], i: int, j: int) -> None:
    """Add 1 to the offset of axis j of operand i of a space."""
    operand = space.operands[i]
    axis = replace(operand.axes[j], offset=operand.axes[j].offset + 1)
    axes = (*operand.axes[:j], axis, *operand.axes[j + 1 :])
    operands = (*space.operands[:i], replace(operand, axes=axes), *space.operands[i + 1 :])
    put(replace(space, operands=operands))


def _short(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        for space, put in _spaces(op):
            computes = op.properties.get("space") is not None
            for d, dim in enumerate(space.dims):
                # The sizes of a computation's parallel dimensions are fixed by its result.
                if dim.size > 1 and not (computes and dim.kind == "parallel"):
                    yield partial(_shorten, space, put, d)


def _shorten(space: Space, put: Callable[[Space], None], d: int) -> None:
    """Make dimension d of a space one element shorter."""
    dim = replace(space.dims[d], size=space.dims[d].size - 1)
    put(replace(space, dims=(*space.dims[:d], dim, *space.dims[d + 1 :])))


def _first_tile(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        plan = op.properties.get("plan")
        if isinstance(plan, PlanAttr):
            later = replace(plan.data, first_tile=plan.data.first_tile + 1)
            yield partial(set_property, op, "plan", PlanAttr(later))


def _overlap(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        address = op.attributes.get(ADDRESS) or op.properties.get(ADDRESS)
        if isinstance(op, Variable) and isinstance(address, IntegerAttr):
            bytes_ = cast("IntegerAttr[Any]", address).value.data
            if bytes_ >= ALIGNMENT:
                lower = IntegerAttr(bytes_ - ALIGNMENT, i64)
                place = op.properties if isinstance(op, exchange.VariableOp) else op.attributes
                yield partial(place.__setitem__, ADDRESS, lower)


def _drop_sync(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        before = op.prev_op
        if before is None:
            continue
        if isinstance(op, Superstep) and isinstance(before, Superstep):
            yield partial(_merge, before, op)
        own, other = op.attributes.get(SUPERSTEP), before.attributes.get(SUPERSTEP)
        if isinstance(own, IntegerAttr) and isinstance(other, IntegerAttr) and own != other:
            yield partial(op.attributes.__setitem__, SUPERSTEP, other)


def _merge(first: Superstep, second: Superstep) -> None:
    """Merge two consecutive supersteps into one."""
    ops = [*first.body.block.ops, *second.body.block.ops]
    syncs = [each for each in ops if isinstance(each, Sync)]
    for each in ops:
        each.detach()
    for each in syncs[1:]:
        each.erase()
    moves = [each for each in ops if not isinstance(each, Sync | Vertices)]
    computes = [each for each in ops if isinstance(each, Vertices)]
    second.body.block.add_ops([syncs[0], *moves, *computes])
    Rewriter.erase_op(first)


RESULT_CLASSES = (
    ResultClass("left-drop-operation", "an operation is replaced by its operand", _drop_operation),
    ResultClass("left-swap-operands", "two operands are swapped", _swap_operands),
    ResultClass("left-other-value", "an operand is another value of its type", _other_value),
    ResultClass("left-wrong-element", "the last element of a constant is wrong", _wrong_element),
    ResultClass("left-wrong-number", "a number or iteration count is 1 too large", _wrong_number),
    ResultClass("left-narrow", "partials of a sum are kept in float16", _narrow),
    ResultClass("left-skip-copy", "a copy or a store is removed", _skip_copy),
    ResultClass("left-offset", "an access starts one element late", _offset),
    ResultClass("left-short", "a sum or movement leaves out its last element", _short),
    ResultClass("left-first-tile", "a computation starts one tile late", _first_tile),
    ResultClass("left-overlap", f"a variable's address is {ALIGNMENT} bytes too low", _overlap),
    ResultClass("left-drop-sync", "two supersteps are merged", _drop_sync),
    *CHIP_CLASSES,
)
"""All classes of mistakes in the output of a pass, in the order in which they are reported."""

Which = Callable[[list[Break]], list[Break]]
"""The order in which to try the places of a program, until one can be broken."""


def _any(found: list[Break]) -> list[Break]:
    # Passes run twice on some programs, so the choice must depend on the program alone.
    return Random(len(found)).sample(found, len(found))


WHICH: dict[str, Which] = {
    "first": lambda found: found,
    "last": lambda found: found[::-1],
    "any": _any,
}
"""The place of a program that is broken."""


def result_mutants(original: ModulePass, known: Sequence[Case]) -> list[Mutant]:
    """The mutants of a pass's output.

    A class of mutants that applies to no output is left out.

    Args:
        known: outputs of the pass.
    """
    done = [each for each in known if not each.outcome and not same_program(each.after, each.given)]
    found: list[Mutant] = []
    for kind in RESULT_CLASSES:
        hit = sum(next(kind.sites(each.after), None) is not None for each in done)
        if hit:
            found += (
                Mutant(
                    original.name,
                    kind.name,
                    number,
                    f"{hit} of {len(done)} changed programs have such a place",
                    f"the {which} of them",
                    kind.line,
                    partial(_mutated_pass, original, kind, choose),
                )
                for number, (which, choose) in enumerate(WHICH.items(), 1)
            )
    return found


def _mutated_pass(original: ModulePass, kind: ResultClass, choose: Which) -> ModulePass:
    """The pass, followed by a mistake of a class in one place of its output."""

    def apply(ctx: Context, op: ModuleOp) -> None:
        given = op.clone()
        original.apply(ctx, op)
        if same_program(given, op):
            return
        for each in choose(list(kind.sites(op))):
            try:
                each()
            except ValueError:
                continue
            return

    return with_apply(original, apply)
