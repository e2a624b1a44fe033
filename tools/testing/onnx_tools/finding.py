"""A finding: a failure of a tool, reduced, in a folder that shows it without abele."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx import numpy_helper

from ....ir.support.errors import InputError
from ....ir.support.whole_folder import free_folder, whole_folder
from ...driver.arrays import Array
from ..onnx_graphs.checks import NotCompared
from ..onnx_graphs.graph import ModelCase
from ..onnx_graphs.opinions import evaluated
from ..oracle.oracles import TWO_ERRORS, Outcome
from .equivalents import Equivalent
from .judge import KINDS, Found
from .known import Tool
from .script import script_of

KIND = "a finding that abele saved"
ABOUT = "finding.json"
MODEL = "model.onnx"
AFTER = "after.onnx"
EQUIVALENT = "equivalent.onnx"
SCRIPT = "reproduce.py"
DATA = "test_data_set_0"
OTHER_DATA = "test_data_set_1"
PATIENCE = 6
"""The script waits for so many times the processor seconds that the tool had."""


@dataclass(frozen=True)
class Finding:
    """A failure of a tool on a small model.

    Attributes:
        tool: with its option.
        version: the tool's version; "" if it is not known.
        made: "transform" or "run".
        without: the parts of the tool that were left out.
        culprit: the part of the tool that is to blame; "" if it is not known.
        seconds: processor seconds that the tool had.
        example: the number of the model among all that were generated.
    """

    tool: Tool
    version: str
    made: str
    graph: ModelCase
    found: Found
    without: tuple[str, ...] = ()
    culprit: str = ""
    seconds: float = 20.0
    example: int = 0
    seed: int = 0

    @property
    def headline(self) -> str:
        """What is wrong, in one line."""
        version = f" {self.version}" if self.version else ""
        by = f", by {self.culprit}" if self.culprit else ""
        first = self.found.text.partition("\n")[0]
        return f"{self.tool.spelling}{version}: {KINDS[self.found.kind]}{by}: {first}"

    def save(self, folder: Path) -> Path:
        """Save the finding, in a folder of this name or with a number added. Raises InputError."""
        place = free_folder(folder, KIND)
        with whole_folder(place, KIND) as made:
            self._write(made)
        return place

    def _write(self, folder: Path) -> None:
        found = self.found
        (folder / MODEL).write_bytes(self.graph.proto.SerializeToString())
        write_data(folder / DATA, self.graph)
        models = [(MODEL, DATA)]
        if found.after is not None:
            (folder / AFTER).write_bytes(found.after.SerializeToString())
        if found.other is not None:
            (folder / EQUIVALENT).write_bytes(found.other.proto.SerializeToString())
            write_data(folder / OTHER_DATA, found.other)
            models.append((EQUIVALENT, OTHER_DATA))
        script = script_of(
            self.tool,
            self.headline,
            self.version,
            self.made,
            list(self.without),
            PATIENCE * self.seconds,
            models,
        )
        (folder / SCRIPT).write_text(script, encoding="utf-8")
        (folder / "model.txt").write_text(self.graph.text, encoding="utf-8")
        about = {
            "tool": self.tool.spelling,
            "version": self.version,
            "made": self.made,
            "kind": found.kind,
            "text": found.text,
            "culprit": self.culprit,
            "without": list(self.without),
            "rewrite": found.rewrite,
            "seed": self.seed,
            "example": self.example,
            "with": versions(),
        }
        (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def write_data(folder: Path, graph: ModelCase) -> None:
    """Write a model's inputs, its expected outputs and their bounds, as ONNX's own tests do."""
    folder.mkdir()
    outcome = _outcome(graph)
    bounds = {n: _bound(outcome.errors[n], a) for n, a in outcome.outputs.items()}
    for what, arrays in (("input", graph.inputs), ("output", outcome.outputs), ("bound", bounds)):
        for i, (name, array) in enumerate(arrays.items()):
            tensor = numpy_helper.from_array(array, name)
            (folder / f"{what}_{i}.pb").write_bytes(tensor.SerializeToString())


def _outcome(graph: ModelCase) -> Outcome:
    try:
        return evaluated(graph)
    except NotCompared:
        # A model that no result of the tool was compared with.
        return Outcome({}, {}, {})


def _bound(error: Any, array: Array) -> Array:
    """The largest distance of two correct runs, with the shape of the result."""
    return np.broadcast_to(np.asarray(error, np.float64) * TWO_ERRORS, array.shape).copy()


def versions() -> dict[str, str]:
    """The versions of what a finding depends on besides the tool."""
    found = {"python": platform.python_version()}
    for name in ("numpy", "onnx", "onnxruntime"):
        try:
            found[name] = installed(name)
        except PackageNotFoundError:
            continue
    return found


def load(folder: Path) -> tuple[ModelCase, Mapping[str, object]]:
    """The model of a saved finding, and what is written about it. Raises InputError."""
    try:
        about = cast("dict[str, object]", json.loads((folder / ABOUT).read_text("utf-8")))
        return _case(folder / MODEL, folder / DATA), about
    # protobuf's errors have no common base class but Exception.
    except Exception as error:
        raise InputError(f"{folder}: is no finding that can be read: {error}") from None


def equivalent_in(folder: Path, about: Mapping[str, object]) -> Equivalent | None:
    """The equivalent model of a saved finding; None if it has none. Raises InputError."""
    name = str(about.get("rewrite") or "")
    if not name:
        return None
    try:
        return Equivalent(name, _case(folder / EQUIVALENT, folder / OTHER_DATA))
    except Exception as error:
        raise InputError(f"{folder}: its equivalent model cannot be read: {error}") from None


def _case(model: Path, data: Path) -> ModelCase:
    """A model and its inputs, from files."""
    inputs: dict[str, Array] = {}
    for each in sorted(data.glob("input_*.pb"), key=lambda at: int(at.stem.rpartition("_")[2])):
        tensor = onnx.TensorProto.FromString(each.read_bytes())
        inputs[tensor.name] = numpy_helper.to_array(tensor)
    return ModelCase(onnx.load(model), inputs)
