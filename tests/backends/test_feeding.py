"""Items a second: the slowest of the machine and of what feeds it."""

import pytest

from abele.backends.feeding import HOST, MACHINE, NETWORK, STORAGE, feeding, items_of
from abele.backends.target import resolve_target

IMAGE = 3 * 224 * 224 * 2
"""Bytes of an input of ResNet-50 in float16."""


def fed(facts: str = "", *, items: int = 16, cycles: int = 10**6, image: int = IMAGE):
    target = resolve_target(f"mk2{facts and ','}{facts}")
    return feeding(items, cycles, items * image, items * 4000, target)


def test_100_gigabit_ethernet_feeds_41500_images_of_resnet50():
    found = fed("host.link_gbytes=12.5", cycles=0)
    assert found.rates[NETWORK] == pytest.approx(41_520, rel=1e-3)


def test_what_nobody_gave_is_absent():
    found = fed()
    assert list(found.rates) == [MACHINE]
    assert found.bound_by == MACHINE
    assert found.items_per_s == found.rates[MACHINE]


@pytest.mark.parametrize(
    ("facts", "part", "rate"),
    [
        ("host.items_per_s=100", HOST, 100),
        ("host.link_gbytes=0.001", NETWORK, 1e6 / IMAGE),
        ("storage.gbytes=0.002", STORAGE, 2e6 / IMAGE),
        ("storage.gbytes=0.002,host.items_per_s=5,host.link_gbytes=0.001", NETWORK, 1e6 / IMAGE),
    ],
)
def test_the_slowest_part_binds(facts: str, part: str, rate: float):
    found = fed(facts)
    assert found.bound_by == part
    assert found.items_per_s == pytest.approx(rate)


def test_a_run_takes_its_cycles_its_transfers_and_its_waits():
    target = resolve_target("mk2,host.latency_ns=5000,host.bytes_per_cycle=8")
    found = feeding(2, 1000, 800, 80, target)
    seconds = (1000 + 110) / target.clock_hz + 4 * 5e-6
    assert found.rates[MACHINE] == pytest.approx(2 / seconds)


def test_prefetched_inputs_wait_only_at_their_end():
    slow, fast = (fed(f"host.latency_ns=1e6,host.prefetch={n}") for n in (0, 1))
    saved = slow.items / slow.items_per_s - fast.items / fast.items_per_s
    assert saved == pytest.approx(1e-3)
    assert fed("host.latency_ns=1e6,host.prefetch=3").rates == fast.rates


def test_inputs_that_take_no_bytes_need_no_network():
    assert list(fed("host.link_gbytes=1", image=0).rates) == [MACHINE]


@pytest.mark.parametrize(
    ("shapes", "items"),
    [
        ([(16, 3, 8, 8)], 16),
        ([(16, 3, 8, 8), (16,), ()], 16),
        ([(16, 3), (8, 3)], 1),
        ([()], 1),
        ([], 1),
        ([(0, 3)], 1),
    ],
)
def test_an_item_is_an_entry_of_the_first_axis(shapes: list[tuple[int, ...]], items: int):
    assert items_of(shapes) == items
