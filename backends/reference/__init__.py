"""Two oracles for programs, which share no code with layouts and blocks.

Both compute in float64. `run_reference` rounds the result of each operation to its dtype;
`unrounded_outputs` rounds nothing.
"""

from .compare import Worst, within, worst_of
from .known_values import KnownValues
from .moves import evaluate_moves
from .operation import Meaningless, evaluate_operation, operation_value, tensor_kind
from .run import (
    Evaluate,
    Observer,
    Run,
    TooManyIterations,
    evaluate_pure,
    first_meaningless,
    is_evaluable,
    run_reference,
)
from .structure import evaluate_structure, structure_value
from .unrounded import unrounded_outputs

__all__ = [
    "Evaluate",
    "KnownValues",
    "Meaningless",
    "Observer",
    "Run",
    "TooManyIterations",
    "Worst",
    "evaluate_moves",
    "evaluate_operation",
    "evaluate_pure",
    "evaluate_structure",
    "first_meaningless",
    "is_evaluable",
    "operation_value",
    "run_reference",
    "structure_value",
    "tensor_kind",
    "unrounded_outputs",
    "within",
    "worst_of",
]
