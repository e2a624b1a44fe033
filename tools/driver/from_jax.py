"""Turns a function of JAX into a model: traces it, and prints it as StableHLO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ..importers.stablehlo.in_memory import StableHloModel, argument_names, in_parts, lowered_text
from .leaf_names import leaves_of

MOST_REASON = 4000
"""The most letters of JAX's own reason in a message."""


def from_jax(
    function: Any,
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    weights: str | Sequence[str] = (),
) -> StableHloModel:
    """A model of a function of JAX, which compile_model takes.

    The inputs and outputs of the model are the leaves of the function's arguments and results. They
    have the names that JAX gives them, such as `params['w']` and `result[0]['w']`. One of complex
    numbers is two, of its real and imaginary parts, such as `x.real` and `x.imag`.

    Raises InputError, also for what JAX cannot trace, with JAX's own reason.

    Args:
        function: a function of arrays, or of pytrees of arrays.
        args, kwargs: examples of its arguments, which decide shapes and element types.
        weights: the names of arguments, or of parts of them, that are states of the program: it
            begins with the values of the examples. All others are its inputs.
    """
    jax = _jax()
    given = dict(kwargs or {})
    try:
        traced = jax.jit(function, keep_unused=True).trace(*args, **given)
        lowered = traced.lower(lowering_platforms=("cpu",))
        text = lowered_text(lowered)
    except Exception as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise InputError(f"JAX cannot trace {name}: {_reason(error)}") from error
    leaves = dict(zip(argument_names(lowered), jax.tree.leaves((args, given)), strict=True))
    wanted = [weights] if isinstance(weights, str) else weights
    held = {name: np.asarray(jax.numpy.asarray(leaves[name])) for name in _named(wanted, leaves)}
    return StableHloModel(text, in_parts(held))


def _named(wanted: Sequence[str], names: Mapping[str, object]) -> list[str]:
    """The leaves of all arguments that are wanted. Raises InputError for one without any."""
    found: dict[str, None] = {}
    for each in wanted:
        leaves = leaves_of(each, names)
        if not leaves:
            raise InputError(f"from_jax: weights: no argument {each!r}{suggestion(each, names)}")
        found.update(dict.fromkeys(leaves))
    return list(found)


def _jax() -> Any:
    """The package, which leaves this file out of the places of operations."""
    try:
        import_module("jax.extend.source_info_util").register_exclusion(__file__)
        return import_module("jax")
    except ImportError as error:
        raise InputError(f"from_jax needs JAX, pip install jax: {error}") from None


def _reason(error: Exception) -> str:
    """The kind of an error, and its message without blank lines."""
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {chr(10).join(lines)}"[:MOST_REASON]
