"""JAX's own cases of its primitives, which are part of its package (internal_test_util)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from ....ir.support.errors import InputError
from ...driver.from_jax import from_jax
from .cases import OPEN, Array, Case, Refused, Tolerance

TYPES = ("float32", "float16", "bfloat16", "int32", "bool", "complex64")
"""The element types of the cases that count."""

MORE_TYPES = ("int8", "int16", "uint8", "uint16", "uint32")
"""Other types that abele computes in, and JAX has without float64."""

SEED = 0


@lru_cache(maxsize=1)
def harnesses() -> Sequence[Any]:
    """All cases of JAX, in its order. Raises InputError where JAX or absl-py is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = import_module("jax._src.internal_test_util.test_harnesses")
    except ImportError as error:
        raise InputError(
            f"JAX's harnesses need jax and absl-py: pip install 'abele[jax]' absl-py: {error}"
        ) from None
    return module.all_harnesses


def numbers(types: Sequence[str]) -> list[int]:
    """The positions of the cases of some element types that JAX runs on a CPU."""
    return [
        i
        for i, each in enumerate(harnesses())
        if np.dtype(each.dtype).name in types and each.filter("cpu")
    ]


def label(number: int) -> tuple[str, str]:
    """The name and the group of a case."""
    harness = harnesses()[number]
    return harness.fullname, harness.group_name


def case(number: int) -> Case:
    """A case with the inputs that JAX's generator draws, and JAX's results on the CPU.

    Raises Refused for a case that JAX itself cannot lower or run.
    """
    jax = import_module("jax")
    tolerances = import_module("jax._src.public_test_util").default_tolerance()
    name, group = label(number)
    harness = harnesses()[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = harness.dyn_args_maker(np.random.RandomState(SEED))
        arguments = jax.tree.map(jax.numpy.asarray, list(arguments))
        try:
            model = from_jax(harness.dyn_fun, *arguments)
            results = jax.jit(harness.dyn_fun)(*arguments)
        except Exception as error:
            raise Refused(f"jax: {type(error).__name__}: {error}") from None
    expected = [_array(each) for each in jax.tree.leaves(results)]
    allowed = [float(tolerances[each.dtype]) for each in expected]
    leaves, form = jax.tree.flatten(arguments)
    return Case(
        name,
        group,
        model.text,
        [_array(each) for each in leaves],
        expected,
        [
            OPEN if i in open_outputs(group, harness.params) else Tolerance(each, each)
            for i, each in enumerate(allowed)
        ],
        # Keys of random numbers are inputs as their bits, which are no arguments of JAX.
        exact=None
        if any(map(_is_key, leaves))
        else partial(_in_double, jax, harness.dyn_fun, form),
    )


def _in_double(jax: Any, function: Any, form: Any, inputs: Sequence[Array]) -> list[Array]:
    """The results of a function of the same floats and complex numbers in double the bits.

    Args:
        form: of the arguments, whose leaves are the inputs.
    """
    wide = {"float32": np.float64, "complex64": np.complex128}
    widened = [each.astype(wide.get(each.dtype.name, each.dtype)) for each in inputs]
    with jax.enable_x64(True):
        results = jax.jit(function)(*jax.tree.unflatten(form, widened))
        return [_array(each) for each in jax.tree.leaves(results)]


def open_outputs(group: str, params: Mapping[str, Any]) -> Sequence[int]:
    """The outputs of a case that the definition of its operation leaves open.

    They say which of several equal elements is meant: what an unstable sort moves along with its
    keys, and the indices of approximate largest elements. A stable sort of the same operands is
    another case.
    """
    if group == "approx_top_k":
        return (1,)
    if group == "sort" and not params.get("is_stable", True):
        return range(params.get("num_keys", 1), params.get("num_arrays", 1))
    return ()


def _array(value: Any) -> Array:
    """The array of a leaf; of keys of random numbers, that of their bits."""
    return np.asarray(import_module("jax").random.key_data(value) if _is_key(value) else value)


def _is_key(value: Any) -> bool:
    dtypes = import_module("jax").dtypes
    return bool(dtypes.issubdtype(value.dtype, dtypes.prng_key))
