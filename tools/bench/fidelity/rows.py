"""Reads the rows of a measurement file as cases that abele can price.

The columns are those of calibration.csv, or of popsparse.csv. A prediction depends only on the work
that was done, its kind and types, the number of tiles and the clock: never on an id, a device or a
source.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path

from ....backends.codelets.scalar import SCALAR_FUNCTIONS, loops_of
from ....backends.target import PRESETS, Target
from ....backends.target.presets import CHIP_OF
from ....dialects.scalar_functions import FUNCTIONS
from ....ir.support.errors import InputError
from ...importers.light_networks import light_names
from . import speed_ups, units
from .cases import (
    ACROSS,
    ON_CHIPS,
    Case,
    Convolution,
    Elementwise,
    Network,
    Product,
    Schedule,
    SparseProduct,
    Stencil,
    Triad,
    Vertex,
)
from .measured import Measurement, Skipped
from .units import Unclear

CALIBRATION = Path(__file__).with_name("calibration.csv")
"""The measurements that abele is calibrated with. Each row names its source."""

NETWORKS = Path(__file__).with_name("networks.csv")
"""Measurements of whole networks, whose prediction takes longer. Each row names its source."""

SPEED_UPS = Path(__file__).with_name("popsparse.csv")
"""A part of the published speed-ups of sparse products on a Bow (arXiv 2303.16999)."""

COLUMNS = ("op", "shape", "dtype", "quantity", "value", "unit")
"""The columns that a file must have. It may have others. A file of speed-ups has its own."""


def read_rows(path: Path) -> tuple[list[Measurement], list[Skipped]]:
    """The rows of a file that can be priced, and the others.

    Raises InputError if the file cannot be read, lacks a column, or has no rows.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            names = reader.fieldnames or ()
            of_speed_ups = tuple(names) == speed_ups.COLUMNS
            missing = [name for name in COLUMNS if name not in names]
            if missing and not of_speed_ups:
                raise InputError(f"{path}: no column {missing[0]!r}; need {', '.join(COLUMNS)}")
            table = [{k: v or "" for k, v in row.items() if isinstance(k, str)} for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not table:
        raise InputError(f"{path}: no rows; need one below the names of columns")
    if of_speed_ups:
        return speed_ups.read_speed_ups(table)
    found: list[Measurement] = []
    skipped: list[Skipped] = []
    before = ""
    for number, row in enumerate(table, start=1):
        name = row.get("id") or f"row {number}"
        # "same, per step" means the operation of the previous row, counting one step.
        op = before + row["op"][4:] if re.match(r"same\b", row["op"]) else row["op"]
        before = op
        family = ""
        try:
            family = family_of(op, row.get("category", ""))
            found.append(_measurement(name, family, op, row))
        except Unclear as error:
            skipped.append(Skipped(name, family, str(error)))
    return found, skipped


FAMILY_WORDS: tuple[tuple[str, str], ...] = (
    (r"scheduled exchange", "schedule"),
    (r"phase|bsp", "bsp"),
    (r"triad", "triad"),
    (r"sparse|spmm|bsr\b", "spmm"),
    (r"\bamp\b|convpartial", "amp"),
    (r"as poplin conv", "conv"),
    (r"blur|heat|stencil|panfilov|jacobi|laplac", "stencil"),
    (r"conv", "conv"),
    (r"mat\s?mul|gemm|matrix product", "gemm"),
    (r"popops|vertex|element-?wise|codelet", "vector"),
    (r"\binference\b", "network"),
)


def family_of(op: str, category: str) -> str:
    """The family of an operation, found by its name. Raises Unclear."""
    for text in (op, category):
        for pattern, family in FAMILY_WORDS:
            if re.search(pattern, text, re.IGNORECASE):
                return family
    raise Unclear(f"op {op!r}: not of a family that abele can price")


def _measurement(name: str, family: str, op: str, row: Mapping[str, str]) -> Measurement:
    several = re.search(r"\b(\d+)[- ]?IPUs?\b", row["shape"] + " " + op)
    chips = int(several[1]) if several else 1
    if chips > 1 and family not in ON_CHIPS:
        raise Unclear(f"on {chips} IPUs; need one, or one of {', '.join(ON_CHIPS)}")
    target = target_of(row.get("tiles", ""), row.get("clock_ghz", ""), chips)
    shape = row["shape"]
    batch = row.get("batch", "").strip()
    if family == "network" and batch:
        if not batch.isdecimal():
            raise Unclear(f"batch {batch!r}; need a positive integer")
        # The shape takes precedence over the column.
        shape = f"batch={batch}, {shape}"
    case = READ[family](op, shape, row["dtype"], target.tiles)
    value = _number(row["value"], "value")
    moved = case.bytes if isinstance(case, Triad) else 0.0
    # The operations of a vertex are those of one tile, but its rate is that of all tiles.
    each = isinstance(case, Vertex | Elementwise | Triad)
    tiles = target.tiles if each else 1
    measured = units.cycles(
        value,
        row["unit"],
        row["quantity"],
        target.clock_hz,
        case.operations * tiles,
        moved * tiles,
        case.batch if isinstance(case, Network) else 0,
    )
    if not isfinite(measured) or measured < 0:
        raise Unclear(f"value {row['value']!r}; need a number of 0 or more")
    kind = family if chips == 1 else f"{family}{ACROSS}"
    return Measurement(name, kind, case, target, measured)


def _number(text: str, column: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Unclear(f"{column} {text!r}; need a number") from None


def target_of(tiles: str, clock_ghz: str, chips: int = 1) -> Target:
    """The nearest preset, with this number of tiles and this clock.

    Either may be "", and then is the preset's. Several chips form a ladder. Raises Unclear for more
    tiles than the chips have.

    Args:
        tiles: those of all chips.
    """
    clock = _number(clock_ghz, "clock_ghz") * 1e9 if clock_ghz.strip() else 0.0
    count = int(_number(tiles, "tiles")) if tiles.strip() else 0
    if clock < 0 or count < 0:
        raise Unclear(f"{count} tiles at {clock_ghz} GHz; need positive numbers")
    every = [PRESETS[name] for name in ("mk2", "bow", "c600", "mk1")]
    if count == chips * PRESETS["mk1"].tiles:
        preset = PRESETS["mk1"]
    elif clock:
        preset = min(every, key=lambda chip: abs(chip.clock_hz - clock))
    else:
        preset = PRESETS["mk2"]
    if count > chips * max(chip.tiles for chip in every):
        raise Unclear(f"{count} tiles on {chips} IPUs; need a row that says on how many")
    tiles_ = count or chips * preset.tiles
    if chips > 1 and (chips % 2 or tiles_ % chips):
        raise Unclear(f"{tiles_} tiles on {chips} IPUs; need an even number of equal chips")
    if chips > 1:
        several = next(name for name, chip in CHIP_OF.items() if chip == preset.base != name)
        preset = replace(preset, links=replace(PRESETS[several].links, chips=chips))
    return replace(preset, tiles=tiles_, clock_hz=clock or preset.clock_hz)


# One reader per family. tiles: the tiles of the machine, to divide totals by.


def _vertex(op: str, shape: str, dtype: str, tiles: int) -> Vertex:
    found = units.sizes(shape)
    extents = units.boxes(shape)
    operand, partials = _contraction_types(dtype)
    kernel = 1
    for n in extents.get("kernel", ()):
        kernel *= n
    return Vertex(
        field=units.whole(found, "n", "field", "rows"),
        in_channels=units.whole(found, "k", "in", "c", default=16),
        out_channels=units.whole(found, "m", "out", "o", default=16),
        kernel=kernel,
        groups=units.whole(found, "groups", "g", default=1),
        operand=operand,
        partials=partials,
    )


def _contraction_types(dtype: str) -> tuple[str, str]:
    """Types of operands and partials. By default, poplibs adds up 16-bit operands in 32 bits."""
    operand, partials = units.dtypes(dtype)
    return operand, partials or ("float16" if operand.startswith("float8") else _widened(operand))


def _widened(operand: str) -> str:
    return "float32" if operand in ("float16", "bfloat16") else operand


SYNONYMS: Mapping[str, str] = {
    "subtract": "sub",
    "subtraction": "sub",
    "addition": "add",
    "multiply": "mul",
    "multiplication": "mul",
    "divide": "div",
    "division": "div",
    "maximum": "max",
    "minimum": "min",
    "exponent": "exp",
    "logarithm": "log",
    "inverse": "reciprocal",
    "negate": "neg",
    "copy": "identity",
    "absolute": "abs",
}
ALSO_BINARY = ("atan2", "rem")
"""Functions of two operands that abele does not define."""


def _elementwise(op: str, shape: str, dtype: str, tiles: int) -> Elementwise:
    text = op.lower()
    count = units.elements(shape)
    if tiles > 1 and not re.search(r"\bper (?:tile|vertex)\b|\beach\b", f"{shape} {op}"):
        count = -(-count // tiles)
    operand, _ = units.dtypes(dtype)
    found = units.sizes(shape)
    if re.search(r"scaled[- ]?add|axpy|ax\s?plus\s?by", text):
        function, operands = "scaled_add", 2
    elif re.search(r"\breduc", text):
        function, operands = "reduce", 1
    else:
        function = _function(text)
        operands = 2 if "binary" in text or (_is_binary(function) and "unary" not in text) else 1
    return Elementwise(
        function,
        operands,
        count,
        operand,
        in_place=bool(re.search(r"(?<!not )\bin[- ]?place\b", text)),
        bracketed=bool(re.search(r"bracket|overhead included", text)),
        depth=units.whole(found, "depth", default=1),
    )


def _is_binary(function: str) -> bool:
    known = FUNCTIONS.get(function)
    return function in ALSO_BINARY if known is None else known.arity > 1


def _function(text: str) -> str:
    """The scalar function in an operation's name. Raises Unclear."""
    for word in re.findall(r"[a-z]\w+", text.replace("-", "_")):
        for name in (word, SYNONYMS.get(word, "")):
            if loops_of(name) is not None:
                function = SCALAR_FUNCTIONS.get(name)
                other = function.priced_as if function else ""
                return other if other and isinstance(other, str) else name
    raise Unclear(f"op {text!r}: no function that abele can price")


def _triad(op: str, shape: str, dtype: str, tiles: int) -> Triad:
    operand, _ = units.dtypes(dtype)
    count = units.elements(shape)
    if not re.search(r"\bper tile\b", shape):
        count = -(-count // tiles)
    return Triad(count, operand, units.element_bytes(operand))


def _product(op: str, shape: str, dtype: str, tiles: int) -> Product:
    found = units.sizes(shape)
    operand, partials = units.dtypes(dtype)
    return Product(
        m=units.whole(found, "m"),
        k=units.whole(found, "k"),
        n=units.whole(found, "n"),
        batch=units.whole(found, "groups", "g", "b", default=1),
        operand=operand,
        # If the row does not name them, the library chooses: in these rows, as narrow as operands.
        partials=partials or operand,
    )


def _convolution(op: str, shape: str, dtype: str, tiles: int) -> Convolution:
    # The shape takes precedence over the operation's name.
    found = units.sizes(op) | units.sizes(shape)
    extents = units.boxes(op) | units.boxes(shape)
    operand, partials = units.dtypes(dtype)
    # If the row does not name them, they are as narrow as the operands, as for products.
    partials = partials or operand
    image = _extent(extents, found, ("image", "in", "input", "field", "size", "hw"), ("h", "w"))
    if len(image) == 4:
        # [batch, height, width, channels].
        found.setdefault("batch", image[0])
        image = image[1:]
    if len(image) == 3 and not {"cin", "ic", "c", "ci", "channels_in"} & found.keys():
        found["cin"] = image[-1]
        image = image[:-1]
    if len(extents.get("out", ())) == 3:
        found.setdefault("cout", extents["out"][-1])
    rank = len(image)
    kernel = _spread(
        _extent(extents, found, ("kernel", "filter", "ks", "r"), ("kh", "kw"), ("r", "s")), rank
    )
    stride = _spread(extents.get("stride", (1,)), rank)
    dilation = _spread(extents.get("dilation", (1,)), rank)
    pads = extents.get("pad", extents.get("padding"))
    if pads is None:
        # By default, as in networks, the result is as large as the image, divided by the stride.
        each = tuple(_same(*sizes) for sizes in zip(image, kernel, stride, dilation))
    else:
        each = tuple((n, n) for n in _spread(pads, rank))
    channels = units.whole(found, "cin", "ic", "c", "in_channels", "inchans", "ci", "channels_in")
    groups = units.whole(found, "groups", "g", default=1)
    case = Convolution(
        batch=units.whole(found, "batch", "n", "b", "bs", default=1),
        in_channels=channels,
        out_channels=units.whole(
            found,
            "cout",
            "oc",
            "k",
            "o",
            "out_channels",
            "outchans",
            "co",
            "channels_out",
            default=channels,
        ),
        groups=groups,
        image=image,
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        pads=each,
        operand=operand,
        partials=partials,
    )
    if min(case.positions) < 1:
        raise Unclear(f"shape {shape!r}: the kernel does not fit in the image")
    if case.in_channels % groups or case.out_channels % groups:
        raise Unclear(f"shape {shape!r}: channels do not divide by {groups} groups")
    return case


def _same(n: int, k: int, s: int, d: int) -> tuple[int, int]:
    """The padding before and after that gives a result of ceil(n / s) positions."""
    total = max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
    return total // 2, total - total // 2


def _extent(
    extents: Mapping[str, tuple[int, ...]],
    found: Mapping[str, float],
    names: tuple[str, ...],
    *axes: tuple[str, ...],
) -> tuple[int, ...]:
    """Sizes under one of these names, or under a name per axis. Raises Unclear."""
    for each in axes:
        if all(name in found for name in each):
            return tuple(units.whole(found, name) for name in each)
    for name in names:
        if name in extents:
            sizes = extents[name]
            return sizes * 2 if len(sizes) == 1 else sizes
    raise Unclear(f"shape: no {names[0]}; need {names[0]}=HxW")


def _spread(sizes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """A size per axis, given one for all axes or one per axis. Raises Unclear."""
    if len(set(sizes)) == 1:
        return sizes[:1] * rank
    if len(sizes) != rank:
        raise Unclear(f"shape: {len(sizes)} sizes for {rank} axes")
    return sizes


PHASE_WORDS: tuple[tuple[str, str], ...] = (
    (r"global|glob", "global exchange"),
    (r"\bpre\b", "pre"),
    (r"\bpost\b", "post"),
    (r"exchange", "exchange"),
    (r"sync", "sync"),
    (r"compute", "compute"),
)

REACTION = 22
"""Operations per element of the Aliev-Panfilov model in addition to its diffusion: 28 in all."""

POINTS = re.compile(r"\b(\d+)[- ]?(?:pt|points?)\b", re.IGNORECASE)
WINDOW = re.compile(r"\b(\d)x(\d)(?:x(\d))?\b")


def _stencil(op: str, shape: str, dtype: str, tiles: int) -> Stencil:
    grid = units.box(shape)
    blur = bool(re.search(r"blur", op, re.IGNORECASE))
    points = POINTS.search(op)
    window = WINDOW.search(op)
    found = re.search(r"(\d+) channels?", op)
    channels = int(found[1]) if found else 1
    image = bool(re.search(r"image|blur", f"{shape} {op}"))
    if len(grid) == 3 and (image or grid[-1] == channels > 1):
        *flat, channels = grid
        grid = tuple(flat)
    if image:
        # Sizes of images are width by height, but images are stored row by row.
        grid = grid[::-1]
    if points:
        taps, weights = int(points[1]), 2
    elif blur or window:
        # A blur has one weight per distance from the point.
        taps, weights = 3 ** len(grid), len(grid) + 1
    else:
        taps, weights = 2 * len(grid) + 1, 2
    operand, _ = units.dtypes(dtype)
    vector = re.search(r"(?:half|float)([24])\b", f"{op} {dtype}")
    width = int(vector[1]) if vector else 1
    if not vector and (
        operand == "float16" or re.search(r"optimi[sz]ed|vectori", op, re.IGNORECASE)
    ):
        # A loop over single 16-bit values is not possible: there are no instructions for them.
        width = 8 // units.element_bytes(operand)
    more = REACTION if re.search(r"panfilov", op, re.IGNORECASE) else 0
    return Stencil(grid, channels, taps, weights, width, operand, more=more)


def _phase(op: str, shape: str, dtype: str, tiles: int) -> Stencil:
    # The name of the phase follows the last colon, and the program is before it.
    _, _, named = op.rpartition(":")
    for pattern, phase in PHASE_WORDS:
        if re.search(pattern, re.sub(r"\(.*\)", "", named) or named, re.IGNORECASE):
            return replace(_stencil(op, shape, dtype, tiles), phase=phase)
    raise Unclear(f"op {op!r}: no phase; need sync, exchange, pre, post or compute")


def _sparse(op: str, shape: str, dtype: str, tiles: int) -> SparseProduct:
    found = units.sizes(shape) | units.sizes(op)
    extents = units.boxes(shape) | units.boxes(op)
    operand, partials = units.dtypes(dtype)
    density = found.get("density", found.get("d"))
    if density is None and "sparsity" in found:
        density = 1 - found["sparsity"]
    if density is None or not 0 < density <= 1:
        raise Unclear(f"shape {shape!r}: density {density}; need density= above 0, at most 1")
    block = (
        extents.get("block")
        or extents.get("block_size")
        or extents.get("b")
        or extents.get("bs")
        or (0,)
    )[0]
    if block < 1:
        raise Unclear(f"shape {shape!r}: no block; need block=, a positive integer")
    return SparseProduct(
        m=units.whole(found, "m"),
        k=units.whole(found, "k"),
        n=units.whole(found, "n"),
        block=block,
        density=density,
        dynamic="dynamic" in op.lower(),
        operand=operand,
        partials=partials or operand,
    )


OTHER_NAMES: Mapping[str, str] = {"resnet50v15": "resnet50", "googlenet": "inception_v1"}
"""Other names of networks, without hyphens and dots. The file of ResNet-50 is its version 1.5."""

IO_TILES = re.compile(r"\b(\d+) I/?O tiles\b", re.IGNORECASE)


def _network(op: str, shape: str, dtype: str, tiles: int) -> Network:
    named = re.sub(r"\s*\binference\b.*", "", op, flags=re.IGNORECASE)
    known = {**{_plain(each): each for each in light_names()}, **OTHER_NAMES}
    name = known.get(_plain(named))
    if name is None:
        raise Unclear(f"op {op!r}: no network {named!r}; need one of {', '.join(light_names())}")
    operand, partials = units.dtypes(dtype)
    serving = IO_TILES.search(shape)
    count = int(serving[1]) if serving else 0
    if count >= tiles:
        raise Unclear(f"shape {shape!r}: {count} IO tiles of {tiles}; need fewer")
    batch = units.whole(units.sizes(shape), "batch", default=1)
    return Network(name, batch, operand, partials, count)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


def _schedule(op: str, shape: str, dtype: str, tiles: int) -> Schedule:
    return Schedule(units.whole(units.sizes(shape), "scheduled"))


READ: Mapping[str, Callable[[str, str, str, int], Case]] = {
    "amp": _vertex,
    "vector": _elementwise,
    "triad": _triad,
    "gemm": _product,
    "bsp": _phase,
    "stencil": _stencil,
    "conv": _convolution,
    "spmm": _sparse,
    "network": _network,
    "schedule": _schedule,
}
