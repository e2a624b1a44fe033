"""Importers turn the files of frameworks into modules of the nn dialect.

The importer of a framework is imported on first use, because it imports the framework's package. A
saved program runs on a host that has none of these packages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .errors import NotConstantError, UnsupportedError

if TYPE_CHECKING:
    from .onnx.overrides import optional_inputs
    from .onnx.reader import import_onnx, model_uses

_HOME = {
    "import_onnx": "onnx.reader",
    "model_uses": "onnx.reader",
    "optional_inputs": "onnx.overrides",
}
"""The module that defines each name."""

__all__ = ["NotConstantError", "UnsupportedError", "import_onnx", "model_uses", "optional_inputs"]


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
