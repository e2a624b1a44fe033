"""Joules and areas, against work that is counted by hand."""

from __future__ import annotations

import pytest

from abele.backends.prices.energy import Joules, chip_mm2, run_joules
from abele.backends.prices.price import program_price
from abele.backends.prices.workload import macs_of
from abele.backends.target import resolve_target
from abele.dialects.steps import Vertices
from abele.ir.text import parse_module

from ...strategies import context
from ..exchange_text import SHIFT, exchange_module, relu, step, variable

PRODUCT = """
exchange.variable @a at 0 : tensor<8x6x{T}> layout <[8 by 4, 6] (d0, d1) of [8, 6]>
exchange.variable @b at 200 : tensor<6x5x{T}> layout <[8 by 4, 6, 5] (d1, d2) of [6, 5]>
exchange.variable @c at 400 : tensor<8x5x{T}> layout <[8 by 4, 5] (d0, d1) of [8, 5]>
func.func @main() {{
  control.repeat 3 () : () -> () {{
    exchange.superstep @s {{
      exchange.sync "internal"
      exchange.compute space <[m = 8, n = 5, k = 6 reduction] (m, k) of [8, 6], (k, n) of [6, 5]
          -> (m, n) of [8, 5]> body <mul sum> plan <split [4, 1, 1]> reads [@a, @b] writes @c
    }}
    control.yield
  }}
  func.return
}}
"""
MACS = 3 * 8 * 5 * 6


def energy(module, facts: str) -> Joules | None:
    target = resolve_target(facts)
    return run_joules(module, program_price(module, target), target)


def product(dtype: str):
    return parse_module(PRODUCT.format(T=dtype), context())


def test_a_target_without_facts_gives_no_joules():
    assert energy(product("f16"), "tiny") is None


@pytest.mark.parametrize(
    ("dtype", "key"),
    # A narrow float is added up in float32.
    [("f16", "float16_float32"), ("bf16", "float16_float32"), ("f32", "float32_float32")],
)
def test_products_cost_what_their_types_cost(dtype, key):
    found = energy(product(dtype), f"tiny,energy.{key}_pj_per_mac=2.5")
    assert found is not None
    assert found.by_kind == {"compute": pytest.approx(MACS * 2.5e-12)}
    assert found.whole
    assert found.unknown == ("memory", "exchange", "static power")


def test_products_of_integers_have_a_fact_of_their_own():
    found = energy(product("i32"), "tiny,energy.integer_pj_per_mac=2")
    assert found is not None
    assert found.by_kind == {"compute": pytest.approx(MACS * 2e-12)}


def test_products_of_types_without_facts_leave_no_sum_of_all():
    found = energy(
        product("f32"), "tiny,energy.float16_float16_pj_per_mac=2,energy.memory_pj_per_byte=1"
    )
    assert found is not None
    assert not found.whole
    assert "compute" not in found.by_kind
    assert "products of float32_float32".replace("_", ", sums of ") in found.unknown


def test_a_vertex_reads_its_blocks_and_writes_its_result_once():
    found = energy(product("f32"), "tiny,energy.memory_pj_per_byte=1")
    assert found is not None
    # Each of four tiles has all of @b.
    size = 3 * 4 * (8 * 6 + 4 * 6 * 5 + 8 * 5)
    assert found.by_kind == {"memory": pytest.approx(size * 1e-12)}


def test_a_copy_reads_what_it_sends_and_writes_what_it_fills():
    module = exchange_module(step("s", f"exchange.move [@w] -> @a moves [{SHIFT}]"))
    found = energy(module, "tiny,energy.memory_pj_per_byte=1,energy.exchange_pj_per_byte=10")
    assert found is not None
    # The first block of @a is padding, which is written but not sent.
    assert found.by_kind["memory"] == pytest.approx((3 * 24 + 4 * 24) * 1e-12)
    assert found.by_kind["exchange"] == pytest.approx(3 * 24 * 10e-12)
    assert found.total == pytest.approx(sum(found.by_kind.values()))


def test_a_word_that_four_tiles_want_is_read_once_and_written_four_times():
    everywhere = variable("h", 200, "<[4 by 4, 24] (d1) of [24]>")
    module = exchange_module(step("s", "exchange.move [@w] -> @h"), everywhere)
    found = energy(module, "tiny,energy.memory_pj_per_byte=1")
    assert found is not None
    # Each tile also copies its own part.
    read = 4 * 24 + 4 * 24
    assert found.by_kind["memory"] == pytest.approx((read + 4 * 96) * 1e-12)


def test_elements_without_products_take_no_energy_of_products():
    module = exchange_module(step("s", relu("a", "b")))
    assert all(macs_of(op.structure()) == 0 for op in module.walk() if isinstance(op, Vertices))
    found = energy(module, "tiny,energy.float32_float32_pj_per_mac=2")
    assert found is not None
    assert found.total == 0


def test_static_power_is_that_of_all_chips_for_the_whole_run():
    facts = "energy.static_watts_per_chip=3,clock_hz=1e9"
    chips = f"tiny:16,links.topology=ladder,links.chips=4,{facts}"
    module = exchange_module(step("s", relu("a", "b")))
    for target, count in ((f"tiny,{facts}", 1), (chips, 4)):
        cycles = program_price(module, resolve_target(target)).cycles
        found = energy(module, target)
        assert found is not None
        assert found.by_kind == {"static": pytest.approx(count * 3 * cycles * 1e-9)}
        assert ("links" in found.unknown) == (count > 1)


def test_a_byte_takes_energy_on_each_link_of_its_way():
    far = variable("h", 200, "<[24] (d0) of [24] at 12>")
    module = exchange_module(step("s", "exchange.move [@w] -> @h", zone="all"), far)
    facts = "tiny:16,links.topology=ladder,links.chips=4,energy.link_pj_per_byte=2"
    found = energy(module, facts)
    assert found is not None
    # From chip 0 to chip 3 there are two links.
    assert found.by_kind == {"links": pytest.approx(2 * 96 * 2e-12)}


def test_the_published_die_has_an_area_and_other_chips_have_the_sum_of_known_parts():
    assert chip_mm2(resolve_target("mk2")) == chip_mm2(resolve_target("mk2x4")) == 823
    assert chip_mm2(resolve_target("mk2:736")) is None
    assert chip_mm2(resolve_target("mk2,memory.bytes_per_tile=524288")) is None
    assert chip_mm2(resolve_target("tiny,area.tile_mm2=0.5")) is None
    parts = "area.tile_mm2=0.5,area.memory_mm2_per_mib=2,area.rest_mm2=7"
    assert chip_mm2(resolve_target(f"tiny:8,{parts}")) == 7 + 8 * (0.5 + 2 / 4)
