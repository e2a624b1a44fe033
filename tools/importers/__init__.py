"""From the files of frameworks to the nn dialect."""

from .errors import NotConstantError, UnsupportedError
from .onnx_reader import import_onnx

__all__ = ["NotConstantError", "UnsupportedError", "import_onnx"]
