"""The network of `abele demo`: AlexNet with seeded weights, and one image."""

from __future__ import annotations

from pathlib import Path

import onnx

from ...ir.support.on_step import OnStep
from ..driver.arrays import Array
from ..driver.executable import Executable
from ..importers.light_networks import light_input, seeded


def demo_model() -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The model, and its inputs by name."""
    return seeded("alexnet"), dict(light_input("alexnet"))


SIZE = 1024
"""Width and height of the demo's picture, in pixels."""


def draw_demo(exe: Executable, model: onnx.ModelProto, path: Path, on_step: OnStep) -> None:
    """Draw the program's vertices and edges. Raises InputError."""
    # Only drawing needs these libraries.
    from ..views.layer_names import names_in  # noqa: PLC0415
    from ..views.scan.compiled import graph_of_program, subject_of  # noqa: PLC0415
    from ..views.scan.scan import laid_out, scan, write_picture  # noqa: PLC0415

    graph = graph_of_program(exe, names_in(model))
    laid = laid_out(graph, subject_of(exe, "AlexNet"), SIZE, on_step=on_step)
    write_picture(scan(laid, "layer", SIZE, on_step).image, path)
