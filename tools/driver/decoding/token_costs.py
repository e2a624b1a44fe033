"""What a token costs: cycles of the loop over tokens, by layer, and outside of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from ....backends.prices.price import PhaseCycles, price
from ....backends.target import Target
from ....dialects import control
from ....dialects.steps import Superstep
from ....ir.upstream import ModuleOp
from .asked import LOOP, SAMPLING

LAYER = re.compile(r"(?:^|.*?[./])((?:h|l|layers?|blocks?)[._]?\d+)(?=[./:]|$)", re.IGNORECASE)
"""The number of a layer in the name of a node, with the word before it."""

BEFORE, BEHIND, WHOLE = "before the layers", "behind the layers", "the model"
"""What nodes belong to that are in no layer; the last one if there are none."""

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
        start, once = NOTHING, list[tuple[str, PhaseCycles]]()
        steps = (op for op in module.walk() if isinstance(op, Superstep))
        for step, found in zip(steps, price(module, target), strict=True):
            if _is_in_loop(step):
                once.append((found.origin or "", found.critical))
            else:
                start = _sum(start, found.critical)
        token, layers = NOTHING, dict[str, PhaseCycles]()
        for name, (_, cycles) in zip(layers_of([node for node, _ in once]), once, strict=True):
            token = _sum(token, cycles)
            layers[name] = _sum(layers.get(name, NOTHING), cycles)
        return cls(start, token, layers)

    def cycles(self, tokens: int) -> int:
        """The cycles of a run that generates so many tokens, as far as each costs the same."""
        return self.start.total + tokens * self.token.total


def layers_of(nodes: Sequence[str]) -> list[str]:
    """The layer of each node, by its name; without one, that of the node before it.

    Nodes before the first layer and behind the last one are in none.

    Args:
        nodes: in the order of a program.
    """
    found = [_layer_of(node) for node in nodes]
    last = max((i for i, layer in enumerate(found) if layer is not None), default=-1)
    layers: list[str] = []
    current = WHOLE if last < 0 else BEFORE
    for i, (node, layer) in enumerate(zip(nodes, found, strict=True)):
        current = BEHIND if i > last >= 0 else layer or current
        # What passes make of a node has its name, and theirs behind a slash.
        own = node.partition("/")[0]
        layers.append(own if own in ADDED else current)
    return layers


def _layer_of(node: str) -> str | None:
    """The layer in the name of a node; None if there is none."""
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
