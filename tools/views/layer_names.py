"""The names of a network's layers in tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..importers.front_ends import front_end_of


def names_in(model: object) -> Mapping[str, str]:
    """Telling names for the nodes of a model, or of the file at a path.

    {} for a model of a kind whose nodes have names of their own, and for what is no model.
    """
    front_end = front_end_of(model)
    if front_end is None or front_end.layer_names is None:
        return {}
    return front_end.layer_names(model)


def source_lines(model: object) -> Mapping[str, str]:
    """The source lines of a model's nodes, by file and line, such as net.py:12.

    {} if the model does not hold their texts.
    """
    front_end = front_end_of(model)
    if front_end is None or front_end.source_lines is None:
        return {}
    return front_end.source_lines(model)


def layer_name(nodes: Sequence[str], names: Mapping[str, str]) -> str:
    """The name that is shown for an operation made from these nodes.

    A step of a node's lowering, "conv1/product", is left out beside the node itself.

    Args:
        names: other names for some nodes.
    """
    whole = [each for each in nodes if not any(_is_step(each, other) for other in nodes)]
    return "+".join(_renamed(each, names) for each in whole)


def _is_step(path: str, node: str) -> bool:
    return path.startswith(f"{node}/")


def _renamed(path: str, names: Mapping[str, str]) -> str:
    node, slash, step = path.partition("/")
    return f"{names.get(node, node)}{slash}{step}"
