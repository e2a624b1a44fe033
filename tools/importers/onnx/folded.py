"""What PyTorch's exporters to ONNX have folded away, as far as the nodes show it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import onnx

from ..folded_modules import Called, folded_modules
from ..modules_and_lines import module_path
from .origins import NAMESPACE, RULE, node_origins, properties_of, typed_scopes

FUSES = re.compile(r"Fuse\w*BatchNorm\w*|Fuse\w*BN\w*")
"""The rules that fold a batch normalisation."""

REWRITTEN = re.compile(r"onnx::Conv(Transpose)?_[0-9]+")
"""The name that the older exporter gives to a weight of a convolution that it has rewritten. Other
weights keep the names of parameters."""

BATCH_NORMALISATION = "batch normalisation"


def folded_in(model: onnx.ModelProto) -> dict[str, list[str]]:
    """The modules of a model that are folded away, by kind of layer."""
    calls, rewritten = list[Called](), list[str]()
    for node, origin in zip(model.graph.node, node_origins(model), strict=True):
        properties = properties_of(node)
        scopes = list(typed_scopes(properties.get(NAMESPACE, "")))
        # The last one is the node itself.
        scope, kind = scopes[-2] if len(scopes) > 1 else ("", "")
        module = module_path(scope) or origin.name
        if FUSES.fullmatch(properties.get(RULE, "")) or _is_rewritten(node, model.producer_name):
            rewritten.append(module)
        else:
            calls.append(Called(module, kind, node.op_type))
    found = folded_modules(calls)
    if rewritten:
        others = found.get(BATCH_NORMALISATION, ())
        found[BATCH_NORMALISATION] = list(dict.fromkeys((*rewritten, *others)))
    return found


def _is_rewritten(node: onnx.NodeProto, exported_by: str) -> bool:
    inputs: Sequence[str] = node.input
    return exported_by == "pytorch" and len(inputs) > 1 and bool(REWRITTEN.fullmatch(inputs[1]))
