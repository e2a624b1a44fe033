"""Runs a model by TVM's Relax, compiled for the CPU with LLVM."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version as installed
from typing import Any

import onnx


def version() -> str:
    """The installed version."""
    return installed("apache-tvm")


def parts(model: onnx.ModelProto, option: str) -> list[str]:
    """Nothing: the pipeline has no names to leave out."""
    del model, option
    return []


def run(
    model: onnx.ModelProto, inputs: dict[str, Any], option: str, without: Sequence[str] = ()
) -> dict[str, Any]:
    """The outputs of the model by name."""
    del option, without
    tvm: Any = import_module("tvm")
    relax: Any = import_module("tvm.relax")
    reader: Any = import_module("tvm.relax.frontend.onnx")
    module = reader.from_onnx(model, keep_params_in_input=False)
    built = tvm.compile(module, target="llvm")
    machine = relax.VirtualMachine(built, tvm.cpu())
    held = {each.name for each in model.graph.initializer}
    order = [each.name for each in model.graph.input if each.name not in held]
    given = [tvm.runtime.tensor(inputs[name]) for name in order]
    results = machine["main"](*given)
    listed = [results] if hasattr(results, "numpy") else list(results)
    names = [each.name for each in model.graph.output]
    return {name: each.numpy() for name, each in zip(names, listed, strict=True)}
