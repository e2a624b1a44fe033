"""Prices on a mesh, by hand: distance costs, and links are shared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from some_models import convolutions

from abele.backends.fabrics.mesh import Mesh
from abele.backends.prices.price import busiest_of, charge_copy, no_charge, price, variables_of
from abele.backends.target import PRESETS, resolve_target
from abele.backends.target.target import MK2
from abele.dialects.steps import Copy, Superstep
from abele.tools import compile_model
from abele.tools.debug.run_check import check_run

from ...strategies import Program, planned_programs
from ..exchange_text import exchange_module, lowered, step, variable
from .some_traffic import add_copy, blocks, traffic

# Four tiles in a column; ports bring one byte per cycle, and links so many that they do not count.
WIDE = Mesh(
    send_bytes_per_cycle=1,
    receive_bytes_per_cycle=1,
    efficiency=1,
    rows=4,
    hop_cycles=10,
    row_bytes_per_cycle=1e6,
    column_bytes_per_cycle=1e6,
)
NARROW = replace(WIDE, hop_cycles=0, column_bytes_per_cycle=1)


def test_far_neighbours_cost_more_than_near_ones():
    """The same 24 bytes come to each of four tiles: from the next column, and from the fourth."""
    near, far = (traffic(blocks(24, 4, 0), blocks(24, 4, 4 * c), 20) for c in (1, 4))
    assert near.received.sum() == far.received.sum()
    assert WIDE.exchange_cycles(near).tolist() == [24 + 10] * 8 + [0] * 12
    assert WIDE.exchange_cycles(far).tolist() == [64] * 4 + [0] * 12 + [64] * 4
    # On a crossbar, they cost the same.
    same = [MK2.exchange.exchange_cycles(each).max() for each in (near, far)]
    assert same[0] == same[1] == MK2.exchange.least_cycles(24, 24)


def test_a_tile_waits_for_its_farthest_sender_and_for_what_it_sends():
    # Tile 0 has all, and each tile of the column wants a quarter.
    found = WIDE.exchange_cycles(traffic(blocks(16, 1, 0), blocks(16, 4, 0), 4))
    assert found.tolist() == [48 + 30, 16 + 10, 16 + 20, 16 + 30]


def test_the_links_of_a_column_saturate():
    """Eight tiles send 40 bytes each to tiles of their own: down one column, or across to the next.

    Each tile sends and receives as many bytes; only the column's middle link is shared by all.
    """
    mesh = replace(NARROW, rows=16)
    down = traffic(blocks(80, 8, 0), blocks(80, 8, 8), 32)
    across = traffic(blocks(80, 8, 0), blocks(80, 8, 16), 32)
    assert mesh.exchange_cycles(across).max() == 40
    assert mesh.exchange_cycles(down).max() == 8 * 40
    # Twice as wide links take half the time, until the ports decide.
    for wider, cycles in ((2, 160), (4, 80), (100, 40)):
        assert replace(mesh, column_bytes_per_cycle=wider).exchange_cycles(down).max() == cycles


def test_trunks_between_columns_saturate():
    """Eight columns of four tiles send to the next eight: all of it crosses the trunk between."""
    mesh = replace(NARROW, column_bytes_per_cycle=1e6, row_bytes_per_cycle=1)
    moved = traffic(blocks(320, 32, 0), blocks(320, 32, 32), 64)
    # 32 tiles x 40 bytes over four rows; without other columns in between, each row has its own.
    assert mesh.exchange_cycles(moved).max() == 32 * 40 // 4
    near = traffic(blocks(320, 32, 0), blocks(320, 32, 4), 64)
    assert mesh.exchange_cycles(near).max() == 40


def test_a_link_carries_a_word_once_however_many_tiles_want_it():
    mesh = replace(NARROW, rows=8)
    one = traffic(blocks(10, 1, 0), blocks(10, 1, 7), 8)
    all_ = traffic(blocks(10, 1, 0), blocks(10, 1, 1, copies=7), 8)
    assert mesh.exchange_cycles(one).max() == mesh.exchange_cycles(all_).max() == 40
    # Words of two tiles do not share the last link.
    two = traffic(blocks(10, 1, 0), blocks(10, 1, 7), 8)
    add_copy(two, blocks(10, 1, 1), blocks(10, 1, 6))
    assert mesh.exchange_cycles(two).tolist() == [80, 80, 0, 0, 0, 0, 80, 80]


@given(planned_programs())
@settings(max_examples=20)
def test_the_price_is_never_below_the_bound_of_the_planner(program: Program):
    target = replace(resolve_target(program.target), exchange=Mesh(rows=3))
    module = lowered(program)
    variables = variables_of(module)
    for op in module.walk():
        if isinstance(op, Copy):
            charge = no_charge(target.tiles + 16)
            charge_copy(op, variables, target, charge)
            moved, fabric = charge.traffic, target.exchange
            least = fabric.least_cycles(moved.arriving, moved.sent, moved.control)
            assert (fabric.exchange_cycles(moved) >= least).all()


@pytest.mark.parametrize("fabric", ["mesh", "crossbar"])
def test_the_price_of_a_program_depends_on_where_its_tiles_are(fabric: str):
    target = resolve_target(f"tiny:40,exchange.fabric={fabric}")
    found = [
        price(
            exchange_module(
                step("s", "exchange.move [@w] -> @h"),
                variable("h", 200, f"<[24 by 4] (d0) of [24] at {n}>"),
            ),
            target,
        )[0]
        for n in (4, 36)
    ]
    assert found[0].exchange_bytes == found[1].exchange_bytes == 24 * 4
    assert (found[0].exchange_cycles < found[1].exchange_cycles) == (fabric == "mesh")


def test_operations_of_a_superstep_share_its_links():
    """Two copies down one column: together they take as long as their bytes on one link."""
    target = resolve_target(
        "tiny:16,exchange.fabric=mesh,exchange.rows=16,exchange.column_bytes_per_cycle=0.01"
    )
    places = [
        variable(n, 200 + 30 * k, f"<[24 by 4] (d0) of [24] at {at}>")
        for k, (n, at) in enumerate((("h", 8), ("i", 12)))
    ]
    both = exchange_module(
        step("s", "exchange.move [@w] -> @h", "exchange.move [@w] -> @i"), "".join(places)
    )
    (found,) = price(both, target)
    (op, _) = (o for o in both.walk() if isinstance(o, Copy))
    assert isinstance(op.parent_op(), Superstep)
    charge = no_charge(16)
    charge_copy(op, variables_of(both), target, charge)
    assert busiest_of(charge, target).exchange_cycles == 96 * 100 + 8 * 2
    assert found.exchange_cycles == 2 * 96 * 100 + 12 * 2


def test_a_network_compiles_runs_and_is_priced_on_a_mesh():
    exe = compile_model(convolutions(), target="mesh:24,exchange.rows=6", cache=False)
    random = np.random.default_rng(0)
    inputs = {each.name: random.normal(size=each.shape).astype(np.float32) for each in exe.inputs}
    verdict = check_run(exe, inputs, exe.run(inputs), "exchange")
    assert verdict.passed, verdict.problem
    crossbar = replace(exe.target, exchange=MK2.exchange)
    module = exe.module_at("exchange")
    own, other = (price(module, target) for target in (exe.target, crossbar))
    assert [each.exchange_bytes for each in own] == [each.exchange_bytes for each in other]
    assert [each.compute_cycles for each in own] != []
    assert sum(each.cycles for each in own) == exe.profile["cycles"]


def test_the_preset_is_mk2_on_another_fabric():
    # Nobody has published what such a chip would draw, or how large it would be.
    own = {"exchange": MK2.exchange, "energy": MK2.energy, "area": MK2.area}
    assert replace(PRESETS["mesh"], **own, base="mk2", name="mk2") == MK2
    assert isinstance(PRESETS["mesh"].exchange, Mesh)
