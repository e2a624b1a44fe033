"""Names that say more than the numbers by which exporters call the nodes of an ONNX model."""

from __future__ import annotations

import os
import re

import onnx

from .origins import source_texts
from .sparse_weights import weights_of

NUMBER = re.compile(r"n?[0-9]+")
"""A name that says nothing about a layer."""

OF_WEIGHT = re.compile(r"(?:[._/](?:w|b|weight|kernel|bias))?(?:_[0-9]+)?$")
DEVICE = re.compile(r"^[cg]pu_[0-9]+/")


def telling_names(model: onnx.ModelProto) -> dict[str, str]:
    """Names for numbered nodes: the name of their weights, or else their operator with a counter.

    n4, a Conv that reads gpu_0/conv1_w_0: conv1        n9, the second of all MaxPools: maxpool2
    """
    stored = {each.name for each in weights_of(model.graph)}
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
        # The statistics of a normalisation are only numbered too.
        if not name or name in taken:
            name = f"{kind}{seen[kind]}"
        if name not in taken:
            taken.add(name)
            found[node.name] = name
    return found


def layer_names(model: str | os.PathLike[str] | onnx.ModelProto) -> dict[str, str]:
    """Telling names for the numbered nodes of a model, or of the file at a path."""
    return telling_names(_proto(model))


def source_lines(model: str | os.PathLike[str] | onnx.ModelProto) -> dict[str, str]:
    """What lines of Python say, by file and line, for a model or the file at a path."""
    return source_texts(_proto(model))


def _proto(model: str | os.PathLike[str] | onnx.ModelProto) -> onnx.ModelProto:
    in_memory = isinstance(model, onnx.ModelProto)
    return model if in_memory else onnx.load(model, load_external_data=False)
