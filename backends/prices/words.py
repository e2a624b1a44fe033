"""The operations that only carry the numbers of which stochastic roundings make their words.

A machine rounds by words of its workers' generators, and has none of these operations. Prices are
those of the machine, so they cost nothing.
"""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects.random_states import FIRST_SEED, ROUNDING_SEED, ROUNDING_STEP
from ...dialects.steps import Copy, Vertices
from ...dialects.variable import Variable
from ...ir.upstream import ModuleOp

_STATES = frozenset((FIRST_SEED, ROUNDING_SEED, ROUNDING_STEP))


def words_only(module: ModuleOp) -> frozenset[Operation]:
    """The copies and vertex sets of a program that read nothing but the seed of roundings, the
    number of the run, and what is computed from these alone."""
    names = {op.symbol for op in module.ops if isinstance(op, Variable)} & _STATES
    if not names:
        return frozenset()
    moving = [op for op in module.walk() if isinstance(op, Copy | Vertices)]
    found = set[Operation]()
    while True:
        more = {
            op for op in moving if op not in found and op.sources and names.issuperset(op.sources)
        }
        if not more:
            return frozenset(found)
        found |= more
        made = {name for op in more for name in op.destinations}
        others = {name for op in moving if op not in found for name in op.destinations}
        names |= made - others
