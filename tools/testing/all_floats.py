"""Tests each function that abele computes by its own instruction sequence on every float32.

    python -m abele.tools.testing.all_floats --seconds 300 [NAME ...]

A result must be within ULPS units in the last place of the float64 result, and compiled kernels
must give the bytes that NumPy gives. Blocks of floats come in random order, so many short runs
cover as much as a long run. A function with two operands gets random values for the second operand.
Exits with status 1 if a result is wrong.
"""

from __future__ import annotations

from time import monotonic
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ...backends.codelets.functions import PROGRAMS, SEQUENCES
from ...backends.codelets.scalar import SCALAR_FUNCTIONS
from ...backends.host.chains import points_call
from ...backends.host.switch import is_wanted
from ...dialects.structured import Body
from ...ir.support.errors import InputError
from ..views.script import run_script
from ..views.user_errors import CHECK_FAILED

Floats = NDArray[np.float32]

ULPS = 0.51
"""The largest allowed error of a sequence, in units of the last place."""

BLOCK = 1 << 20
"""Number of floats with consecutive bit patterns that are tested at a time."""


def wrong(name: str, x: Floats, y: Floats) -> Floats:
    """The operands whose result is too far from the float64 result: [wrong results, operands].

    Args:
        y: the second operands, for a function that has two.
    """
    function = SCALAR_FUNCTIONS[name]
    operands = (x, y)[: SEQUENCES[name].operands]
    given = operands[: function.arity]
    parameters = tuple(float(each.flat[0]) for each in operands[function.arity :])
    found = function.apply(parameters, *given)
    with np.errstate(all="ignore"):
        exact = function.apply(parameters, *(each.astype(np.float64) for each in given))
        rounded = exact.astype(np.float32)
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        is_near = np.abs(found.astype(np.float64) - exact) <= ULPS * unit
    # Near the end of the range, and where float64 is itself not exact, one more float is fine.
    is_near |= np.isinf(rounded) & (np.nextafter(rounded, np.float32(0)) == found)
    is_same = (found == rounded) & (np.signbit(found) == np.signbit(rounded))
    is_same |= np.isnan(found) & np.isnan(rounded)
    is_near &= np.signbit(found) == np.signbit(rounded)
    return np.stack([each[~(is_near | is_same)] for each in operands], -1)


def differing(name: str, x: Floats, y: Floats) -> Floats:
    """The operands for which a kernel gives other bytes than NumPy: [results, operands]."""
    operands = (x, y)[: SEQUENCES[name].operands]
    arity = SCALAR_FUNCTIONS[name].arity
    parameters = tuple(float(each.flat[0]) for each in operands[arity:])
    body = Body(name, None, parameters)
    made = np.empty_like(x)
    call = points_call(body, [operands[:arity]], (), (), made)
    assert call is not None
    function, arguments = call
    function(*arguments)
    need = np.empty_like(x)
    second = (np.array(each, np.float32) for each in parameters)
    PROGRAMS[name].run((*operands[:arity], *second), need)
    same = (made.view(np.int32) == need.view(np.int32)) | (np.isnan(made) & np.isnan(need))
    return np.stack([each[~same] for each in operands], -1)


def block(first: int, rng: np.random.Generator, step: int = 1) -> tuple[Floats, Floats]:
    """BLOCK floats whose bits count up from `first` in steps of `step`, and BLOCK random floats."""
    bits = first + step * np.arange(BLOCK, dtype=np.int64)
    return (
        bits.astype(np.uint32).view(np.float32),
        rng.integers(0, 1 << 32, BLOCK, np.uint32).view(np.float32),
    )


def all_floats(
    names: Annotated[list[str] | None, typer.Argument(help="Functions; default: all.")] = None,
    seconds: Annotated[float, typer.Option(min=0, help="When to stop.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="The order of the blocks.")] = 0,
) -> None:
    """Test floats until the time is over or none is left.

    Exits with status 1 after a wrong result.
    """
    names = names or [name for name in SEQUENCES if name in SCALAR_FUNCTIONS]
    for name in names:
        if name not in SEQUENCES:
            raise InputError(
                f"no function {name!r} has a sequence; there are {', '.join(SEQUENCES)}"
            )
    rng = np.random.default_rng(seed)
    each = (1 << 32) // BLOCK
    end, done, failed = monotonic() + seconds, 0, 0
    for at in map(int, rng.permutation(len(names) * each)):
        if monotonic() > end:
            break
        function, first = divmod(at, each)
        name = names[function]
        x, y = block(first * BLOCK, rng)
        checks: dict[str, Any] = {"too far from float64": wrong}
        if is_wanted():
            checks["other bytes in a kernel"] = differing
        for problem, check in checks.items():
            found = check(name, x, y)
            if len(found):
                failed += 1
                print(f"{name}: {problem} for {len(found)} operands, such as {found[0].tolist()}")
        done += 1
    print(f"{done} of {len(names) * each} blocks of {BLOCK} floats, {failed} wrong")
    if failed:
        raise typer.Exit(CHECK_FAILED)


if __name__ == "__main__":
    run_script(all_floats)
