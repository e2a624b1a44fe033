"""Cases of the bounds kernel: results within and beyond bounds, by merging and by stage
function."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ....dialects.structured import Body, Stage, Structure, extras_of
from ....ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map
from ...codelets.calls import Array
from ...reference.compare import worst_of
from ...reference.structure import merged_regions
from ..bounds import largest_ratio
from .comparing import NO_CALL, RARE, Battery, Differs

BODIES = (
    *(("mul", "sum"), ("add", "sum"), ("sub", "prod"), ("identity", "sum"), ("identity", "prod")),
    *(("identity", "max"), ("identity", "min"), ("add", None), ("identity", None), ("max", None)),
)
"""Functions with the combiner that merges their values."""

CHAINS: tuple[tuple[Stage, ...], ...] = (
    *((Stage(name),) for name in ("add", "sub", "mul", "div", "max", "min")),
    *((Stage(name),) for name in ("relu", "neg", "square", "reciprocal")),
    *((Stage(name, at=1),) for name in ("sub", "div", "max")),
    (Stage("add"), Stage("mul", reads=(0, 1)), Stage("sub", reads=(1, -1)), Stage("max")),
    (Stage("square"), Stage("mul", reads=(0, 0)), Stage("add", reads=(1, 2)), Stage("div")),
    (Stage("neg"), Stage("sub", reads=(-1, 0)), Stage("relu"), Stage("min"), Stage("add")),
)
"""The stages that follow."""

SHAPES = ((9, 70), (1, 1), (1, 255), (2, 128), (1, 257), (3, 300))
"""Rows and columns of results, around the 256 elements that the kernel handles at a time."""


def _structure(
    rows: int, columns: int, function: str, combiner: str | None, stages: tuple[Stage, ...]
) -> Structure:
    """A structure from [rows, 6] and [6, columns] to [rows, columns], with stages.

    The further operands of the stages are broadcast in all possible ways.
    """
    k = 6 if combiner else 1
    dims = Dim("m", rows), Dim("n", columns), Dim("k", k, "reduction")
    maps = [identity_map((0, 2), (rows, k)), identity_map((2, 1), (k, columns))]
    if function == "identity":
        maps = [identity_map((0, 1, 2), (rows, columns, k))]
    kinds = (
        identity_map((1,), (columns,)),
        AccessMap((AxisMap(rows, ((0, 1),)), AxisMap(1))),
        identity_map((0, 1), (rows, columns)),
        AccessMap((AxisMap(1),)),
    )
    maps += [kinds[i % len(kinds)] for i in range(extras_of(stages))]
    space = Space(dims, tuple(maps), (identity_map((0, 1), (rows, columns)),))
    return Structure(space, Body(function, combiner, (), stages))


def _numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: Any, rare: float) -> Array:
    """Numbers of several magnitudes.

    Args:
        rare: the share of rare numbers among them.
    """
    found = random.normal(size=shape) * 10.0 ** random.integers(-3, 3, shape)
    found = np.where(random.random(shape) < rare, random.choice(RARE, shape), found)
    return found.astype(dtype)


def _check(
    case: str, structure: Structure, shape: tuple[int, int], dtype: Any, seed: int, rare: float
) -> int:
    """Compare the ratio from kernels with NumPy's, for three kinds of results.

    These are results within their bounds, with one element beyond, and with rare numbers. Returns
    the number of cases.
    """
    random, kind = np.random.default_rng(seed), np.dtype(dtype)
    with np.errstate(all="ignore"):
        operands = [_numbers(random, a.shape, kind, rare) for a in structure.space.operands]
        regions = merged_regions(structure, operands, np.zeros(shape, kind))
        if regions is None:
            raise Differs(f"{case}: {NO_CALL}")
        ((_, merged),) = regions
        value, bound = (each.reshape(shape) for each in merged.bounded())
        shift = np.where(np.isfinite(bound), bound, 0.0)
        right = (value + shift * random.normal()).astype(kind)
        beyond, odd = right.copy(), right.copy()
        at = int(random.integers(value.size))
        beyond.flat[at] = (value + 1e6 * bound).astype(kind).flat[at]
        odd = np.where(random.random(shape) < 0.1, _numbers(random, shape, kind, 0.5), right)
        for i, actual in enumerate((right, beyond, odd)):
            found, wanted = largest_ratio(merged, actual), worst_of(actual, value, bound).ratio
            if found is None:
                raise Differs(f"{case}: {NO_CALL}")
            if found != wanted and not (found != found and wanted != wanted):
                raise Differs(f"{case}, results {i + 1}: ratio {found}, but NumPy has {wanted}")
    return 3


def merged_values() -> int:
    """Each way of merging, without stages, for results of each size."""
    count = 0
    for i, ((function, combiner), shape) in enumerate(product(BODIES, SHAPES)):
        dtype, rare = (np.float32, np.float64)[i % 2], (0.0, 0.02, 0.2)[i % 3]
        case = f"{combiner or 'no merging'} of {function}, {list(shape)} of {np.dtype(dtype)}"
        structure = _structure(*shape, function, combiner, ())
        count += _check(case, structure, shape, dtype, i, rare)
    return count


def stages() -> int:
    """Each function of a stage, and stages that read earlier values and further operands."""
    count = 0
    for i, (chain, (function, combiner)) in enumerate(product(CHAINS, BODIES[::3])):
        dtype, rare = (np.float32, np.float64)[i % 2], (0.0, 0.02, 0.2)[i % 3]
        shape = SHAPES[i % len(SHAPES)]
        names = ", ".join(stage.function for stage in chain)
        case = f"{combiner or 'no merging'} of {function} then {names}, {list(shape)}"
        structure = _structure(*shape, function, combiner, chain)
        count += _check(case, structure, shape, dtype, i, rare)
    return count


BATTERY: Battery = {"merged values": merged_values, "stages": stages}
