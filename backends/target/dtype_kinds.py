"""Which prices a dtype has. Dtypes are named as NumPy and ml_dtypes name them."""

from __future__ import annotations

from typing import Literal

from .target import Target

Kind = Literal["float32", "float16", "int"]
"""The kinds of elements that have prices of their own."""


def kind_of(dtype_name: str) -> Kind:
    """The constants that a dtype is charged with: "float32", "float16" or "int".

    float64 uses those of float32 on half as many elements per vector.
    """
    if dtype_name.startswith(("bfloat16", "float16", "float8", "float6", "float4")):
        return "float16"
    return "float32" if dtype_name.startswith("float") else "int"


def is_float8(dtype_name: str) -> bool:
    """Whether a dtype is an 8-bit float."""
    return dtype_name.startswith("float8")


def lacks(dtype_name: str, target: Target) -> bool:
    """Whether a machine has no instructions for a dtype: 8-bit floats without units for them."""
    return is_float8(dtype_name) and target.conv_units(dtype_name, "float16") is None


def element_bytes(dtype_name: str) -> int:
    """Bytes of an element as the machine computes with it."""
    return {"float32": 4, "float16": 2, "int": 4}[kind_of(dtype_name)]


def vector_elements(dtype_name: str, target: Target) -> int:
    """Elements of one vector. Assumed: 8-bit floats are widened to 16 bits."""
    width = target.vector.vector_bytes // element_bytes(dtype_name)
    return max(width // 2 if dtype_name == "float64" else width, 1)
