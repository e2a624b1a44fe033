"""Prices of operations against those of the supersteps that hold them."""

from __future__ import annotations

from hypothesis import given, settings

from abele.backends.prices import cost
from abele.backends.prices.price import price
from abele.backends.prices.price_operations import price_operations
from abele.backends.target import resolve_target

from ...strategies import Program, planned_programs
from ..exchange_text import SHIFT, exchange_module, lowered, relu, step

TINY = resolve_target("tiny")


def test_each_operation_has_its_own_cycles_and_bytes():
    text = step("s", f"exchange.move [@w] -> @a moves [{SHIFT}]", relu("w", "b"))
    module = exchange_module(f"control.repeat 3 () : () -> () {{ {text} control.yield }}")
    (step_price,) = price(module, TINY)
    copy, vertices = price_operations(module, TINY).values()
    assert (copy.operation, copy.writes, copy.superstep, copy.times) == (
        "exchange.move",
        "a",
        "s",
        3,
    )
    assert copy.exchange_bytes == 3 * 24
    assert copy.exchange_cycles == cost.least_exchange_cycles(24, 24, TINY)
    # Tile 0 gets no element but six of padding.
    assert copy.compute_cycles == cost.fill_cycles(24, TINY)
    assert (vertices.operation, vertices.node) == ("exchange.compute", "b/relu")
    assert (vertices.exchange_cycles, vertices.exchange_bytes) == (0, 0)
    assert vertices.tile_bytes == copy.tile_bytes == 24
    assert step_price.compute_cycles == copy.compute_cycles + vertices.compute_cycles


@settings(max_examples=20)
@given(planned_programs())
def test_operations_bound_their_superstep(program: Program):
    module = lowered(program)
    found = price_operations(module, TINY)
    for step_price in price(module, TINY):
        operations = [each for each in found.values() if each.superstep == step_price.name]
        assert step_price.exchange_bytes == sum(each.exchange_bytes for each in operations)
        each = [operation.cycles for operation in operations]
        whole = step_price.cycles - step_price.sync_cycles
        assert max(each, default=0) <= whole <= sum(each) + len(each)
