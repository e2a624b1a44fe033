"""What a token costs: cycles of the loop over tokens, by layer, and outside of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Operation

from ....backends.prices.price import PhaseCycles, price
from ....backends.target import Target
from ....dialects import control
from ....dialects.tile import SuperstepOp
from ....ir.upstream import ModuleOp
from .asked import LOOP, SAMPLING

LAYER = re.compile(r"(?:^|.*?[./])((?:h|l|layers?|blocks?)[._]?\d+)(?=[./:]|$)", re.IGNORECASE)
"""The number of a layer in the name of a node, with the word before it."""

BEFORE, BEHIND = "before the layers", "behind the layers"
"""What nodes belong to that are in no layer."""

ADDED = frozenset({SAMPLING, LOOP})
"""The nodes that are added to a model."""

NOTHING = PhaseCycles(0, 0, 0)


@dataclass(frozen=True)
class TokenCosts:
    """The cycles of a program that generates tokens, on its critical path.

    Attributes:
        start: cycles of a run outside of its loop.
        token: of one iteration.
        layers: of one iteration, by layer, in the order of the program.
    """

    start: PhaseCycles
    token: PhaseCycles
    layers: Mapping[str, PhaseCycles]

    @classmethod
    def of(cls, module: ModuleOp, target: Target) -> TokenCosts:
        """The costs of a program on the machine."""
        start, token, layers = NOTHING, NOTHING, dict[str, PhaseCycles]()
        rest = BEFORE
        steps = (op for op in module.walk() if isinstance(op, SuperstepOp))
        for step, found in zip(steps, price(module, target), strict=True):
            if _is_in_loop(step):
                token = _sum(token, found.critical)
                node = found.origin or ""
                layer = layer_of(node) or (node if node in ADDED else rest)
                if layer_of(node) is not None:
                    rest = BEHIND
                layers[layer] = _sum(layers.get(layer, NOTHING), found.critical)
            else:
                start = _sum(start, found.critical)
        return cls(start, token, layers)

    def cycles(self, tokens: int) -> int:
        """The cycles of a run that generates so many tokens, as far as each costs the same."""
        return self.start.total + tokens * self.token.total


def layer_of(node: str) -> str | None:
    """The layer that a node is in, by its name; None if it is in none."""
    found = LAYER.match(node)
    return None if found is None else found[1]


def _is_in_loop(op: Operation) -> bool:
    """Whether an operation runs once for each token."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, control.WhileOp):
            return True
        parent = parent.parent_op()
    return False


def _sum(one: PhaseCycles, other: PhaseCycles) -> PhaseCycles:
    return PhaseCycles(
        one.sync + other.sync, one.exchange + other.exchange, one.compute + other.compute
    )
