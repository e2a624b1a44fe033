"""From the files of frameworks to the nn dialect."""

from .errors import UnsupportedError
from .onnx_reader import import_onnx

__all__ = ["UnsupportedError", "import_onnx"]
