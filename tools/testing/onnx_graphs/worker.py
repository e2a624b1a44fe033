"""Runs onnxruntime in a process of its own, so that a model that crashes ends only that process.

This file is run as a script. It reads pickled pairs of a model and its inputs from standard input.
For each, it writes the pickled outputs by name, or the text of the error. The pickled data comes
from the process that started this one, never from a file.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any, BinaryIO, cast

import numpy as np
import onnx
import onnxruntime

# onnxruntime has no type annotations.
RUNTIME = cast(Any, onnxruntime)


def answer(model: bytes, inputs: dict[str, Any]) -> dict[str, Any] | str:
    """The outputs of a model, without onnxruntime's graph optimizations; or the error as text."""
    options = RUNTIME.SessionOptions()
    options.graph_optimization_level = RUNTIME.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    names = [each.name for each in onnx.ModelProto.FromString(model).graph.output]
    try:
        session = RUNTIME.InferenceSession(model, options, ["CPUExecutionProvider"])
        results = session.run(names, inputs)
    # The exceptions that onnxruntime raises have no more specific base class.
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return {name: np.asarray(each) for name, each in zip(names, results, strict=True)}


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer every model, until the input ends."""
    while True:
        try:
            model, inputs = pickle.load(source)
        except EOFError:
            return
        pickle.dump(answer(model, inputs), sink)
        sink.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
