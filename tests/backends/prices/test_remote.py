"""What loads from remote memory, and stores to it, add to the price of a superstep."""

from math import ceil

import numpy as np
import pytest

from abele.backends.prices.cost import sync_cycles
from abele.backends.prices.price import price
from abele.backends.prices.step_charges import step_charges
from abele.backends.target import resolve_target
from abele.ir.text import parse_module

from ...strategies import context

REMOTE = "remote.gbytes_per_s=2,remote.latency_ns=100"


def program(layouts: list[str], ops: str):
    """A program of exchange with a variable of 1024 float32 for each layout, and ops in a step."""
    made = context()
    digest = made.blobs.add(np.zeros(1024, np.float32)).digest
    variables = "".join(
        f"exchange.variable @x{i} at {4096 * i} : tensor<1024xf32> layout <{each}>\n"
        for i, each in enumerate(layouts)
    )
    return parse_module(
        f'exchange.remote @w : tensor<1024xf32> = blob <"{digest}">\n'
        f'exchange.remote @v : tensor<1024xf32> = blob <"{digest}">\n{variables}'
        f'func.func @main() {{ exchange.superstep @s {{ exchange.sync "external" {ops} }} '
        "func.return }",
        made,
    )


def cycles(target, moved: int) -> int:
    clock = target.clock_hz
    return ceil(moved / 2e9 * clock) + ceil(100e-9 * clock)


LOAD = "exchange.load @w -> @x0 : tensor<1024xf32>"


def test_a_load_takes_its_bytes_over_the_bandwidth_and_the_latency():
    target = resolve_target(f"tiny:4,{REMOTE}")
    module = program(["[1024 by 4] (d0) of [1024]"], LOAD)
    (found,) = price(module, target)
    assert found.exchange_cycles == cycles(target, 4096)
    assert found.sync_cycles == sync_cycles(target, "external")


def test_what_several_tiles_hold_crosses_the_link_once():
    target = resolve_target(f"tiny:4,{REMOTE}")
    everywhere = program(["[2 by 1, 1024] (d1) of [1024]"], LOAD)
    assert price(everywhere, target)[0].exchange_cycles == cycles(target, 4096)


def test_loads_of_a_superstep_share_the_link_and_wait_once():
    target = resolve_target(f"tiny:4,{REMOTE}")
    apart = ["[1024 by 2] (d0) of [1024]", "[1024 by 2] (d0) of [1024] at 2"]
    module = program(apart, f"{LOAD} exchange.load @v -> @x1 : tensor<1024xf32>")
    assert price(module, target)[0].exchange_cycles == cycles(target, 8192)


def test_each_chip_has_a_link_of_its_own():
    target = resolve_target(f"tiny:4,links.topology=ladder,links.chips=2,{REMOTE}")
    module = program(["[1024 by 4] (d0) of [1024]"], LOAD)
    assert price(module, target)[0].exchange_cycles == cycles(target, 2048)


@pytest.mark.parametrize("faster", [2, 10])
def test_a_faster_link_takes_fewer_cycles(faster: int):
    module = program(["[1024 by 4] (d0) of [1024]"], "exchange.store @x0 -> @w : tensor<1024xf32>")
    slow, fast = (
        price(module, resolve_target(f"tiny:4,remote.latency_ns=0,remote.gbytes_per_s={n}"))[0]
        for n in (1, faster)
    )
    assert slow.exchange_cycles == pytest.approx(faster * fast.exchange_cycles, abs=faster)


def test_a_copy_beside_a_load_has_only_its_own_part_of_the_exchange():
    target = resolve_target(f"tiny:4,{REMOTE}")
    halves = ["[1024 by 2] (d0) of [1024]", "[1024 by 2] (d0) of [1024] at 2"]
    module = program(["[1024 by 4] (d0) of [1024]", *halves], f"{LOAD} exchange.move [@x1] -> @x2")
    (step,) = step_charges(module, target).steps
    (copy,) = step.operations
    rest = step.price.exchange_cycles - cycles(target, 4096)
    assert 0 < copy.exchange_cycles == pytest.approx(rest)
    assert copy.critical_exchange == pytest.approx(rest)
