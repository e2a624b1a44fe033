"""An oracle for programs in float64, which shares no code with layouts and blocks."""

from .compare import Worst, within, worst_of
from .moves import evaluate_moves
from .operation import Meaningless, evaluate_operation, operation_value, tensor_kind
from .run import (
    Evaluate,
    Observer,
    Run,
    evaluate_pure,
    first_meaningless,
    is_evaluable,
    run_reference,
)
from .structure import evaluate_structure, structure_value

__all__ = [
    "Evaluate",
    "Meaningless",
    "Observer",
    "Run",
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
    "within",
    "worst_of",
]
