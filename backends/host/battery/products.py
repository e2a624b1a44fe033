"""Cases of sums of products: sizes around the edges of panels, chains of terms, and joined
parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from ....ir.support.number_formats import Overflow
from ...codelets.calls import Array, Scratch, address
from ...codelets.ordered import TERMS, WIDE, Sums, fused_matmul, round_through
from ...codelets.stamps import History
from ..bound_products import (
    LEAST_PANELS,
    BoundProducts,
    Groups,
    Offsets,
    Partials,
    Products,
    join_products,
)
from ..kernels.tables import LANES, ROUNDINGS
from ..load import kernels
from .comparing import ONE_UNIT, Battery, compare, filled, make, need, numbers, room, unit_count

MATRICES = Groups(batch=(), left=(0,), right=(2,), inner=(1,))
"""The axes of arrays over rows, terms and columns."""

BATCHES = Groups(batch=(0,), left=(1,), right=(3,), inner=(2,))
"""The axes of arrays over products, rows, terms and columns."""

DEPTHS = (1, 2, TERMS - 1, TERMS, TERMS + 1, 2 * TERMS, 2 * TERMS + 1, 300, 601)
"""Terms of a sum, around the ends of chains."""

LONGEST = max(DEPTHS)


def _panel() -> tuple[int, int]:
    """Rows and columns of a panel."""
    compiled = kernels("products")
    return int(compiled.ROWS), int(compiled.COLUMNS)


def _heights() -> list[int]:
    """Numbers of rows: up to one more than a panel has, and around two panels."""
    rows, _ = _panel()
    return [*range(1, rows + 2), 2 * rows - 1, 2 * rows, 2 * rows + 1]


def _some_heights() -> list[int]:
    """Numbers of rows around thirds of a panel, and around a panel."""
    rows, _ = _panel()
    third = rows // 3
    return sorted({1, third, third + 1, 2 * third, 2 * third + 1, rows, rows + 1, 3 * rows - 1})


def _widths() -> list[int]:
    """Numbers of columns: some below a vector, and 0 to 10 after each of the first vectors and
    panels.
    """
    _, columns = _panel()
    begins = {0, LANES, columns, 2 * columns}
    return sorted({begin + tail for begin in begins for tail in range(11)} - {0})


def _some_widths() -> list[int]:
    """Numbers of columns with tails that are multiplied as vectors of rows, and with one column
    more.
    """
    _, columns = _panel()
    begins = {0, columns - LANES, columns}
    tails = (0, 1, 4, 5, 9, 10)
    return sorted({begin + tail for begin in begins for tail in tails} - {0})


def _over_all(matrix: Array, axis: int) -> Array:
    """A matrix as an array over rows, terms and columns, with stride 0 along the one it lacks."""
    shape, strides = list(matrix.shape), list(matrix.strides)
    shape.insert(axis, 1)
    strides.insert(axis, 0)
    return np.lib.stride_tricks.as_strided(matrix, shape, strides)


def _arrays(x: Array, y: Array, out: Array) -> Sequence[Array]:
    """The operands and the result of a product, over rows, terms and columns."""
    rank = out.ndim
    return [_over_all(x, rank), _over_all(y, rank - 2), _over_all(out, rank - 1)]


def _sums(x: Array, y: Array, sums: Sums = WIDE) -> Array:
    """The product of two matrices, added in the machine's order."""
    total = np.zeros((len(x), y.shape[1]), np.float32)
    left, right = x.astype(np.float32), y.astype(np.float32)
    with np.errstate(all="ignore"):
        for first in range(0, x.shape[1], sums.terms):
            part, end = np.empty_like(total), first + sums.terms
            fused_matmul(left[:, first:end], right[first:end], part)
            total = part if first == 0 else total + part
            if sums.dtype is not None:
                round_through(total, np.empty(total.shape, sums.dtype), sums.overflow)
    return total


def _check(
    case: str,
    x: Array,
    y: Array,
    out: Array,
    expected: Array,
    in_units: bool = False,
    groups: Groups = MATRICES,
) -> None:
    """Multiply two matrices into an array from `room`, and compare."""
    call = BoundProducts(Offsets.of(groups, _arrays(x, y, out)))
    if in_units:
        _, _, (_, _, multiply) = call.parts
        need(case, unit_count([(multiply, ())]) > 1, ONE_UNIT)
        make([(multiply, ())], in_units=True)
    else:
        call(0)
    wanted = room(out.shape, out.dtype, out.strides, address(out) % 64)
    with np.errstate(all="ignore"):
        np.copyto(wanted, expected, casting="same_kind")
    compare(case, out, wanted)


def _sizes(rows: int, terms: int, columns: int) -> str:
    return f"{rows}x{terms} by {terms}x{columns}"


def _all_sizes(cases: Iterable[tuple[int, int, int]], rare: int = 0) -> int:
    """Products of these heights, depths and widths."""
    cases = list(cases)
    heights, depths, widths = (max(each) for each in zip(*cases, strict=True))
    x, y = numbers(1, (heights, depths), rare=rare), numbers(2, (depths, widths), rare=rare)
    sums = {depth: _sums(x[:, :depth], y[:depth]) for depth in {case[1] for case in cases}}
    for rows, terms, columns in cases:
        out = room((rows, columns), np.float32)
        expected = sums[terms][:rows, :columns]
        name = _sizes(rows, terms, columns)
        _check(name, x[:rows, :terms], y[:terms, :columns], out, expected)
    return len(cases)


def heights_and_widths() -> int:
    """Short sums: all heights with some widths, and some heights with all widths."""
    pairs = {*product(_heights(), _some_widths()), *product(_some_heights(), _widths())}
    return _all_sizes((rows, 3, columns) for rows, columns in sorted(pairs))


def long_sums() -> int:
    """Sums around the ends of chains, with heights and widths around thirds of panels and tails."""
    return _all_sizes(
        (rows, terms, columns)
        for i, terms in enumerate(DEPTHS)
        for j, rows in enumerate(_some_heights())
        for k, columns in enumerate(_some_widths())
        # A quarter of the pairs of a height and a width per depth; the next depths take the others.
        if (i + j + k) % 4 == 0
    )


def rare_numbers() -> int:
    """Zeros of both signs, infinities, NaN, subnormals and the largest numbers."""
    return _all_sizes(product(_some_heights(), (5, TERMS + 2), (7, LANES + 4, 2 * LANES + 3)), 60)


def added_partials() -> int:
    """Partial sums that are added into the first one, as in split reductions."""
    count = 0
    rows, columns = _panel()
    heights = 1, rows // 3 + 1, rows, 3 * rows - 1
    widths = 1, 9, LANES, LANES + 4, columns + 1, columns + 4, columns + 9
    for partials, terms in ((2, 3), (3, TERMS), (2, TERMS + 1), (3, 300)):
        shape = partials, max(heights), terms, max(widths)
        x, y = numbers(terms, shape[:3]), numbers(partials, (partials, *shape[2:]))
        sums = [_sums(x[i], y[i]) for i in range(partials)]
        with np.errstate(all="ignore"):
            whole = sums[0]
            for each in sums[1:]:
                whole = whole + each
        for height, width in product(heights, widths):
            case = f"{partials} partials of {_sizes(height, terms, width)}"
            out = room((partials, height, width), np.float32)
            wanted = room(out.shape, out.dtype)
            wanted[0] = whole[:height, :width]
            given = x[:, :height], y[:, :, :width], out
            call = BoundProducts(Offsets.of(BATCHES, _arrays(*given)))
            places = Partials(address(out), out.strides[0], ((1, partials),))
            need(case, call.can_add_up(places))
            call.add_up(places)
            call(0)
            compare(case, out, wanted)
            count += 1
    return count


def _known(x: Array, y: Array, out: Array, history: History, scratch: Scratch) -> Products:
    """A call whose operands are variables that have been written completely."""
    view = (BATCHES if out.ndim == 3 else MATRICES), _arrays(x, y, out)
    return Products(view, view, history.stamps, scratch)


def _history() -> History:
    """The history of two variables that share no bytes and have been written completely."""
    history = History([np.array([i]) for i in range(2)], [True, True])
    for stamp in history.stamps:
        stamp.write(True)
    return history


def kept_operands() -> int:
    """Operands that stay packed from run to run, until one is written."""
    rows, columns = _panel()
    sizes = [(1, 5, 1), (rows + 1, TERMS + 3, LANES + 4), (2 * rows, 7, columns + 9)]
    sizes += [(rows // 3, 300, columns + 1), (3 * rows - 1, 9, 2 * columns)]
    for height, terms, width in sizes:
        history, case = _history(), f"kept {_sizes(height, terms, width)}"
        x, y = numbers(3, (2, height, terms)), numbers(4, (2, terms, width))
        out = room((2, height, width), np.float32)
        call = _known(x, y, out, history, Scratch())
        for iteration, written in enumerate((None, None, 0, 1, None)):
            if written is not None:
                changed = (x, y)[written]
                changed += np.float32(1)
                history.stamps[written].write(True)
            out[...] = 0
            wanted = room(out.shape, out.dtype)
            for i in range(2):
                wanted[i] = _sums(x[i], y[i])
            call()
            compare(f"{case}, run {iteration + 1}", out, wanted)
    return 5 * len(sizes)


def joined_parts() -> int:
    """Parts that share an operand and are multiplied as one product."""
    rows, columns = _panel()
    count = 0
    cuts_of_rows = ((rows - 1,), (2, rows + 3), (rows // 3, 2 * rows))
    cuts_of_columns = ((3,), (LANES + 1,), (columns - 2, columns + 5))
    for terms, row_cuts, column_cuts in product((4, 300), cuts_of_rows, cuts_of_columns):
        height, width = max(row_cuts) + 5, max(column_cuts) + 9
        x, y = numbers(5, (height, terms)), numbers(6, (terms, width))
        # The results are further apart than the operands' rows and columns are.
        gap = 3
        shape = height + gap * len(row_cuts), width + gap * len(column_cuts)
        out, wanted = room(shape, np.float32), room(shape, np.float32)
        history, scratch, sums = _history(), Scratch(), _sums(x, y)
        parts: list[Products] = []
        for i, row in enumerate(_slices(row_cuts, height)):
            for j, column in enumerate(_slices(column_cuts, width)):
                place = _moved(row, gap * i), _moved(column, gap * j)
                wanted[place] = sums[row, column]
                parts.append(_known(x[row], y[:, column], out[place], history, scratch))
        calls = join_products([(part, ()) for part in parts])
        cuts = f"rows cut at {list(row_cuts)} and columns at {list(column_cuts)}"
        case = f"{_sizes(height, terms, width)}, {cuts}"
        need(case, len(calls) == 1)
        for _ in range(2):
            make(calls)
            compare(case, out, wanted)
        count += 1
    return count


def _slices(cuts: Sequence[int], end: int) -> list[slice]:
    return [slice(a, b) for a, b in zip((0, *cuts), (*cuts, end), strict=True)]


def _moved(part: slice, by: int) -> slice:
    return slice(part.start + by, part.stop + by)


def places_and_types() -> int:
    """float16 operands and results, with strides, reversed, and not aligned to 64 bytes."""
    rows, columns = _panel()
    f, h = np.dtype(np.float32), np.dtype(np.float16)
    count = 0
    kinds = (f, f, f), (h, f, f), (f, h, f), (f, f, h), (h, h, h)
    places = "contiguous", "transposed", "every third", "reversed", "shifted"
    for (height, terms, width), place, dtypes in product(
        ((rows + 2, 5, columns + 4), (rows - 1, TERMS + 1, LANES + 9)), places, kinds
    ):
        x, y = numbers(7, (height, terms), dtypes[0]), numbers(8, (terms, width), dtypes[1])
        out = _at(np.zeros((height, width), dtypes[2]), place)
        expected, case = _sums(x, y), f"{_sizes(height, terms, width)}, {place}, {dtypes[0]} by "
        _check(f"{case}{dtypes[1]} in {dtypes[2]}", _at(x, place), _at(y, place), out, expected)
        count += 1
    return count


def narrow_sums() -> int:
    """Sums that are rounded to float16 after each chain of terms, some of which are too large."""
    rows, columns = _panel()
    count = 0
    sizes = (
        (rows + 2, 1, columns + 4),
        (rows - 1, 37, LANES + 9),
        (rows, 300, LANES + 1),
        (3, 48, 9),
    )
    for (height, terms, width), rule, length in product(sizes, Overflow, (1, 5, 16, TERMS)):
        x, y = (
            numbers(seed, shape, np.float16)
            for seed, shape in ((13, (height, terms)), (14, (terms, width)))
        )
        x[0, : terms // 2] *= 2.0**14
        sums = Sums(length, np.dtype(np.float16), rule)
        groups = replace(MATRICES, chain_terms=length, rounding=ROUNDINGS[rule.name])
        for dtype in (np.float16, np.float32):
            out = room((height, width), dtype)
            case = f"{_sizes(height, terms, width)}, rounded after {length}, {rule.name}"
            _check(case, x, y, out, _sums(x, y, sums), groups=groups)
            count += 1
    return count


def _at(values: Array, place: str) -> Array:
    """A copy of a matrix at a given kind of place."""
    unit, (height, width) = values.itemsize, values.shape
    strides = {
        "contiguous": (width * unit, unit),
        "transposed": (unit, height * unit),
        "every third": (3 * width * unit, 3 * unit),
        "reversed": (-width * unit, -unit),
        "shifted": (width * unit + unit, unit),
    }[place]
    return filled(values, strides, unit if place == "shifted" else 0)


COLUMN_RUNS = Groups(batch=(), left=(0,), right=(2, 3), inner=(1,))
"""The axes of arrays over rows, terms, runs of columns, and columns of a run."""


def short_runs() -> int:
    """Columns in runs of some length, with a gap of two elements after each."""
    rows, columns = _panel()
    count = 0
    lengths = 1, 2, 3, 4, 5, 7, LANES - 1, LANES, LANES + 1, columns + 3
    for length, dtype in product(lengths, (np.float32, np.float16)):
        height, terms, runs = rows - 1, 5, -(-(columns + 9) // length)
        x, y = numbers(11, (height, terms), dtype), numbers(12, (terms, runs, length), dtype)
        expected = _sums(x, y.reshape(terms, -1)).reshape(height, runs, length)
        unit = y.itemsize
        strides = (length + 2) * unit * runs, (length + 2) * unit, unit
        y, out = filled(y, strides), room((height, runs, length), dtype, strides)
        wanted = room(out.shape, dtype, strides)
        with np.errstate(all="ignore"):
            np.copyto(wanted, expected, casting="same_kind")
        left = _over_all(_over_all(x, 2), 3)
        BoundProducts(Offsets.of(COLUMN_RUNS, (left, y[None], _over_all(out, 1))))(0)
        compare(f"{_sizes(height, terms, runs * length)} in runs of {length}", out, wanted)
        count += 1
    return count


def many_panels() -> int:
    """So many rows that they are cut into blocks, in units that threads share, in any order."""
    rows, columns = _panel()
    sizes = [(2 * LEAST_PANELS * rows + 1, 400, columns + 9), (2 * LEAST_PANELS * rows, 800, 1)]
    for height, terms, width in sizes:
        x, y = numbers(9, (height, terms)), numbers(10, (terms, width))
        expected, case = _sums(x, y), _sizes(height, terms, width)
        for in_units in (False, True):
            out = room((height, width), np.float32)
            _check(case + ", by units" * in_units, x, y, out, expected, in_units)
    return 2 * len(sizes)


BATTERY: Battery = {
    "heights and widths": heights_and_widths,
    "long sums": long_sums,
    "rare numbers": rare_numbers,
    "added partials": added_partials,
    "kept operands": kept_operands,
    "joined parts": joined_parts,
    "places and types": places_and_types,
    "short runs": short_runs,
    "many panels": many_panels,
    "narrow sums": narrow_sums,
}
