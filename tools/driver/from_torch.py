"""Compiles a module of PyTorch: exports it, and compiles the exported program, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from ...ir.support.errors import InputError
from .compile import compile_model
from .executable import Executable

MOST_REASON = 4000
"""The most letters of torch's own reason in a message."""


def from_torch(
    module: Any,
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    **options: Any,
) -> Executable:
    """A program for a module of PyTorch.

    The module is exported by `torch.export.export` as it is; call `module.eval()` before, for a
    program that is to infer. Raises InputError, also for what torch cannot export, with torch's own
    reason.

    Args:
        module: the torch.nn.Module.
        args, kwargs: examples of its arguments, which decide shapes and element types.
        dynamic_shapes: as for torch.export.export.
        options: as for compile_model, such as target and dims.
    """
    torch = _torch()
    try:
        program = torch.export.export(
            module, args, dict(kwargs or {}), dynamic_shapes=dynamic_shapes
        )
    except Exception as error:
        kind = type(module).__name__
        raise InputError(f"torch.export cannot export {kind}: {_reason(error)}") from error
    return compile_model(program, **options)


def _torch() -> ModuleType:
    try:
        _ = import_module("torch.export")
        return import_module("torch")
    except ImportError as error:
        raise InputError(f"from_torch needs PyTorch, pip install torch: {error}") from None


def _reason(error: Exception) -> str:
    """The kind of an error, and its message without blank lines."""
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {chr(10).join(lines)}"[:MOST_REASON]
