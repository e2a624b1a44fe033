"""Prices against hand calculations, and traffic against every element followed."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from some_prices import busiest_tile_cycles

from abele.backends.fabrics.crossbar import Crossbar
from abele.backends.prices import cost
from abele.backends.prices.price import (
    PhaseCycles,
    bus_bytes,
    copy_overlaps,
    first_shares_bus,
    price,
    program_price,
    totals,
    variables_of,
)
from abele.backends.reference.moves import evaluate_moves
from abele.backends.target import resolve_target
from abele.dialects.abele import Plan
from abele.dialects.steps import Copy, Vertices
from abele.dialects.variable import Variable
from abele.ir.errors import InputError
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout
from abele.ir.geometry.overlap import sent_elements
from abele.ir.geometry.space import AccessMap, Space, identity_map

from ...ir.geometry.strategies import cell_indices
from ...strategies import Program, planned_programs
from ..exchange_text import SHIFT, exchange_module, lowered, relu, step, variable

TINY = resolve_target("tiny")
FLOAT = np.dtype(np.float32)


def test_a_shift_sends_one_block_from_tile_to_tile():
    module = exchange_module(step("s", f"exchange.move [@w] -> @a moves [{SHIFT}]"))
    (found,) = price(module, TINY)
    assert (found.name, found.origin, found.times) == ("s", "s", 1)
    assert found.exchange_bytes == 3 * 24
    assert found.exchange_cycles == cost.least_exchange_cycles(24, 24, TINY)
    assert found.sync_cycles == 118
    # Tile 0 gets no element but six of padding.
    assert found.compute_cycles == cost.fill_cycles(24, TINY)


def test_elements_that_stay_on_a_tile_are_copied_not_exchanged():
    (found,) = price(exchange_module(step("s", "exchange.move [@w] -> @a")), TINY)
    assert (found.exchange_bytes, found.exchange_cycles) == (0, 0)
    assert found.compute_cycles == cost.copy_cycles(24, TINY)


def test_a_halo_exchanges_only_the_halo():
    halo = variable("h", 200, "<[24 by 4, 3] (d0 + d1 - 1 fill) of [24]>")
    (found,) = price(exchange_module(step("s", "exchange.move [@w] -> @h"), halo), TINY)
    assert found.exchange_bytes == 6 * 4
    # The first tile has padding to fill as well. It sends one element and receives one.
    assert found.busiest_tile == 0
    control = cost.control_cycles(1, 1, 1, TINY)
    assert found.exchange_cycles == cost.least_exchange_cycles(4, 4, TINY, control)


def test_a_tile_computes_while_another_one_exchanges():
    here = variable("h", 200, "<[24] (d0) of [24] at 4>")
    bring, compute = "exchange.move [@w] -> @h", relu("a", "b", "split [1] at 1")
    (exchange,) = price(exchange_module(step("s", bring), here), TINY)
    assert exchange.busiest_tile == 4
    # Tile 1 sends 24 bytes, and need not wait until tile 4 has received all 96.
    (both,) = price(exchange_module(step("s", bring, compute), here), TINY)
    sending = int(cost.least_exchange_cycles(0, 24, TINY, cost.control_cycles(1, 0, 0, TINY)))
    assert both.busiest_tile == 1
    assert both.exchange_cycles == sending < exchange.exchange_cycles
    computing = int(cost.elementwise_cycles(24, 1, "relu", "float32", TINY))
    assert both.cycles == both.sync_cycles + sending + computing
    # On a machine that computes in no time, tile 4 decides, and nothing is added to it.
    vector = ",".join(f"vector.{name}=1" for name in ("supervisor_cycles", "float32_worker_cycles"))
    quick = resolve_target(f"tiny,workers=24,{vector},exchange.receive_bytes_per_cycle=0.1")
    (short,) = price(exchange_module(step("s", bring, compute), here), quick)
    assert (short.busiest_tile, short.compute_cycles) == (4, 0)


def test_many_short_fragments_take_longer_than_their_bytes():
    """A column of 24 rows, of a block of 2: each element is a fragment of its own."""
    columns = resolve_target("tiny:2")
    grids = [f"<[24 by {a}, 2 by {b}] (d0, d1) of [24, 2]>" for a, b in ((1, 2), (2, 1))]
    names = "held", "wanted"
    variables = "".join(
        f'exchange.variable @{name} at {600 + 400 * k} : tensor<24x2xf32> layout {grid} loc("v")\n'
        for k, (name, grid) in enumerate(zip(names, grids, strict=True))
    )
    (found,) = price(
        exchange_module(step("s", "exchange.move [@held] -> @wanted"), variables), columns
    )
    assert found.exchange_bytes == 2 * 12 * 4
    # Twelve sends, and twelve receives that each begin somewhere else.
    control = cost.control_cycles(12, 12, 12, columns)
    assert found.exchange_cycles == control + columns.exchange.route_cycles
    assert control > 12 * 4 / 3.57


def test_an_element_that_all_tiles_need_is_sent_once():
    copies = variable("r", 200, "<[4 by 4, 24] (d1) of [24]>")
    (found,) = price(exchange_module(step("s", "exchange.move [@w] -> @r"), copies), TINY)
    assert found.exchange_bytes == 4 * 18 * 4
    # Both tiles of a pair want it: their two buses bring it in half the time.
    assert found.exchange_cycles == cost.least_exchange_cycles(18 * 4 // 2, 6 * 4, TINY)
    alone = resolve_target("tiny,exchange.pair_factor=1")
    (found,) = price(exchange_module(step("s", "exchange.move [@w] -> @r"), copies), alone)
    assert found.exchange_cycles == cost.least_exchange_cycles(18 * 4, 6 * 4, alone)


@pytest.mark.parametrize(
    ("parts", "first", "shares"),
    [
        # Two blocks, three tiles each: tiles 2 and 3 want different ones.
        ((2, 3), 0, "yynnyy"),
        # From tile 1 on: its partner, and that of tile 6, has nothing.
        ((2, 3), 1, "nyyyyn"),
        ((6, 1), 0, "nnnnnn"),
        ((1, 6), 0, "yyyyyy"),
    ],
)
def test_paired_tiles_share_their_buses_for_the_same_block(parts, first, shares):
    grid = Cut(8, parts[0]), Cut(8, parts[1])
    layout = Layout(grid, identity_map((0,), (8,)), first_tile=first)
    halved = bus_bytes(layout, np.full(6, 30), TINY) == 15
    assert "".join("ny"[each] for each in halved.astype(int)) == shares
    assert first_shares_bus(layout) == (shares[0] == "y")


def test_the_fabric_prices_a_sync_by_its_zone():
    class Slow(Crossbar):
        """A crossbar on which all chips take 1,000 cycles more to meet than one."""

        def meeting_cycles(self, zone: str) -> int:
            return self.sync_cycles + 1000 * (zone == "all")

    chips = replace(TINY, exchange=Slow())
    for zone in ("internal", "all"):
        module = exchange_module(step("s", "exchange.move [@w] -> @a", zone=zone))
        assert price(module, TINY)[0].sync_cycles == 118
        assert price(module, chips)[0].sync_cycles == 118 + 1000 * (zone == "all")


def test_vertex_sets_of_a_superstep_add_up_on_each_tile():
    module = exchange_module(step("s", relu("w", "a"), relu("w", "b"), relu("w", "c", "split [2]")))
    computes = [op for op in module.walk() if isinstance(op, Vertices)]
    each = [busiest_tile_cycles(op.structure(), op.plan.data, [FLOAT] * 2, TINY) for op in computes]
    (found,) = price(module, TINY)
    assert found.compute_cycles == sum(each)
    assert found.busiest_tile == 0
    assert each[0] == cost.elementwise_cycles(6, 1, "relu", "float32", TINY)
    late = exchange_module(step("s", relu("w", "a"), relu("w", "b", "split [2] at 2")))
    assert price(late, TINY)[0].busiest_tile == 2


def test_loops_branches_and_calls_count_as_often_as_they_run():
    functions = f"func.func @f() {{ {step('f', relu('w', 'a'))} func.return }}"
    body = f"""control.repeat 5 () : () -> () {{ {step("five", relu("w", "b"))}
        func.call @f() : () -> () control.yield }}
      func.call @f() : () -> ()
      %p = exchange.read @p : i1
      control.if %p : i1 {{ {step("cheap", relu("w", "b"))} control.yield }}
        else {{ {step("dear", relu("w", "b"), relu("w", "c"))} control.yield }}
      control.while () : () -> () {{ {step("test", relu("w", "d"))}
          %q = exchange.read @p : i1 control.condition %q : i1 }}
        do {{ {step("body", relu("w", "e"))} control.yield }}"""
    prices = price(exchange_module(body, functions=functions), TINY)
    times = {"f": 6, "five": 5, "cheap": 0, "dear": 1, "test": 1, "body": 1}
    assert {p.name: p.times for p in prices} == times
    total = totals(prices)
    assert total.supersteps == 14
    assert total.cycles == sum(p.cycles * p.times for p in prices)
    assert total.cycles == total.sync_cycles + total.exchange_cycles + total.compute_cycles
    assert total.sync_cycles == 14 * 118


@settings(max_examples=20)
@given(planned_programs())
def test_on_one_chip_the_critical_path_is_the_whole_run(program: Program):
    module = lowered(program)
    found = program_price(module, TINY)
    for each in found.supersteps:
        parts = each.sync_cycles, each.exchange_cycles, each.compute_cycles
        assert each.critical == PhaseCycles(*(each.times * part for part in parts))
        assert each.worst_critical_cycles == each.times * (
            each.cycles - each.compute_cycles + each.worst_compute_cycles
        )
    total = totals(found.supersteps)
    (chip,) = found.chips
    assert total.cycles == sum(each.times * each.cycles for each in found.supersteps) == chip.end
    assert chip.busy == PhaseCycles(total.sync_cycles, total.exchange_cycles, total.compute_cycles)
    assert chip.waiting_cycles == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("func.call @g() : () -> ()", "no function @g"),
        ("func.call @main() : () -> ()", "@main calls itself"),
        (step("s", relu("z", "a")), "no variable @z"),
    ],
)
def test_a_wrong_name_is_an_input_error(body: str, message: str):
    with pytest.raises(InputError, match=message):
        price(exchange_module(body), TINY)


# Traffic, element by element


def moved_elements(op: Copy, variables: dict[str, Variable]) -> list[np.ndarray]:
    """For each source, the number of the element that goes to each place of the result; from 1."""
    shape = variables[op.destination].placed.shape
    found = []
    for i, name in enumerate(op.sources):
        n = prod(variables[name].tensor.get_shape())
        numbers = np.arange(1, n + 1)
        if op.spaces is None:
            found.append(numbers.reshape(shape))
            continue
        (read,), space = op.spaces[i].operands, op.spaces[i]
        space = Space(space.dims, (AccessMap(read.axes, 0.0),), space.results)
        moved = evaluate_moves([space], [numbers], space.results[0].shape, numbers.dtype)
        found.append(moved.reshape(shape))
    return found


@given(planned_programs())
@settings(max_examples=20)
def test_bytes_received_and_sent_equal_those_found_by_following_every_element(program: Program):
    module = lowered(program)
    variables = variables_of(module)
    for op in module.walk():
        if not isinstance(op, Copy):
            continue
        target = variables[op.destination].placed
        for shared, numbers in zip(copy_overlaps(op, variables), moved_elements(op, variables)):
            source = shared.source
            owner: dict[int, int] = {}
            elements = np.arange(1, prod(source.shape) + 1).reshape(source.shape)
            for cell in reversed(range(source.cells)):
                held = [i[i >= 0] for i in cell_indices(source, cell)]
                block = elements[np.ix_(*held)]
                owner |= dict.fromkeys(block.ravel().tolist(), cell)
            sent: list[set[int]] = [set() for _ in range(source.cells)]
            for cell in range(target.cells):
                index = [i[i >= 0] for i in cell_indices(target, cell)]
                wanted = [e for e in numbers[np.ix_(*index)].ravel().tolist() if e]
                tile = cell + target.first_tile
                away = [e for e in wanted if owner[e] + source.first_tile != tile]
                assert shared.received[cell] == len(away)
                for e in away:
                    sent[owner[e]].add(e)
            exact = np.array([len(s) for s in sent])
            assert (sent_elements(shared) >= exact).all()
            assert (sent_elements(shared) <= shared.sent).all()
            if target.is_partition and target.replicas == 1 and op.spaces is None:
                assert (sent_elements(shared) == exact).all()


@given(planned_programs())
@settings(max_examples=12)
def test_every_program_has_a_price(program: Program):
    target = resolve_target(program.target)
    prices = price(lowered(program), target)
    assert all(p.times == 1 and p.busiest_tile < target.tiles for p in prices)
    assert totals(prices).cycles >= len(prices) * 118


def test_a_plan_of_fewer_parts_is_dearer():
    (op,) = (
        o for o in exchange_module(step("s", relu("w", "a"))).walk() if isinstance(o, Vertices)
    )
    cycles = [
        busiest_tile_cycles(op.structure(), Plan((p,)), [FLOAT] * 2, TINY) for p in (1, 2, 4, 24)
    ]
    assert cycles == sorted(cycles, reverse=True)
