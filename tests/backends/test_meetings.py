"""Who meets at syncs that group-supersteps writes, and what happens if others do."""

from __future__ import annotations

import re

import pytest

from abele.backends.addresses.prove import prove_addresses
from abele.backends.faults import MachineFault
from abele.backends.prices.price import program_price
from abele.backends.target import resolve_target
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp
from abele.passes.pipelines import PASSES
from abele.tools.testing.mutation.result_mutants import RESULT_CLASSES

from ..strategies import context

FOUR = "tiny:16,links.chips=4,links.topology=ladder"
VARIABLES = "".join(
    f"tile.variable @{name}{chip} : tensor<8xf32> layout <[8 by 4] (d0) of [8] at {4 * chip}> "
    f"{{address = {address} : i64}}\n"
    for chip in range(4)
    for name, address in (("x", 0), ("y", 64))
)
ALL = (
    "tile.variable @all : tensor<8xf32> layout <[8 by 8 across 4] (d0) of [8] apart 4> "
    "{address = 128 : i64}\n"
)
INPUTS = "".join(
    f'tile.input "x{chip}" -> @x{chip} : tensor<8xf32> {{superstep = 0 : i64}}\n'
    for chip in range(4)
)


def grouped(*ops: str, target: str = FOUR, inputs: str = "") -> ModuleOp:
    """Operations of one superstep, in supersteps at exchange."""
    body = "\n".join(f"{op} {{superstep = 1 : i64}}" for op in ops)
    made = context()
    module = parse_module(
        f'builtin.module attributes {{abele.target = "{target}"}} {{ {VARIABLES} {ALL} '
        f"func.func @main() {{ {inputs} {body} func.return }} }}",
        made,
    )
    for each in parse_pipeline("group-supersteps,convert-tile-to-exchange", PASSES):
        each.apply(made, module)
    return module


def syncs(module: ModuleOp) -> list[str]:
    return re.findall(r"exchange\.sync (.*)", str(module))


def copy(source: str, destination: str) -> str:
    return f"tile.copy [@{source}] -> @{destination}"


def host(chip: int) -> str:
    return f'tile.input "x{chip}" -> @x{chip} : tensor<8xf32>'


@pytest.mark.parametrize(
    ("ops", "sync"),
    [
        ([copy("x0", "y0")], '"internal"'),
        ([copy("x0", "y1")], '"all" of <[0, 1]>'),
        ([copy("x0", "y0"), copy("x3", "y1")], '"all" of <[1, 3]>'),
        # Two pairs need not wait for each other.
        ([copy("x0", "y1"), copy("x2", "y3")], '"all" of <[0, 1] times 2 apart 2>'),
        # Copies join chips through others.
        ([copy("x0", "y1"), copy("x1", "y2")], '"all" of <[0 to 2]>'),
        ([copy("x0", "y1"), copy("x1", "y2"), copy("x2", "y3")], '"all"'),
        ([copy("x0", "all")], '"all"'),
        ([host(0)], '"external" of <[0]>'),
        ([host(0), host(2)], '"external" of <[0, 2]>'),
        ([host(0), copy("x2", "y3")], '"external" of <[0, 2, 3]>'),
        ([host(chip) for chip in range(4)], '"external"'),
    ],
)
def test_the_chips_of_copies_and_of_host_traffic_meet(ops: list[str], sync: str):
    assert syncs(grouped(*ops)) == [sync]


def test_one_chip_has_no_groups():
    assert syncs(grouped(copy("x0", "y1"), target="tiny:16")) == ['"internal"']


def test_a_machine_may_let_only_all_chips_meet():
    whole = f"{FOUR},links.meeting_chips=4"
    assert syncs(grouped(copy("x0", "y1"), target=whole)) == ['"all"']
    pairs = f"{FOUR},links.meeting_chips=2"
    assert syncs(grouped(copy("x2", "y3"), target=pairs)) == ['"all" of <[2, 3]>']
    assert syncs(grouped(copy("x1", "y2"), target=pairs)) == ['"all"']
    assert syncs(grouped(host(1), target=pairs)) == ['"external" of <[0, 1]>']


def _changed(module: ModuleOp, sync: str) -> ModuleOp:
    """The program with another sync of its last superstep."""
    before, _, after = str(module).rpartition("exchange.sync ")
    rest = after.partition("\n")[2]
    return parse_module(f"{before}exchange.sync {sync}\n{rest}", context())


@pytest.mark.parametrize(
    ("ops", "sync", "message"),
    [
        (
            [copy("x0", "y1")],
            '"internal"',
            r"exchange.move at .*: moves words from chip 0 to 1; superstep @.* has exchange.sync "
            '"internal"; need chips that meet',
        ),
        ([copy("x0", "y1")], '"all" of <[0, 2]>', "moves words from chip 0 to 1"),
        ([copy("x0", "y1")], '"all" of <[2, 3]>', "moves words from chip 0 to 1"),
        ([copy("x0", "y1")], '"all" of <[0], [1]>', "moves words from chip 0 to 1"),
        (
            [copy("x0", "y1"), copy("x2", "y3")],
            '"all" of <[0, 1]>',
            r"from chip 2 to 3; .* has exchange.sync \"all\" of <\[0, 1\]>",
        ),
        ([copy("x0", "y1")], '"all" of <[0, 1, 4]>', "exchange.sync at .*: chip 4 of 4"),
        ([host(1)], '"external" of <[0]>', "joins the host and chip 1"),
    ],
)
def test_a_sync_that_leaves_out_a_chip_is_refused(ops: list[str], sync: str, message: str):
    own = "" if any("input" in op for op in ops) else INPUTS
    module = grouped(*ops, inputs=own)
    prove_addresses(module, resolve_target(FOUR))
    with pytest.raises(MachineFault, match=message):
        prove_addresses(_changed(module, sync), resolve_target(FOUR))


@pytest.mark.parametrize(
    "ops", [[copy("x0", "y1")], [copy("x0", "all")], [copy("x0", "y1"), copy("x2", "y3")]]
)
def test_a_planted_bug_in_a_group_is_found(ops: list[str]):
    (wrong,) = [each for each in RESULT_CLASSES if each.name == "left-wrong-group"]
    module = grouped(*ops, inputs=INPUTS)
    (mistake,) = wrong.sites(module)
    mistake()
    with pytest.raises(MachineFault, match="moves words from chip"):
        prove_addresses(module, resolve_target(FOUR))


def test_a_sync_may_join_more_chips_than_it_has_to():
    module = _changed(grouped(copy("x0", "y1"), inputs=INPUTS), '"all"')
    prove_addresses(module, resolve_target(FOUR))


def test_only_chips_that_take_part_wait_and_pay():
    target = resolve_target(FOUR)
    found = program_price(grouped(copy("x0", "y1")), target)
    own = target.exchange.sync_cycles
    hops = round(30e-9 * target.clock_hz + 0.5)
    assert [each.busy.sync for each in found.chips] == [own + hops] * 2 + [0, 0]
    # The host's sync with one chip has no hops.
    (step,) = program_price(grouped(host(0)), target).supersteps
    assert (step.sync_cycles, step.chips) == (own, 1)
    # A pair meets, and another chip copies by itself.
    found = program_price(grouped(copy("x0", "y1"), copy("x2", "y2")), target)
    assert [each.busy.sync for each in found.chips] == [own + hops] * 2 + [own, 0]
    assert found.cycles == max(each.end for each in found.chips)
    assert [each.waiting_cycles for each in found.chips] == [0] * 4
