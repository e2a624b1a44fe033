"""Cases of functions with their own sequence: numbers of all magnitudes, and rare numbers."""

from __future__ import annotations

import numpy as np

from ....dialects.scalar_functions import chain_operands
from ....dialects.structured import Body, Stage
from ...codelets.calls import Array
from ...codelets.scalar import SCALAR_FUNCTIONS, ScalarFunction
from ..kernels.tables import CHAIN_VECTORS, LANES
from .chains import F32, check
from .comparing import RARE, Battery, filled, numbers, room

PARAMETERS = {"power": ((0.5,), (3.0,), (-2.5,), (0.0,)), "leaky_relu": ((0.1,), (-2.0,))}
"""The parameters to try, by function. Other functions have none."""

EDGES = (0.5, 1.0, 1.5, 2.0, 88.73, 88.72, -87.4, -103.98, 0.625, 1e-7, 1e10, 1.5707964, 1e38)
"""Numbers at which sequences take another branch, or results overflow or vanish."""


def _functions() -> list[ScalarFunction]:
    """All functions that kernels compute by a sequence."""
    return [each for each in SCALAR_FUNCTIONS.values() if each.sequence]


def _values(seed: int, count: int) -> Array:
    """Rare numbers, edges of both signs, and numbers of all magnitudes."""
    own = np.array([*RARE, *EDGES, *(-each for each in EDGES)], np.float32)
    random = np.random.default_rng(seed)
    more = max(count - len(own), 0)
    bits = random.integers(0, 1 << 32, more // 2, np.uint32).view(np.float32)
    usual = numbers(seed, (more - more // 2,)) * random.choice((0.1, 1, 10, 1000), more - more // 2)
    found = np.concatenate([own, bits, usual.astype(np.float32)])
    random.shuffle(found)
    return found[:count]


def values_of_all_sizes() -> int:
    """Each function as a body, of 600 numbers in rows of several lengths."""
    count = 0
    for function in _functions():
        for parameters in PARAMETERS.get(function.name, ((),)):
            rows, length = (CHAIN_VECTORS + 1, 3 * LANES + 11) if count % 2 else (1, 600)
            operands = [
                filled(_values(count + i, rows * length).reshape(rows, length))
                for i in range(function.arity)
            ]
            case = f"{function.name} {list(parameters)} of {rows} rows of {length}"
            body = Body(function.name, None, parameters)
            check(case, body, [operands], room((rows, length), F32))
            count += 1
    return count


def stages() -> int:
    """Each function as a stage, after a compiled body, and with a float16 result."""
    count = 0
    for function in _functions():
        for parameters in PARAMETERS.get(function.name, ((),)):
            length = (1, LANES - 1, LANES + 1, 40)[count % 4]
            shape = CHAIN_VECTORS - 1, length
            a, b, c = (numbers(70 + i + count, shape) for i in range(3))
            for at in chain_operands(function.name):
                then = Stage(function.name, parameters, at=at), Stage("mul")
                extras = [np.abs(b)] * (function.arity - 1) + [c]
                dtype = np.float16 if (at + count) % 2 else np.float32
                case = f"{function.name} {list(parameters)} at {at} in {np.dtype(dtype)}"
                check(case, Body("add"), [(a, b)], room(shape, dtype), then, extras)
            count += 1
    return count


BATTERY: Battery = {"values of all sizes": values_of_all_sizes, "stages": stages}
