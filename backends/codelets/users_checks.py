"""Checks of a user's codelet on samples, when it is loaded.

A codelet has to be a function of each cell by itself: machines compute cells in any order and in
any number. abele goes by the error bound and the price that it states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from math import isfinite
from typing import Any

import numpy as np

from ...dialects.codelets import CLASSES, SIGNATURES
from ...dialects.dtypes import dtype_named
from ...ir.support.errors import InputError
from ...ir.support.number_kinds import is_floating
from ...ir.upstream import VerifyException
from .calls import Array
from .conversion import FLOAT32, FLOAT64, compute_dtype, converted, float_limits
from .users import UsersCodelet, machine_dtype
from .users_twin import by_twin, has_numba

INT32 = np.dtype(np.int32)

CELLS = 7
"""The cells of a sample."""

SAMPLE_SIZES = (4, 3, 1, 6, 8, 2, 5, 16, 7, 32, 64)
"""The sizes that samples give to whole dimensions whose sizes shapes decide."""

MOST_SAMPLES = 4
"""The most sizes that a codelet is checked with."""

MOST_TRIED = 1000
"""The most sizes that are tried until so many meet the codelet's `needs`."""

COUNTS = (1, 2, 3, 4, 6, 7, 8, 16, 100, 1000, 100_000)
"""The numbers of cells whose prices are compared."""

MOVED = 2.0**-8
"""How far the operands of a sample are moved to look at the sensitivity."""


def check_codelet(codelet: UsersCodelet, owner: str) -> None:
    """Raise InputError with the line of a codelet that does not keep what it states.

    Args:
        owner: the file, for messages.
    """
    try:
        _check(codelet)
    except InputError as error:
        _, _, reason = str(error).rpartition(f"codelet {codelet.name!r}: ")
        raise InputError(f"{owner}:{codelet.line}: codelet {codelet.name!r}: {reason}") from error


def _check(codelet: UsersCodelet) -> None:
    signature = codelet.signature
    parameters = tuple(map(float, signature.parameters.values()))
    sizes = list(_sizes(codelet, parameters))
    if not sizes:
        raise codelet.error(
            f"no sample meets `needs`; tried sizes {', '.join(map(str, SAMPLE_SIZES))}"
        )
    _check_gradient(codelet)
    for each in sizes:
        _check_price(codelet, each, parameters)
    kinds = (FLOAT32, INT32) if "numbers" in signature.types.values() else (FLOAT32,)
    for (seed, each), numbers in product(enumerate(sizes), kinds):
        arrays = _arrays(codelet, each, np.random.default_rng(seed), numbers)
        _check_cells(codelet, arrays, parameters, seed)
        _check_bound(codelet, arrays, parameters)
        _check_sensitivity(codelet, arrays, parameters, seed)
        _check_twin(codelet, arrays, parameters)
        # Other operands must not stop a run either.
        for value in (0.0, np.inf, np.nan):
            codelet.apply([_filled(each, value) for each in arrays], parameters)


def _sizes(codelet: UsersCodelet, parameters: Sequence[float]) -> Iterator[tuple[int, ...]]:
    """Sizes of all dimensions for a few samples; those along which cells lie are CELLS or 1."""
    signature = codelet.signature
    given = signature.named(parameters)
    number = {dim.name: d for d, dim in enumerate(signature.dims)}
    free = [
        d
        for d, dim in enumerate(signature.dims)
        if dim.whole and not isinstance(dim.size, int) and dim.size not in {*given, *number}
    ]
    made = 0
    for chosen in islice(product(SAMPLE_SIZES, repeat=len(free)), MOST_TRIED):
        if made == MOST_SAMPLES:
            return
        rest = iter(chosen)
        found = [
            dim.size
            if isinstance(dim.size, int)
            else int(given[dim.size])
            if dim.size in given
            else next(rest)
            if d in free
            else 1
            for d, dim in enumerate(signature.dims)
        ]
        for d, dim in enumerate(signature.dims):
            if str(dim.size) in number:
                found[d] = found[number[str(dim.size)]]
        try:
            signature.check_needs(found, given)
        except VerifyException:
            continue
        made += 1
        yield tuple(found)


def _arrays(
    codelet: UsersCodelet,
    sizes: Sequence[int],
    random: np.random.Generator,
    numbers: np.dtype[Any],
) -> list[Array]:
    """Operands of a sample, in the dtypes in which the machine gives them to the codelet.

    Args:
        numbers: the dtype of reads that may be floats or integers.
    """
    signature, made = codelet.signature, list[Array]()
    for name, access in signature.reads.items():
        shape = (CELLS, *(sizes[d] for d in signature.whole_of(access)))
        kind = signature.types.get(name, "floats")
        of_class = dict(zip(CLASSES, (FLOAT32, INT32, numbers), strict=True))
        dtype = of_class[kind] if kind in of_class else dtype_named(kind)
        own = codelet.samples.get(name)
        if own is not None:
            try:
                values = np.asarray(own(random, shape), np.float64)
            except Exception as error:
                raise codelet.error(f"sample of {name}: {type(error).__name__}: {error}") from error
            if values.shape != shape:
                raise codelet.error(f"sample of {name} has shape {values.shape}; need {shape}")
        elif is_floating(dtype):
            values = random.normal(size=shape) * 2
        else:
            values = random.integers(0, 2 if dtype.kind == "b" else 4, shape)
        is_narrow = is_floating(dtype) and dtype.itemsize < FLOAT32.itemsize
        values = converted(values, dtype) if is_narrow else values
        made.append(converted(values, compute_dtype(dtype) if is_floating(dtype) else dtype))
    return made


def _filled(array: Array, value: float) -> Array:
    if not is_floating(array.dtype):
        return np.zeros_like(array)
    return np.full_like(array, value)


def _check_cells(
    codelet: UsersCodelet, arrays: Sequence[Array], parameters: Sequence[float], seed: int
) -> None:
    """Check that there is no state, and that each cell is computed by itself."""
    found = codelet.apply(arrays, parameters)
    kept = [each.copy() for each in found]
    others = [np.ascontiguousarray(each[::-1]) for each in arrays]
    codelet.apply(others, parameters)
    if _differs(codelet.apply(arrays, parameters), kept):
        raise codelet.error(
            "gives other results when it is called again with the same cells; need a function "
            "without a state and without random numbers"
        )
    order = np.random.default_rng(seed).permutation(CELLS)
    permuted = codelet.apply([np.ascontiguousarray(each[order]) for each in arrays], parameters)
    if _differs(permuted, [each[order] for each in kept]):
        raise codelet.error(
            "permuted cells do not give permuted results: a cell reads what its map does not give "
            "it; need cells that are computed independently"
        )
    for i in range(CELLS):
        alone = codelet.apply([each[i : i + 1].copy() for each in arrays], parameters)
        if _differs(alone, [each[i : i + 1] for each in kept]):
            raise codelet.error(
                "one cell alone does not give the same bytes as among others: a cell reads what "
                "its map does not give it, or its sums depend on the number of cells"
            )


def _differs(found: Sequence[Array], wanted: Sequence[Array]) -> bool:
    """Whether results differ in a bit or in a type."""
    return any(
        a.dtype != b.dtype or a.tobytes() != b.tobytes() for a, b in zip(found, wanted, strict=True)
    )


def _check_bound(
    codelet: UsersCodelet, arrays: Sequence[Array], parameters: Sequence[float]
) -> None:
    """Check that the error in float32 is within the bound, by the same function in float64."""
    found = codelet.apply(arrays, parameters)
    wide = [each.astype(FLOAT64) if is_floating(each.dtype) else each.copy() for each in arrays]
    exact = codelet.apply(wide, parameters)
    limits = float_limits(FLOAT32)
    for name, each, want in zip(codelet.signature.writes, found, exact, strict=True):
        if not is_floating(each.dtype):
            if not np.array_equal(each, want):
                raise codelet.error(f"{name} is not the same when it is computed in float64")
            continue
        if want.dtype != FLOAT64 and any(is_floating(a.dtype) for a in arrays):
            raise codelet.error(
                f"{name} is {want.dtype} for operands of float64; need a function that computes in "
                "the type of its operands"
            )
        bound = codelet.bound.error(wide, want, limits.roundoff) + limits.smallest_normal
        with np.errstate(invalid="ignore"):
            error = np.abs(each.astype(FLOAT64) - want)
        kind = (np.isnan(each) == np.isnan(want)) & (np.isinf(each) == np.isinf(want))
        bad = ~kind | (np.isfinite(want) & (error > bound * (1 + 2.0**-20)))
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            raise codelet.error(
                f"{name} is {each[at]:.9g} in float32 and {want[at]:.9g} in float64, which is "
                f"further than its bound of {bound[at]:.3g}; need a larger bound"
            )


def _check_sensitivity(
    codelet: UsersCodelet, arrays: Sequence[Array], parameters: Sequence[float], seed: int
) -> None:
    if codelet.sensitivity is None:
        return
    random = np.random.default_rng(seed)
    floats = [is_floating(each.dtype) for each in arrays]
    wide = [each.astype(FLOAT64) if f else each for each, f in zip(arrays, floats, strict=True)]
    moved = [
        each + random.choice((-MOVED, MOVED), each.shape) if f else each
        for each, f in zip(wide, floats, strict=True)
    ]
    first = codelet.apply(wide, parameters)
    second = codelet.apply(moved, parameters)
    for name, a, b in zip(codelet.signature.writes, first, second, strict=True):
        if is_floating(a.dtype):
            with np.errstate(invalid="ignore"):
                most = np.nanmax(np.abs(a - b), initial=0.0) / MOVED
            if most > codelet.sensitivity * (1 + 2.0**-20):
                raise codelet.error(
                    f"{name} moves by {most:.3g} of what operands move; the sensitivity is "
                    f"{codelet.sensitivity}"
                )


def _check_twin(
    codelet: UsersCodelet, arrays: Sequence[Array], parameters: Sequence[float]
) -> None:
    """Check that the function for numba gives the same bytes."""
    if codelet.numba is None or not has_numba():
        return
    want = codelet.apply(arrays, parameters)
    dtypes = [machine_dtype(each.dtype) for each in want]
    if any(is_floating(each.dtype) for each in arrays):
        # Floats of a wider type are rounded to the type of the result.
        dtypes = [FLOAT32 if is_floating(each) else each for each in dtypes]
    found = by_twin(codelet, arrays, parameters, dtypes)
    for name, each, other in zip(codelet.signature.writes, found, want, strict=True):
        rounded = converted(other, each.dtype)
        differs = each.view(f"u{each.itemsize}") != rounded.view(f"u{each.itemsize}")
        differs &= ~((each != each) & (rounded != rounded))
        if differs.any():
            at = tuple(int(i) for i in np.argwhere(differs)[0])
            raise codelet.error(
                f"{name} is {each[at]!r} by its function for numba, and {rounded[at]!r} by that "
                "for NumPy; need the same bytes"
            )


def _check_gradient(codelet: UsersCodelet) -> None:
    """Check that a gradient is a function, or a loaded codelet that reads and writes the right
    number of tensors."""
    gradient, signature = codelet.gradient, codelet.signature
    if not isinstance(gradient, UsersCodelet):
        if gradient is not None and not callable(gradient):
            raise codelet.error(f"gradient {gradient!r}; need a codelet or a function")
        return
    if SIGNATURES.get(gradient.name) is not gradient.signature:
        raise codelet.error(
            f"its gradient, codelet {gradient.name!r}, is not loaded; --load its file"
        )
    results = [name for name in signature.writes if signature.may_be_float(name)]
    reads = [name for name in signature.reads if signature.may_be_float(name)]
    given = len(gradient.signature.reads), len(gradient.signature.writes)
    need = len(signature.reads) + len(results), len(reads)
    if given != need:
        raise codelet.error(
            f"its gradient, codelet {gradient.name!r}, reads {given[0]} tensors and writes "
            f"{given[1]}; need {need[0]} and {need[1]}: all reads and the gradients of "
            f"{', '.join(results)}, and the gradients of {', '.join(reads)}"
        )


def _check_price(codelet: UsersCodelet, sizes: Sequence[int], parameters: Sequence[float]) -> None:
    """Check that the price is positive, finite and not less for more cells."""
    dims = codelet.signature.dims
    named = {dim.name: n for dim, n in zip(dims, sizes, strict=True) if dim.whole}
    before, fewer = 0.0, 0
    for count in COUNTS:
        price = codelet.price(count, named, parameters)
        assert isfinite(price)
        if price < before:
            raise codelet.error(
                f"cycles of {count} cells are {price:g}, fewer than {before:g} of {fewer} cells; "
                "need a price that does not fall"
            )
        before, fewer = price, count
