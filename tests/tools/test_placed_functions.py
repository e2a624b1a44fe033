"""Networks cut by hand into functions on several chips compute what one chip does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from some_tensors import module_of
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from abele.backends.prices.crossings import crossings
from abele.backends.prices.step_charges import step_charges
from abele.backends.target import resolve_target
from abele.dialects.partition import ComputeOp, RelayoutOp, partition_type
from abele.dialects.placement import CHIPS, Placement
from abele.ir.errors import DoesNotFit
from abele.ir.text import write_module
from abele.tools import Executable, compile_model
from abele.tools.debug.run_check import check_run

from ..strategies import context

FOUR = "tiny:16,links.topology=ladder,links.chips=4"
ONE = "tiny:4"

BATCH, WIDTH = 16, 12
VALUE, WEIGHT = f"tensor<{BATCH}x{WIDTH}xf32>", f"tensor<{WIDTH}x{WIDTH}xf32>"


def stage(i: int, placement: Placement | None, given: bool) -> str:
    """A function of one layer, whose weight it loads or is given."""
    where = "" if placement is None else f" attributes {{{CHIPS} = {placement}}}"
    load = "" if given else f"%w = nn.load @w{i} : {WEIGHT}"
    return f"""
    func.func @stage{i}(%x: {VALUE}{f", %w: {WEIGHT}" if given else ""}) -> {VALUE}{where} {{
      {load}
      %0 = nn.matmul %x, %w : ({VALUE}, {WEIGHT}) -> {VALUE} loc("fc{i}")
      %1 = nn.relu %0 : ({VALUE}) -> {VALUE} loc("relu{i}")
      func.return %1 : {VALUE}
    }}"""


def network(places: list[Placement | None], *, given: bool = False, loop: int = 0) -> str:
    """Layers one after another, or a loop in which each works on what the one before it has left
    in the iteration before."""
    n = len(places)
    states = "".join(f"nn.state @w{i} : {WEIGHT} = {{w{i}}}\n" for i in range(n))
    loads = "".join(f"%w{i} = nn.load @w{i} : {WEIGHT}\n" for i in range(n)) if given else ""
    weight = f", {WEIGHT}" if given else ""

    def call(i: int, value: str) -> str:
        return (
            f"%s{i} = func.call @stage{i}({value}{f', %w{i}' if given else ''}) : "
            f"({VALUE}{weight}) -> {VALUE}\n"
        )

    types = ", ".join([VALUE] * n)
    if loop:
        taken = ", ".join(f"%a{i}: {VALUE}" for i in range(n))
        outputs = ", ".join(f"%o{i}" for i in range(n))
        initial = ", ".join(["%x"] * n)
        body = f"""{outputs} = control.repeat {loop} ({initial}) : ({types}) -> ({types}) {{
          ^bb0({taken}):
            {"".join(call(i, f"%a{i}") for i in range(n))}
            control.yield {", ".join(f"%s{(i - 1) % n}" for i in range(n))} : {types}
          }}
          func.return %o0 : {VALUE}"""
    else:
        calls = "".join(call(i, f"%s{i - 1}" if i else "%x") for i in range(n))
        body = f"{calls} func.return %s{n - 1} : {VALUE}"
    main = f"func.func @main(%x: {VALUE}) -> {VALUE} {{ {loads} {body} }}"
    return states + main + "".join(stage(i, p, given) for i, p in enumerate(places))


def compiled(text: str, target: str, folder: Path, *, whole: bool = True) -> Executable:
    """The compiled program, with weights that are integers, or not."""
    count = text.count("nn.state")
    drawn = np.random.default_rng(count).normal(size=(count, WIDTH, WIDTH)) / 2
    weights = {f"w{i}": (np.rint(w) if whole else w) for i, w in enumerate(drawn.astype("f"))}
    path = folder / f"{target[:7].replace(':', '-')}.mlir"
    write_module(module_of(text, context(), **weights), path)
    return compile_model(path, target, cache=False)


def chips_of(exe: Executable, function: str) -> set[int]:
    """The chips on which a function has values."""
    found: set[int] = set()
    for op in exe.module_at("partition").walk():
        if _function(op) == function:
            for value in (*op.operands, *op.results):
                tiles = partition_type(value).layout.data.tiles
                found |= set((tiles.of(np.arange(tiles.count)) // 4).tolist())
    return found


def _function(op: Operation) -> str:
    while not isinstance(op, FuncOp):
        parent = op.parent_op()
        if parent is None:
            return ""
        op = parent
    return op.sym_name.data


def inputs_of(exe: Executable, *, whole: bool = True) -> dict[str, np.ndarray]:
    (x,) = exe.inputs
    drawn = np.random.default_rng(7).normal(size=x.shape) * 2
    return {x.name: (np.rint(drawn) if whole else drawn).astype(np.float32)}


PLACES = [
    [Placement(0), Placement(3)],
    [Placement(1), Placement(2, 2, 1)],
    [Placement(0, 2, 2), Placement(1, 2, 2)],
    [Placement(2), Placement(0), Placement(3), Placement(1)],
    [Placement(0), None, Placement(0, 4), Placement(3)],
]


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize(("given", "loop"), [(False, 0), (True, 0), (False, 3), (True, 3)])
def test_functions_on_several_chips_give_the_bits_of_one_chip(
    tmp_path: Path, places: list[Placement | None], given: bool, loop: int
):
    one = compiled(network([None] * len(places), given=given, loop=loop), ONE, tmp_path)
    four = compiled(network(places, given=given, loop=loop), FOUR, tmp_path)
    for i, placement in enumerate(places):
        if placement is not None:
            assert chips_of(four, f"stage{i}") <= set(placement.chips)
    inputs = inputs_of(one)
    for name, array in one.run(inputs).items():
        assert np.abs(array).max() > 0
        np.testing.assert_array_equal(four.run(inputs)[name], array)


def test_functions_that_do_not_fit_their_chip_are_named_with_what_they_lack(tmp_path: Path):
    """Chip 0 has room for its function, and chip 2 has too little for two."""
    places = [Placement(0), Placement(2), Placement(2)]
    target = f"{FOUR},memory.bytes_per_tile=8192,memory.reserved_bytes={8192 - 1000}"
    with pytest.raises(DoesNotFit) as found:
        compiled(network(places), target, tmp_path)
    message = " ".join(str(found.value).split())
    expected = (
        r"tile \d+: @stage1, @stage2 on chip 2 needs \d+ bytes, 1000 available \d+ bytes over"
    )
    assert re.match(expected, message)
    assert compiled(network(places[:2]), target, tmp_path)


def between_chips(exe: Executable) -> dict[tuple[int, int], int]:
    """The bytes that a run moves from chip to chip."""
    target = resolve_target(FOUR)
    found = crossings(step_charges(exe.module_at("exchange"), target).steps, target)
    pairs = zip(found.source.tolist(), found.destination.tolist(), strict=True)
    return dict(zip(pairs, found.bytes.tolist(), strict=True))


@pytest.mark.parametrize("given", [False, True])
def test_an_iteration_moves_what_functions_hand_over_and_no_weight(tmp_path: Path, given: bool):
    places = [Placement(0), Placement(2), Placement(1)]
    few, more = (
        compiled(network(places, given=given, loop=loop), FOUR, tmp_path) for loop in (2, 5)
    )
    before, after = between_chips(few), between_chips(more)
    moved = {pair: (after[pair] - before.get(pair, 0)) / 3 for pair in after}
    value = 4 * BATCH * WIDTH
    # The input is handed to three functions before the loop.
    assert {pair: n for pair, n in moved.items() if n} == {
        (0, 2): value,
        (2, 1): value,
        (1, 0): value,
    }


def test_a_weight_costs_the_same_whether_a_function_loads_it_or_is_given_it(tmp_path: Path):
    places = [Placement(3), Placement(1)]
    loaded, given = (
        compiled(network(places, given=each, loop=4), FOUR, tmp_path) for each in (False, True)
    )
    for name in ("cycles", "exchange_bytes", "max_tile_bytes"):
        assert loaded.profile[name] == given.profile[name]


def test_fractions_are_within_their_bounds(tmp_path: Path):
    exe = compiled(network(PLACES[3], loop=2), FOUR, tmp_path, whole=False)
    inputs = inputs_of(exe, whole=False)
    assert check_run(exe, inputs, exe.run(inputs), "exchange").passed


def test_what_a_function_elsewhere_returns_is_brought_to_its_caller(tmp_path: Path):
    """A state that two functions load lies with the first one, and is brought to the other."""
    call = f"%y = func.call @stage1(%x) : ({VALUE}) -> {VALUE}"
    text = network([Placement(2), Placement(1)])
    begin, end = text.index("func.func @stage0"), text.index("func.func @stage1")
    inner = text[begin:end].replace("{\n", "{ " + call + "\n", 1).replace("%x, %w", "%y, %w")
    nested = text[:begin] + inner + text[end:].replace("@w1", "@w0")
    alone = re.sub(r"attributes {[^}]*}", "", nested)
    four, one = compiled(nested, FOUR, tmp_path), compiled(alone, ONE, tmp_path)
    assert chips_of(four, "stage1") == {1}
    sources = {
        value
        for op in four.module_at("partition").walk()
        if isinstance(op, ComputeOp) and _function(op) == "stage0"
        for value in op.operands
    }
    assert {partition_type(v).layout.data.first_tile // 4 for v in sources} == {2}
    crossing = [
        op
        for op in four.module_at("partition").walk()
        if isinstance(op, RelayoutOp)
        and _function(op) == "stage0"
        and partition_type(op.inputs[0]).layout.data.first_tile // 4 == 1
    ]
    assert ["brought" in str(op.location) for op in crossing] == [True, True]
    inputs = inputs_of(one)
    for name, array in one.run(inputs).items():
        np.testing.assert_array_equal(four.run(inputs)[name], array)
