"""Short names of the framework nodes that operations came from."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from ...ir.provenance import origin_names


def layers_of(ops: Sequence[Operation]) -> list[str]:
    """The name of each operation's framework node; of the first one if several nodes were fused.

    The steps of a node's lowering have names below the node's ("conv1/partials"), but a framework
    may also use such names for nodes ("fire2/squeeze"). A name is cut where the rest is itself an
    origin, or before a step that is never a node. "" if the node is not known.

        conv1/conv+conv1+relu1/partials: conv1        fire2/squeeze: fire2/squeeze
    """
    found = [[part for name in origin_names(op) for part in name.split("+")] for op in ops]
    known = {part for parts in found for part in parts}
    return [_node(parts[0], known) if parts else "" for parts in found]


def _node(name: str, known: set[str]) -> str:
    steps = name.split("/")
    heads = ["/".join(steps[:k]) for k in range(1, len(steps))]
    return next((head for head in heads if head in known), _without_step(name))


def _without_step(name: str) -> str:
    head, _, step = name.rpartition("/")
    return head if head and step in STEPS else name


STEPS = ("partials",)
"""Names of steps that lowering adds to any node."""
