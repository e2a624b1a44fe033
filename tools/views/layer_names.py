"""The names of a network's layers in tables and pictures."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..driver.program import Model, Program

if TYPE_CHECKING:
    import onnx

NUMBER = re.compile(r"n?[0-9]+")
"""Matches names without meaning: a number, such as "n4"."""

OF_WEIGHT = re.compile(r"(?:[._/](?:w|b|weight|kernel|bias))?(?:_[0-9]+)?$")
DEVICE = re.compile(r"^[cg]pu_[0-9]+/")


def telling_names(model: onnx.ModelProto) -> dict[str, str]:
    """Names for numbered nodes: the name of their weights, or else their operator with a counter.

    n4, a Conv that reads gpu_0/conv1_w_0: conv1        n9, the second MaxPool: maxpool2
    """
    stored = {each.name for each in model.graph.initializer}
    taken = {node.name for node in model.graph.node}
    found: dict[str, str] = {}
    seen: dict[str, int] = {}
    for node in model.graph.node:
        if not NUMBER.fullmatch(node.name):
            continue
        kind = node.op_type.lower()
        seen[kind] = seen.get(kind, 0) + 1
        weights = [each for each in node.input[1:] if each in stored]
        name = OF_WEIGHT.sub("", DEVICE.sub("", weights[0]), count=1) if weights else ""
        # The statistics of a normalisation are only numbered, too.
        if not name or name in taken:
            name = f"{kind}{seen[kind]}"
        if name not in taken:
            taken.add(name)
            found[node.name] = name
    return found


def names_in(model: Model | Program) -> dict[str, str]:
    """Telling names for the numbered nodes of an ONNX model, or of the file with this path.

    {} for another kind of program.
    """
    if isinstance(model, Program):
        return {}
    if not isinstance(model, str | os.PathLike):
        return telling_names(model)
    path = os.fspath(model)
    if not path.endswith(".onnx"):
        return {}
    # Other models are shown where onnx is not installed.
    import onnx  # noqa: PLC0415

    return telling_names(onnx.load(path, load_external_data=False))


def layer_name(nodes: Sequence[str], names: Mapping[str, str]) -> str:
    """The name that is shown for an operation made from these nodes.

    A step of a node's lowering, "conv1/product", is left out beside the node itself. names: other
    names for some nodes.
    """
    whole = [each for each in nodes if not any(_is_step(each, other) for other in nodes)]
    return "+".join(_renamed(each, names) for each in whole)


def _is_step(path: str, node: str) -> bool:
    return path.startswith(f"{node}/")


def _renamed(path: str, names: Mapping[str, str]) -> str:
    node, slash, step = path.partition("/")
    return f"{names.get(node, node)}{slash}{step}"
