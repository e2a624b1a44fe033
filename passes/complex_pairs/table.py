"""What replaces each operation on complex numbers, from the files of all families."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from ...ir.upstream import ModuleOp
from . import formulas, fourier, structure
from .splitting import Rule, Splitting

RULES: Mapping[str, Rule] = {**structure.RULES, **formulas.RULES, **fourier.RULES}
"""What replaces each operation on complex numbers, by name."""


def split_complex(module: ModuleOp) -> Mapping[Operation, Operation]:
    """Replace the complex numbers of a program by their parts, except in operations without a rule.

    Returns for each new operation the one that it was made for.
    """
    new = Splitting(RULES)
    new.module(module)
    return new.origins
