"""Public ONNX backend for conformance suites."""

from __future__ import annotations

from .driver.onnx_backend import AbeleBackend, Prepared

__all__ = ["AbeleBackend", "Prepared"]
