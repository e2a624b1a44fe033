"""onnxruntime in a process of its own: a model that ends the process ends this one only.

Run as a script: reads pairs of a model and its inputs, pickled, from the standard input, and
answers each with the outputs by name, or with the text of the error. What is pickled comes from the
process that has started this one, never from a file.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any, BinaryIO, cast

import numpy as np
import onnx
import onnxruntime

# It has no types.
RUNTIME = cast(Any, onnxruntime)


def answer(model: bytes, inputs: dict[str, Any]) -> dict[str, Any] | str:
    """The outputs of a model as it stands, without onnxruntime's own rewrites; or what is wrong."""
    options = RUNTIME.SessionOptions()
    options.graph_optimization_level = RUNTIME.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    names = [each.name for each in onnx.ModelProto.FromString(model).graph.output]
    try:
        session = RUNTIME.InferenceSession(model, options, ["CPUExecutionProvider"])
        results = session.run(names, inputs)
    # What it raises has no class in common but this.
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return {name: np.asarray(each) for name, each in zip(names, results, strict=True)}


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer until there is no question any more."""
    while True:
        try:
            model, inputs = pickle.load(source)
        except EOFError:
            return
        pickle.dump(answer(model, inputs), sink)
        sink.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
