"""Run a module of nn in exact arithmetic: every float operation in float64, without rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.ir import Operation

from ...dialects.nn import CastOp, ConstantOp, ElementwiseOp
from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.structured import Movement, Reinterpretation, Structured
from ...ir.support.number_kinds import is_floating
from ...ir.upstream import ModuleOp
from ..codelets.conversion import FLOAT64, converted
from .gather import Array
from .moves import evaluate_moves
from .operation import Meaningless, tensor_kind
from .run import run_reference
from .structure import structure_value

UNROUNDED_ITERATIONS = 10_000
"""The most iterations of a loop; one with more counts as endless in exact arithmetic.

A loop may end only because its values are rounded: one that halves a value until it is 0 takes 150
iterations in float32, and more than a thousand in float64.
"""


def unrounded_outputs(
    module: ModuleOp,
    inputs: Mapping[str, Array],
    state: Mapping[str, Array] | None = None,
    max_turns: int = UNROUNDED_ITERATIONS,
    on_operation: Callable[[], None] | None = None,
    wide: bool = False,
) -> dict[str, Array]:
    """The outputs of @main, by name, with every float computed and kept in float64.

    run_reference rounds the result of each operation to its dtype; here nothing is rounded, and a
    cast from one float to another changes nothing. Integers and booleans are as in run_reference.
    Float outputs are float64, even if they are inputs passed through. Raises InputError as
    run_reference does, and TooManyIterations for loops of more than max_turns.

    Args:
        inputs, state: in the program's own dtypes, as for run_reference.
        on_operation: called before each operation without parts.
        wide: floats among them may be float64.
    """

    def evaluate(op: Operation, operands: Sequence[Array], result: int = 0) -> Array:
        if on_operation is not None:
            on_operation()
        return unrounded_value(op, operands, result)

    run = run_reference(module, inputs, state, max_turns=max_turns, evaluate=evaluate, wide=wide)
    return {name: _widened(array) for name, array in run.outputs.items()}


def unrounded_value(op: Operation, operands: Sequence[Array], result: int = 0) -> Array:
    """One result of a constant, a structured operation, a movement or a reshape, not rounded.

    Raises Meaningless for any other operation.

    A float result is float64.

    Args:
        result: the index of the result.
    """
    if isinstance(op, ConstantOp):
        return _widened(op.value.array)
    shape, dtype = tensor_kind(op.results[result].type)
    kind = FLOAT64 if is_floating(dtype) else dtype
    wide = [_widened(each) for each in operands]
    if isinstance(op, Structured) and op.structure().body.function == "bitcast":
        (source,) = op.operands
        own = converted(wide[0], tensor_kind(source.type)[1])
        seen = structure_value(op.structure(), [own], dtype, shape)
        return _widened(converted(seen, dtype))
    if isinstance(op, CastOp):
        return converted(wide[0], kind)
    if isinstance(op, ElementwiseOp) and FUNCTIONS[op.function].rounds:
        return np.broadcast_to(wide[0], shape).copy()
    if isinstance(op, Structured):
        return converted(structure_value(op.structure(), wide, kind, shape, result), kind)
    if isinstance(op, Movement):
        return evaluate_moves(op.moves(), wide, shape, kind)
    if isinstance(op, Reinterpretation):
        return wide[0].reshape(shape)
    raise Meaningless(op)


def _widened(array: Array) -> Array:
    """Floats as float64; integers and booleans as they are."""
    return array.astype(np.float64, copy=False) if is_floating(array.dtype) else array
