"""Public interface for extensions: definitions to write, and a function that loads them.

abele loads the files given with `--load`, and installed packages that have an entry point in the
group "abele.extensions".
"""

from __future__ import annotations

from ..backends.codelets.users import ulps
from ..backends.codelets.users_definition import codelet
from ..dialects.model_calls import ModelCall
from .driver.extensions.added_level import AddedLevel
from .driver.extensions.extension import Extension, OnnxOperator, onnx_operator
from .driver.extensions.load import load_extensions
from .driver.extensions.loaded import Extensions
from .importers.front_end import FrontEnd, Reading

__all__ = [
    "AddedLevel",
    "Extension",
    "Extensions",
    "FrontEnd",
    "ModelCall",
    "OnnxOperator",
    "Reading",
    "codelet",
    "load_extensions",
    "onnx_operator",
    "ulps",
]
