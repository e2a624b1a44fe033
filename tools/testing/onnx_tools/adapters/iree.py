"""Runs a model by IREE, compiled for the CPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import numpy as np
import onnx


def version() -> str:
    """The installed version."""
    return installed("iree-base-compiler")


def parts(model: onnx.ModelProto, option: str) -> list[str]:
    """Nothing: IREE's passes cannot be left out."""
    del model, option
    return []


def run(
    model: onnx.ModelProto, inputs: dict[str, Any], option: str, without: Sequence[str] = ()
) -> dict[str, Any]:
    """The outputs of the model by name."""
    del option, without
    compiler: Any = import_module("iree.compiler")
    runtime: Any = import_module("iree.runtime")
    source, text = Path("model.onnx"), Path("model.mlir")
    source.write_bytes(model.SerializeToString())
    importing = "iree.compiler.tools.import_onnx"
    done = subprocess.run(
        [sys.executable, "-m", importing, str(source), "-o", str(text)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ValueError(f"import_onnx: {done.stderr.strip()[-2000:]}")
    binary = compiler.compile_str(
        text.read_text(),
        target_backends=["llvm-cpu"],
        input_type="onnx",
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    config = runtime.Config("local-sync")
    context = runtime.SystemContext(config=config)
    context.add_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, binary))
    held = {each.name for each in model.graph.initializer}
    given = [inputs[each.name] for each in model.graph.input if each.name not in held]
    results: Any = context.modules.module[model.graph.name](*given)
    several = hasattr(results, "__len__") and not hasattr(results, "dtype")
    listed = results if several else [results]
    return {
        value.name: _as_declared(np.asarray(each), value)
        for value, each in zip(model.graph.output, listed, strict=True)
    }


def _as_declared(array: Any, value: onnx.ValueInfoProto) -> Any:
    """A result with the sign that the model declares: IREE's integers have none."""
    code = value.type.tensor_type.elem_type
    wanted = onnx.helper.tensor_dtype_to_np_dtype(code) if code else array.dtype
    same_bits = (
        array.dtype.kind in "iu" and wanted.kind in "iu" and array.itemsize == wanted.itemsize
    )
    return array.view(wanted) if same_bits else array
