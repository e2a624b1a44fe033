"""The phases of a step of training: forward, backward, and the update of the weights.

The passes that add gradients and updates locate each operation below the one that it belongs to:
"conv1/backward", "conv1.weight/update". Locations survive every lowering, so the phase of an
operation is read from its location, at any level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation

from .provenance import origin_names
from .upstream import ModuleOp

FORWARD, BACKWARD, UPDATE = "forward", "backward", "update"

PHASES = (FORWARD, BACKWARD, UPDATE)
"""All phases, in the order in which a step runs them."""

STEPS: Mapping[str, str] = {
    "backward": BACKWARD,
    "clip": UPDATE,
    "loss_scale": UPDATE,
    "unbiased": UPDATE,
    "update": UPDATE,
}
"""The phase of each step that training adds to the location of an operation."""

NODES = "abele.forward"
"""The attribute of a module with gradients: names of forward nodes that look like such a step.

A framework may call a node "cell/update/Add", which would count as an update if it were not listed.
A module without the attribute has no gradients, and all of it is forward.
"""


def several(phases: Iterable[str]) -> tuple[str, ...]:
    """The distinct phases in the order of PHASES; () if all of them are forward."""
    found = set(phases)
    return () if found <= {FORWARD} else tuple(each for each in PHASES if each in found)


@dataclass(frozen=True)
class Phases:
    """The phases of the operations of one module.

    Attributes:
        nodes: the names that NODES lists; None if the module has no gradients.
    """

    nodes: tuple[str, ...] | None = None

    @classmethod
    def of(cls, module: ModuleOp) -> Phases:
        """The phases of the operations of a module."""
        listed = module.attributes.get(NODES)
        if not isinstance(listed, ArrayAttr):
            return cls()
        names = cast("ArrayAttr[Attribute]", listed).data
        return cls(tuple(each.data for each in names if isinstance(each, StringAttr)))

    def phase(self, source: Operation | str | None) -> str:
        """The phase of an operation, or of an origin. FORWARD if nothing is known of it.

        An operation that was made from several is in the latest of their phases. So a gradient that
        is computed together with the update of its weight is part of the update.
        """
        return max(self.every(source), key=PHASES.index, default=FORWARD)

    def every(self, source: Operation | str | None) -> frozenset[str]:
        """The phases of what an operation, or an origin, was made from."""
        if self.nodes is None:
            return frozenset({FORWARD})
        names = origin_names(source) if isinstance(source, Operation) else (source or "",)
        return frozenset(self._of_path(path) for name in names for path in name.split("+"))

    def node_of(self, path: str) -> str:
        """The path of an origin without the steps that training has added: of "conv1/backward" it
        is "conv1"."""
        head = self._head(path)
        steps = path[len(head) :].split("/")
        own = next((i for i, step in enumerate(steps) if step in STEPS), len(steps))
        return head + "/".join(steps[:own])

    def _of_path(self, path: str) -> str:
        steps = path[len(self._head(path)) :].split("/")
        return max((STEPS.get(step, FORWARD) for step in steps), key=PHASES.index)

    def _head(self, path: str) -> str:
        """The longest node that looks like a step of training and begins a path; "" if none
        does."""
        heads = [n for n in self.nodes or () if path == n or path.startswith(f"{n}/")]
        return max(heads, key=len, default="")


def keep_forward_names(module: ModuleOp) -> None:
    """List the nodes that look like steps of training. Call it before gradients are added."""
    known = Phases(Phases.of(module).nodes or ())
    names = {
        path: None
        for op in module.walk()
        for name in origin_names(op)
        for path in name.split("+")
        if known.phase(path) != FORWARD
    }
    listed = (*(known.nodes or ()), *names)
    module.attributes[NODES] = ArrayAttr(map(StringAttr, listed))
