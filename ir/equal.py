"""Whether two modules are the same program."""

from __future__ import annotations

from .upstream import ModuleOp


def same_program(module: ModuleOp, other: ModuleOp) -> bool:
    """Whether two modules say the same, locations and names of values apart.

    xDSL's structural equivalence compares the types of block arguments, but not those of results:
    for it, two programs of which one keeps its sums in float16 are equal.
    """
    return module.is_structurally_equivalent(other) and all(
        result.type == also.type
        for op, twin in zip(module.walk(), other.walk(), strict=True)
        for result, also in zip(op.results, twin.results, strict=True)
    )
