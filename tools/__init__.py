"""The edge: argv, files, printing."""

from .compile import compile_model
from .executable import Executable

__all__ = ["Executable", "compile_model"]
