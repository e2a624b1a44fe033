"""I/O tiles have a clock of their own, by hand arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from abele.backends.prices.price import ProgramPrice, program_price
from abele.backends.target import resolve_target
from abele.ir.text import parse_module

from ...strategies import context

TURNS = 5
FAST, SLOW = "remote.gbytes_per_s=1000,remote.latency_ns=0", "remote.gbytes_per_s=0.1"
WORK = 12
"""Copies from tile to tile that stand for computing."""

LOAD = '"external" exchange.load @w -> @aside : tensor<1024xf32>'
ARRIVE = '"internal" exchange.move [@aside] -> @x'
LEAVE = '"internal" exchange.move [@x] -> @aside'
STORE = '"external" exchange.store @aside -> @w : tensor<1024xf32>'
DIRECT = '"external" exchange.store @x -> @w : tensor<1024xf32>'
COMPUTE = ['"internal" exchange.move [@x] -> @y', '"internal" exchange.move [@y] -> @x'] * (
    WORK // 2
)


def priced(steps: list[str], link: str, turns: int = 1) -> ProgramPrice:
    """A program whose body runs some times, on two tiles and an I/O tile."""
    made = context()
    digest = made.blobs.add(np.zeros(1024, np.float32)).digest
    places = {"aside": 2, "x": 0, "y": 1}
    variables = "".join(
        f"exchange.variable @{name} at {4096 * i} : "
        f"tensor<1024xf32> layout <[1024 by 1] (d0) of [1024] at {tile}>\n"
        for i, (name, tile) in enumerate(places.items())
    )
    body = " ".join(
        f"exchange.superstep @s{k} {{ exchange.sync {s} }}" for k, s in enumerate(steps)
    )
    module = parse_module(
        f'exchange.remote @w : tensor<1024xf32> = blob <"{digest}">\n{variables}'
        f"func.func @main() {{ control.repeat {turns} () : () -> () {{ {body} control.yield }} "
        "func.return }",
        made,
    )
    return program_price(module, resolve_target(f"tiny:3,io_tiles=1,{link}"))


def cycles_of(price: ProgramPrice) -> list[int]:
    return [each.cycles for each in price.supersteps]


def test_loads_but_the_first_are_hidden_behind_longer_compute():
    found = priced([LOAD, ARRIVE, *COMPUTE], FAST, TURNS)
    load, arrive, *work = cycles_of(found)
    assert load < sum(work)
    assert found.cycles == load + TURNS * (arrive + sum(work))
    assert found.remote_cycles == (TURNS * load, (TURNS - 1) * load)


def test_compute_but_the_last_is_hidden_behind_longer_loads():
    found = priced([LOAD, ARRIVE, *COMPUTE], SLOW, TURNS)
    load, arrive, *work = cycles_of(found)
    assert load > sum(work)
    assert found.cycles == TURNS * (load + arrive) + sum(work)
    assert found.remote_cycles == (TURNS * load, 0)


def test_a_load_waits_for_the_store_before_it():
    found = priced([LOAD, ARRIVE, *COMPUTE, LEAVE, STORE], FAST, TURNS)
    assert found.cycles == TURNS * sum(cycles_of(found))
    assert found.remote_cycles[1] == 0


def test_a_store_is_hidden_behind_compute_that_follows():
    found = priced([LEAVE, STORE, *COMPUTE], FAST, TURNS)
    leave, store, *work = cycles_of(found)
    assert found.cycles == TURNS * (leave + sum(work))
    assert found.remote_cycles == (TURNS * store, TURNS * store)


def test_io_tiles_wait_for_what_goes_to_remote_memory_without_them():
    found = priced([DIRECT, LOAD, ARRIVE], SLOW)
    assert found.cycles == sum(cycles_of(found))
    assert found.remote_cycles[1] == 0


def test_without_io_tiles_nothing_is_hidden():
    found = priced([DIRECT, *COMPUTE], SLOW, TURNS)
    assert found.cycles == TURNS * sum(cycles_of(found))


@pytest.mark.parametrize("link", [FAST, SLOW])
def test_waits_of_both_zones_add_up_to_the_run(link: str):
    found = priced([LOAD, ARRIVE, *COMPUTE], link, TURNS)
    (chip,) = found.chips
    assert chip == found.zones[0]
    assert chip.busy.total + chip.waiting_cycles == chip.end == found.cycles
    assert len(found.zones) == 2
    assert found.zones[1].waiting_cycles >= 0
