"""Whether two modules are the same program."""

from __future__ import annotations

from .upstream import ModuleOp


def same_program(module: ModuleOp, other: ModuleOp) -> bool:
    """Whether two modules are equal, except for locations and the names of values.

    xDSL's structural equivalence compares the types of block arguments but not of results. It would
    call two programs equal if they differ only in that one keeps its sums in float16.
    """
    return module.is_structurally_equivalent(other) and all(
        result.type == also.type
        for op, twin in zip(module.walk(), other.walk(), strict=True)
        for result, also in zip(op.results, twin.results, strict=True)
    )
