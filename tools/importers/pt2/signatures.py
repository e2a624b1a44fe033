"""What an exported program declares about its inputs, read without building anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from ....ir.support.errors import InputError
from ..binding import InputSignature
from ..errors import UnsupportedError
from ..front_end import OpenShapes
from .archive import Archive, read_archive
from .exported import serialized
from .free_sizes import axis_of
from .payloads import dtype_of_code
from .schema import Program, Symbol, Tensor, read_program

IN_MEMORY = "<model>"
"""The name of a program in memory in messages."""


def archive_of(model: Any, place: str) -> Archive:
    """The archive of a path, of bytes, or of an exported program. Raises InputError."""
    if isinstance(model, str | os.PathLike):
        return read_archive(Path(cast("str", model)), place)
    return read_archive(model if isinstance(model, bytes) else serialized(model), place)


def place_of(model: Any) -> str:
    """The name of a model in messages: its path, if it has one."""
    return str(cast("str", model)) if isinstance(model, str | os.PathLike) else IN_MEMORY


def program_of(model: Any, place: str) -> Program:
    """The program of a path, of bytes, or of an exported program. Raises InputError."""
    return read_program(archive_of(model, place).graph(), place)


def open_shapes(model: Any) -> OpenShapes:
    """The shapes of the tensors that the user gives. Raises InputError."""
    place = place_of(model)
    program = program_of(model, place)
    return {each.name: each.shape for each in signatures(program, place)}


def signatures(program: Program, place: str) -> Iterator[InputSignature]:
    """The tensors that the user gives, with their free sizes."""
    seen: set[str] = set()
    for each in program.inputs:
        argument = each.argument
        if each.kind == "constant_input":
            continue
        if each.kind in ("parameter", "buffer", "tensor_constant"):
            continue
        if each.kind != "user_input":
            raise UnsupportedError(f"{place}: an input of kind {each.kind!r} is not supported")
        if isinstance(argument, Symbol):
            raise UnsupportedError(
                f"{place}: input {argument.name!r} is a number of Python that may change; export "
                "the module with a fixed number, or with a tensor"
            )
        if not isinstance(argument, Tensor):
            continue
        meta = program.graph.tensors.get(argument.name)
        if meta is None or argument.name in seen:
            raise InputError(f"{place}: damaged program: input {argument.name[:200]!r}")
        seen.add(argument.name)
        dtype = dtype_of_code(meta.code, f"{place}: input {argument.name!r}")
        yield InputSignature(argument.name, tuple(axis_of(n, place) for n in meta.sizes), dtype)
