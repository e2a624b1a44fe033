"""Users' codelets as functions that numba compiles, beside those for NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from .calls import Array
from .users import UsersCodelet, machine_dtype


def has_numba() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


@lru_cache(maxsize=256)
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled on its first call with arguments of some types.

    Nothing is contracted or reordered, so that it can give the bytes of NumPy.
    """
    # Numba takes half a second, and few codelets need it.
    from numba import njit  # noqa: PLC0415

    compiled: Callable[..., Any] = njit(error_model="numpy")(function)
    return compiled


def by_twin(
    known: UsersCodelet,
    arrays: Sequence[Array],
    parameters: Sequence[float],
    dtypes: Sequence[np.dtype[Any]],
) -> list[Array]:
    """The results of a codelet by its function for numba, each with a leading axis of cells.

    Raises InputError if it fails.

    Args:
        dtypes: of the results; narrower floats are left as float32.
    """
    assert known.numba is not None
    named = known.signature.named(parameters)
    sizes: dict[int, int] = {}
    for access, array in zip(known.signature.reads.values(), arrays, strict=True):
        sizes |= dict(zip(known.signature.whole_of(access), array.shape[1:], strict=True))
    for d, dim in enumerate(known.signature.dims):
        if isinstance(dim.size, int) or dim.size in named:
            sizes.setdefault(d, int(named.get(str(dim.size), dim.size or 0)))
    made = [
        np.zeros(
            (len(arrays[0]), *(sizes[d] for d in known.signature.whole_of(access))),
            machine_dtype(dtype),
        )
        for access, dtype in zip(known.signature.writes.values(), dtypes, strict=True)
    ]
    try:
        _compiled(known.numba)(*arrays, *made, *named.values())
    except Exception as error:
        reason = str(error).strip().splitlines() or [""]
        raise known.error(f"its function for numba: {type(error).__name__}: {reason[0]}") from error
    return made
