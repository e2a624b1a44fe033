"""Cases of roundings, and of functions with their own sequence: numbers of all magnitudes, and rare
numbers."""

from __future__ import annotations

from itertools import product

import numpy as np

from ....dialects.scalar_functions import BY_WORD, STOCHASTIC, chain_operands
from ....dialects.structured import Body, Stage
from ...codelets.calls import Array
from ...codelets.scalar import SCALAR_FUNCTIONS, ScalarFunction
from ..chains import ROUNDING_FUNCTIONS
from ..kernels.tables import BY_RULE, CHAIN_VECTORS, LANES, ROUNDED_TO
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


def roundings() -> int:
    """Each rounding as a body and as a stage, of numbers around those of float16 and beyond."""
    count = 0
    for name, rule in product(ROUNDING_FUNCTIONS, range(len(BY_RULE))):
        key = (float(KEYS[rule]),) if name == STOCHASTIC else ()
        parameters = (*key, *ROUNDED_TO, float(rule))
        rows, length = (CHAIN_VECTORS + 1, 3 * LANES + 11) if rule % 2 else (1, 2400)
        shape = rows, length
        values = filled(_near_halves(count, rows * length).reshape(shape))
        others = [filled(each) for each in _others(name, count, shape)]
        case = f"{name} {list(parameters)} of {rows} rows of {length}"
        check(case, Body(name, None, parameters), [[values, *others]], room(shape, F32))
        saved = Stage("mul", (), 0, (1, 2))
        cast = Stage("identity", element="f16")
        tail = ((saved, cast), (cast, saved), (cast,))[rule]
        then = Stage("scale", (1.1,)), Stage(name, parameters), *tail
        dtype = np.float32 if cast is tail[0] and len(tail) > 1 else np.float16
        check(
            f"{case} behind others", Body("identity"), [[values]], room(shape, dtype), then, others
        )
        count += 1
    return count


KEYS = (0, 0x7FC00001, 0xFFFFFFFF)
"""The keys to try. One would be a NaN as a float."""


def _near_halves(seed: int, count: int) -> Array:
    """Numbers of float16, numbers halfway between them, and all of _values."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 1 << 16, count, np.uint16)
    halves = codes.view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        between = (halves + (codes + np.uint16(1)).view(np.float16).astype(np.float32)) / 2
        near = halves * np.float32(1 + 2e-7)
    return random.permuted(np.concatenate([halves, between, near, _values(seed, count)]))[:count]


def _others(name: str, seed: int, shape: tuple[int, ...]) -> list[Array]:
    """What a rounding reads besides its values: words, or what random words are made of."""
    random = np.random.default_rng(seed)
    if name == BY_WORD:
        words = random.integers(0, 1 << 32, shape, np.uint32)
        words.reshape(-1)[::5] = 0
        words.reshape(-1)[::7] = 0xFFFFFFFF
        return [words]
    if name != STOCHASTIC:
        return []
    whole = [random.integers(0, 1 << 24, shape).astype(np.float32) for _ in range(4)]
    for i, each in enumerate(whole):
        with np.errstate(all="ignore"):
            odd = _values(seed + i, each.size // 3) * np.float32(2.0 ** (20 * i))
        each.reshape(-1)[::3][: len(odd)] = odd
    whole[2] = np.broadcast_to(whole[2][:1, :1], shape)
    return whole


BATTERY: Battery = {
    "values of all sizes": values_of_all_sizes,
    "stages": stages,
    "roundings": roundings,
}
