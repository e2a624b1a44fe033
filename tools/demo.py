"""The network that abele demo shows: AlexNet with seeded weights, and one image."""

from __future__ import annotations

import onnx

from .arrays import Array
from .bench.light import light_input, seeded


def demo_model() -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The model and its inputs."""
    return seeded("alexnet"), dict(light_input("alexnet"))
