"""Reads rows of speed-ups: how many times as long the dense product takes as the sparse one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isfinite

from ....backends.target import PRESETS
from .cases import SparseProduct, SpeedUp
from .measured import Measurement, Skipped
from .units import Unclear

COLUMNS = ("block", "density", "m", "n", "speedup")
"""The columns of a file of speed-ups: of a square matrix with m rows, and n dense columns."""

FAMILY = "spmm"


def read_speed_ups(
    table: Sequence[Mapping[str, str]],
) -> tuple[list[Measurement], list[Skipped]]:
    """The rows that can be priced, and the others.

    They were measured on a Bow with float16, and static patterns (arXiv 2303.16999). A row without
    a speed-up is of a product that did not fit on the chip.
    """
    found: list[Measurement] = []
    skipped: list[Skipped] = []
    for number, row in enumerate(table, start=1):
        name = f"b={row['block']} d={row['density']} m={row['m']} n={row['n']}"
        try:
            found.append(Measurement(name, FAMILY, _case(row), PRESETS["bow"], _measured(row)))
        except Unclear as error:
            skipped.append(Skipped(f"row {number}: {name}", FAMILY, str(error)))
    return found, skipped


def _case(row: Mapping[str, str]) -> SpeedUp:
    sizes: list[int] = []
    for column in ("block", "m", "n"):
        text = row[column].strip()
        if not text.isdecimal() or not int(text):
            raise Unclear(f"{column} {text!r}; need a positive integer")
        sizes.append(int(text))
    block, m, n = sizes
    if m % block:
        raise Unclear(f"m {m} in blocks of {block}; need a multiple")
    try:
        density = float(Fraction(row["density"].strip()))
    except (ValueError, ZeroDivisionError, OverflowError):
        density = 0.0
    if not 0 < density <= 1:
        raise Unclear(f"density {row['density']!r}; need a number above 0, at most 1")
    product = SparseProduct(m, m, n, block, density, False, "float16", "float32")
    return SpeedUp(product)


def _measured(row: Mapping[str, str]) -> float:
    text = row["speedup"].strip()
    if not text:
        raise Unclear("no speed-up: the product did not fit on the chip")
    try:
        speed_up = float(text)
    except ValueError:
        speed_up = 0.0
    if not isfinite(speed_up) or speed_up <= 0:
        raise Unclear(f"speedup {text!r}; need a positive number")
    return speed_up
