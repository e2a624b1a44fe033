"""What moves between chips, against programs whose copies are known."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest

from abele.backends.links.links import routes_of
from abele.backends.prices.crossings import Crossings, crossings
from abele.backends.prices.step_charges import step_charges
from abele.backends.target import resolve_target
from abele.ir.text import parse_module

from ...strategies import context

FOUR = "tiny:16,links.topology=ladder,links.chips=4,links.first_word_ns=0"

TEXT = """
exchange.variable @x at 0 : tensor<64xf32> layout <[64 by 4] (d0) of [64]>
exchange.variable @far at 64 : tensor<64xf32> layout <[64 by 4] (d0) of [64] at 12>
exchange.variable @all at 128 : tensor<64xf32>
    layout <[16 by 16 across 4, 64] (d1) of [64] apart 4>
func.func @main() {
  exchange.superstep @away { exchange.sync "all" exchange.move [@x] -> @far }
  control.repeat 3 () : () -> () {
    exchange.superstep @spread { exchange.sync "all" exchange.move [@x] -> @all }
    control.yield
  }
  func.return
}
"""


def found(target: str = FOUR) -> Crossings:
    machine = resolve_target(target)
    return crossings(step_charges(parse_module(TEXT, context()), machine).steps, machine)


def test_each_pair_of_chips_has_the_bytes_of_all_executions():
    crossed = found()
    pairs = zip(crossed.source.tolist(), crossed.destination.tolist(), strict=True)
    # Every tile of a chip wants all of @x, which crosses to that chip once.
    expected = {(0, 1): 3 * 256, (0, 2): 3 * 256, (0, 3): 256 + 3 * 256}
    assert dict(zip(pairs, crossed.bytes.tolist(), strict=True)) == expected
    assert crossed.step_bytes.tolist() == [256, 3 * 256]


def test_a_link_carries_the_bytes_of_all_pairs_whose_way_it_is_on():
    crossed, names = found(), resolve_target(FOUR).links.link_names()
    loads = {name: load for name, load in zip(names, crossed.link_bytes.tolist()) if load}
    # From chip 0 to chip 3, bytes cross the rung first.
    assert loads == {"0 -> 1": 3 * 256 + 4 * 256, "0 -> 2": 3 * 256, "1 -> 3": 4 * 256}
    rung = names.index("0 -> 1")
    assert crossed.link_seconds[rung] == pytest.approx(7 * 256 / 58.4e9)


def test_the_exchange_takes_as_long_as_the_busiest_link_of_one_execution():
    target = resolve_target(f"{FOUR},links.rung_gbytes=0.1,links.rail_gbytes=0.1")
    away, _ = step_charges(parse_module(TEXT, context()), target).steps
    crossed = crossings((away,), target)
    assert away.price.exchange_cycles == ceil(crossed.link_seconds.max() * target.clock_hz)


def test_one_chip_has_no_crossings():
    crossed = found("tiny:16")
    assert not len(crossed.pair)
    assert not len(crossed.link_bytes)
    assert not crossed.step_bytes.any()
    assert not len(routes_of(resolve_target("tiny:16").links).link)


def test_loads_of_links_add_up_to_bytes_times_the_length_of_their_way():
    crossed, routes = found(), routes_of(resolve_target(FOUR).links)
    hops = np.bincount(routes.pair, minlength=16)[crossed.pair]
    assert crossed.link_bytes.sum() == (hops * crossed.bytes).sum()
