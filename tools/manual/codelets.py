"""The page of codelets: their computations, errors and prices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from math import prod

import numpy as np

from ...backends.codelets.loops import ASSUMED_LOOP
from ...backends.codelets.reduction import MERGE
from ...backends.codelets.scalar import SCALAR_FUNCTIONS, ScalarFunction
from ...backends.prices import cost
from ...backends.prices.contractions.contraction import Contraction
from ...backends.prices.contractions.methods import OWN_METHODS, Method
from ...backends.target import PRESETS, Target
from ...backends.target.dtype_kinds import Kind
from ...backends.target.presets import CHIP_OF
from ...dialects.along import SCANS, SORTS
from ...dialects.combiners import TUPLE_COMBINERS, Combiner
from ...dialects.scalar_functions import COMBINERS, chainable
from .documents import document
from .markdown import code, link, page, plain, prose, table

KINDS: Mapping[str, Kind] = {"float32": "float32", "float16": "float16", "int32": "int"}
"""The types with prices for scalar functions, and the kind of loop that each type uses."""

DTYPES = tuple(KINDS)

OPERANDS = ("float32", "float16", "float8_e4m3fn")
PARTIALS = ("float32", "float16")
"""The types with prices for contractions."""

Price = Callable[[Contraction, Target], object]
"""Cycles of a contraction on a target."""

_CHIPS = {name: PRESETS[name] for name, chip in CHIP_OF.items() if name == chip}
"""The presets of one chip. A machine of several computes as its chips do."""

ELEMENTS = 1 << 14
"""The number of elements per worker at which the price of one element is measured: the difference
to twice as many.
"""


ROW = 1024
"""The elements of a scanned or sorted row."""


def codelets_page() -> str:
    """The text of the page."""
    functions = SCALAR_FUNCTIONS.values()
    return page(
        "Codelets",
        "A codelet runs a *body* on one cell of an operator: a scalar function at every point, a "
        "combiner that merges the points of reduction dimensions, and a chain of functions that "
        "follow. A price is the number of cycles that a tile takes for one more element while all "
        "its workers are busy, without start-up. Prices are *in italics if their loop is assumed*, "
        "because none is published. If presets differ, the price of each is listed. "
        f"{link('Targets', 'targets.md')} lists the facts behind the prices.",
        "## Scalar functions",
        "Errors are in units of roundoff of the type of the computation, which is 32 bits for "
        "narrower floats. *parameters*: plus the effect of rounding them.",
        table(
            ("function", "operands", "parameters", "error", *(f"cycles, {d}" for d in DTYPES)),
            map(_function, functions),
        ),
        "## Chains",
        "The functions that may follow in the same codelet, as in `body <mul sum then add, relu>`, "
        "and their price there. *at* is the operand that may be the result so far.",
        table(
            ("function", "at", *(f"cycles, {d}" for d in DTYPES)),
            (_following(SCALAR_FUNCTIONS[name], at) for name, at in chainable().items()),
        ),
        "## Combiners",
        "How points are merged, beginning with the identity. The price is that of one more point.",
        table(
            ("combiner", "identity", "computed as", *(f"cycles, {d}" for d in DTYPES)),
            (_combiner(*item) for item in COMBINERS.items()),
        ),
        "## Combiners of several values",
        "Each element is lifted to members, members are merged in any order, and the results are "
        "made of them. *element* is the type of the elements, *index* is i32, *wide* the type of "
        "sums, 32 bits for narrower floats. Partial results are members.",
        table(
            ("combiner", "members", "results", "ignores", "meaning"),
            map(_tuple_combiner, TUPLE_COMBINERS.values()),
        ),
        "## Along a whole dimension",
        "What a body computes from all elements along a dimension that no plan cuts, as in "
        f"`along sum reverse exclusive`. Each worker takes whole rows. The price is that of one "
        f"more row of {ROW:,} elements while all workers are busy, per element. *reverse* scans "
        "from the last element, and sorts from the largest; *exclusive* leaves out the element "
        "itself. NaN comes after all numbers, and equal elements keep their order.",
        table(("along", "result", "cycles"), map(_along, (*SCANS, *SORTS))),
        "## Methods",
        "How a contraction, a sum of products, is computed: a plan's `method`. Rates are "
        "multiply-accumulates per cycle of a tile, on a very large cell.",
        *(f"### {each.name}\n\n{_method(each)}" for each in OWN_METHODS),
    )


def _function(each: ScalarFunction) -> tuple[str, ...]:
    same = each.priced_as if isinstance(each.priced_as, str) else ""
    prices = (_price(each, dtype, _alone) for dtype in DTYPES)
    name = code(each.name) + (f", priced as {code(same)}" if same else "")
    return name, str(each.arity), str(each.parameters or ""), _error(each), *prices


def _error(each: ScalarFunction) -> str:
    if each.is_exact:
        return "exact"
    ulps = f"{each.ulps:g}" if each.ulps else ""
    return " + ".join(word for word in (ulps, "parameters" * bool(each.sensitivity)) if word)


def _following(each: ScalarFunction, at: tuple[int, ...]) -> tuple[str, ...]:
    prices = (_price(each, dtype, _in_a_chain) for dtype in DTYPES)
    return code(each.name), " or ".join(map(str, at)), *prices


def _combiner(name: str, identity: float) -> tuple[str, ...]:
    if name not in MERGE:
        # It merges nothing, but replaces elements of an operand.
        return code(name), "", "a copy", *[""] * len(DTYPES)
    prices = (_rates(lambda target, dtype=dtype: _merging(dtype, target)) for dtype in DTYPES)
    return code(name), f"{identity:g}", code(MERGE[name].__name__), *prices


def _along(name: str) -> tuple[str, ...]:
    def price(rows: int, target: Target) -> object:
        if name in SCANS:
            return cost.scan_cycles(rows, ROW, target)
        return cost.sort_cycles(rows, ROW, target, indices=name == "sort_indices")

    def of_one(target: Target) -> float:
        once, twice = (int(np.asarray(price(n * target.workers, target))) for n in (1, 2))
        return (twice - once) / ROW / target.workers

    texts = {
        "sort": "the elements in order",
        "sort_indices": "the index of each element in order, i32",
    }
    text = texts.get(name, f"the {name} of all elements up to each one")
    rates = _rates(of_one)
    return code(name), text, f"*{rates}*" if name in SCANS else rates


def _tuple_combiner(each: Combiner) -> tuple[str, ...]:
    ignores = ["positions outside"] if each.reads_position else []
    ignores += [] if each.fill is None else [f"{each.fill:g}"]
    kinds = (", ".join(some) for some in (each.members, each.results))
    return code(each.name), *kinds, ", ".join(ignores), each.text


def _price(
    each: ScalarFunction, dtype: str, price: Callable[[ScalarFunction, str, Target], float]
) -> str:
    loops = each.loops
    loop = (loops and loops.of(KINDS[dtype])) or ASSUMED_LOOP
    text = _rates(lambda target: price(each, dtype, target))
    return f"*{text}*" if loop.assumed else text


def _alone(each: ScalarFunction, dtype: str, target: Target) -> float:
    count, name = each.arity, each.name
    return _more(lambda n: cost.elementwise_cycles(n, count, name, dtype, target), target)


def _in_a_chain(each: ScalarFunction, dtype: str, target: Target) -> float:
    count, name = each.arity, each.name
    return _more(lambda n: cost.following_cycles(n, count, name, dtype, target), target)


def _merging(dtype: str, target: Target) -> float:
    outputs = target.workers * ELEMENTS
    once, twice = (int(cost.reduce_cycles(outputs, depth, dtype, target)) for depth in (1024, 2048))
    return (twice - once) / outputs / 1024


def _more(cycles: Callable[[int], object], target: Target) -> float:
    """The price of one more element."""
    count = target.workers * ELEMENTS
    once, twice = (int(np.asarray(cycles(n))) for n in (count, 2 * count))
    return (twice - once) / count


def _rates(rate: Callable[[Target], float]) -> str:
    """A figure of all presets, or one figure for each preset if they differ."""
    found = {name: f"{rate(target):.4g}" for name, target in _CHIPS.items()}
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    return ", ".join(f"{name} {text}" for name, text in found.items())


def _method(method: Method) -> str:
    price = method.price
    says = document(price, [*inspect.signature(price).parameters, "Source"])
    source = f"Source: {plain(says.fields['Source'])}." if "Source" in says.fields else ""
    rows = [(operand, *rates) for operand in OPERANDS for rates in _throughputs(price, operand)]
    rates = table(("operands", "partials", *_CHIPS), rows)
    return "\n\n".join(block for block in (prose(says.text), source, rates) if block)


def _throughputs(price: Price, operand: str) -> Iterator[tuple[str, ...]]:
    """Multiply-accumulates per cycle on each preset, by type of partials; "" if there are none."""
    found = {
        partials: tuple(_throughput(price, operand, partials, target) for target in _CHIPS.values())
        for partials in PARTIALS
    }
    if len(set(found.values())) == 1:
        found = {"any": found[PARTIALS[0]]}
    yield from ((partials, *rates) for partials, rates in found.items() if any(rates))


def _throughput(price: Price, operand: str, partials: str, target: Target) -> str:
    """The higher rate: of a product with many channels, or of many groups with one channel each."""
    best = 0.0
    for channels, groups in ((4096, 1), (1, 4096)):
        sizes = target.workers * ELEMENTS, channels, channels, 1, groups
        contraction = Contraction.of(*sizes, operand, partials)
        cycles = float(np.asarray(price(contraction, target)))
        best = max(best, prod(sizes) / cycles)
    return f"{best:.3g}" if best else ""
