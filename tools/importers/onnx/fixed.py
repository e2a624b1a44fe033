"""The weights of a model that its framework does not train."""

from __future__ import annotations

import onnx

KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
"""The key under which PyTorch's exporter says what a weight was in the program."""

PARAMETER = "PARAMETER"
"""What is trained, as opposed to BUFFER, CONSTANT_TENSOR and others."""


def fixed_weights(graph: onnx.GraphProto) -> frozenset[str]:
    """The names of the weights that PyTorch does not train, if its exporter marks parameters.

    These are buffers, and numbers without axes that are no parameters, such as the 0.5 of a GELU,
    which the exporter also stores as weights. Without a mark, a weight with axes may be a parameter
    that the exporter has transposed. Other exporters mark nothing, so nothing is known of their
    files.
    """
    kinds = {
        info.name: each.value
        for info in graph.value_info
        for each in info.metadata_props
        if each.key == KIND
    }
    if PARAMETER not in kinds.values():
        return frozenset()

    def is_fixed(tensor: onnx.TensorProto) -> bool:
        kind = kinds.get(tensor.name)
        return not tensor.dims if kind is None else kind != PARAMETER

    return frozenset(tensor.name for tensor in graph.initializer if is_fixed(tensor))
