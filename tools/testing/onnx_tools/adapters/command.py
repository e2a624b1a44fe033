"""Runs a command on files: of a model and its transformed form, or of a model and its data.

The option is the command. `{in}` is the path of the model, `{out}` that of the transformed one.
Instead of `{out}`, `{data}` is a folder with input_0.pb, input_1.pb and so on, in which the command
writes output_0.pb and so on, in the order of the model's inputs and outputs.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper


class Crashed(Exception):
    """Raised if a signal ends the command."""


def version() -> str:
    """Nothing: a command need not know its version."""
    return ""


def parts(model: onnx.ModelProto, option: str) -> list[str]:
    """Nothing: the parts of a command are not known."""
    del model, option
    return []


def _called(command: str, **paths: Path) -> None:
    """Run a command without a shell, with paths in the place of names in braces."""
    words = shlex.split(command)
    for name, path in paths.items():
        words = [word.replace("{" + name + "}", str(path)) for word in words]
    done = subprocess.run(words, check=False, stdin=subprocess.DEVNULL)
    if done.returncode < 0:
        raise Crashed(f"the command ended by {signal.Signals(-done.returncode).name}")
    if done.returncode:
        raise ValueError(f"the command ended with status {done.returncode}")


def transform(model: onnx.ModelProto, option: str, without: Sequence[str] = ()) -> onnx.ModelProto:
    """The model that the command writes."""
    del without
    source, result = Path("in.onnx").absolute(), Path("out.onnx").absolute()
    source.write_bytes(model.SerializeToString())
    result.unlink(missing_ok=True)
    _called(option, **{"in": source, "out": result})
    return onnx.ModelProto.FromString(result.read_bytes())


def run(
    model: onnx.ModelProto, inputs: dict[str, Any], option: str, without: Sequence[str] = ()
) -> dict[str, Any]:
    """The outputs that the command writes, by name."""
    del without
    source, data = Path("in.onnx").absolute(), Path("data").absolute()
    source.write_bytes(model.SerializeToString())
    data.mkdir(exist_ok=True)
    for old in data.iterdir():
        old.unlink()
    for i, name in enumerate(inputs):
        tensor = numpy_helper.from_array(inputs[name], name)
        (data / f"input_{i}.pb").write_bytes(tensor.SerializeToString())
    _called(option, **{"in": source, "data": data})
    found: dict[str, Any] = {}
    for i, each in enumerate(model.graph.output):
        written = (data / f"output_{i}.pb").read_bytes()
        found[each.name] = numpy_helper.to_array(onnx.TensorProto.FromString(written))
    return found
