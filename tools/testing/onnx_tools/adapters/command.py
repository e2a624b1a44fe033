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


class NoResult(Exception):
    """Raised if the command ends well and leaves nothing that can be read."""


class Refused(Exception):
    """Raised if the command ends with another status than 0."""


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
        raise Refused(f"the command ended with status {done.returncode}")


def _read(message: Any, file: Path) -> Any:
    """What the command wrote to a file."""
    try:
        return message.FromString(file.read_bytes())
    except FileNotFoundError:
        raise NoResult(f"the command ended with status 0 and wrote no {file.name}") from None
    # protobuf's errors have no common base class but Exception.
    except Exception as error:
        raise NoResult(f"the command wrote {file.name}, which is not of ONNX: {error}") from None


def transform(model: onnx.ModelProto, option: str, without: Sequence[str] = ()) -> onnx.ModelProto:
    """The model that the command writes."""
    del without
    source, result = Path("in.onnx").absolute(), Path("out.onnx").absolute()
    source.write_bytes(model.SerializeToString())
    result.unlink(missing_ok=True)
    _called(option, **{"in": source, "out": result})
    return _read(onnx.ModelProto, result)


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
        written = _read(onnx.TensorProto, data / f"output_{i}.pb")
        found[each.name] = numpy_helper.to_array(written)
    return found
