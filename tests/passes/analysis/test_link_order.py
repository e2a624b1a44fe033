"""Loads from remote memory and stores to it move to where the tiles compute for long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lengths import large
from some_models import model, node, random

from abele.dialects.steps import Copy, Load, Store, Superstep
from abele.passes import schedule_supersteps
from abele.tools import Training
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable

SIZE, LAYERS = 48, 4


def compiled(target: str, aside: int, **options: Any) -> Executable:
    """A step of training some layers with Adam, with all states in remote memory."""
    weights = {f"w{i}": random((SIZE, SIZE), i) for i in range(LAYERS)}
    nodes = [node("MatMul", f"h{i} w{i}", f"h{i + 1}") for i in range(LAYERS)]
    made = model(nodes, {"h0": [8, SIZE]}, [f"h{LAYERS}"], weights)
    train = Training("mean_square", optimizer="adam")
    return compile_model(
        made, target, io_tiles=aside, train=train, remote=["*"], cache=False, **options
    )


def results(exe: Executable) -> list[bytes]:
    rng = np.random.default_rng(0)
    inputs = {
        each.name: rng.standard_normal(each.shape).astype(each.dtype)
        for each in exe.signature.inputs
    }
    return [value.tobytes() for _ in range(2) for value in exe.run(inputs).values()]


def check_order(exe: Executable) -> None:
    """Assert that each load comes before its copy, each store after its copy, and that those of one
    state stay in order: a load first, as every state is read before it is written."""
    copies: dict[str, int] = {}
    links: list[tuple[int, Load | Store]] = []
    for at, op in enumerate(exe.module_at("exchange").walk()):
        if isinstance(op, Copy):
            copies |= dict.fromkeys((*op.sources, op.destination), at)
        elif isinstance(op, Load | Store):
            links.append((at, op))
    stored: set[str] = set()
    for at, op in links:
        if isinstance(op, Load):
            assert at < copies[op.destination]
            assert op.remote.string_value() not in stored
        else:
            assert at > copies[op.source]
            stored.add(op.remote.string_value())


@pytest.mark.parametrize(
    ("target", "options"),
    [
        large("tiny:10", {}),
        ("tiny:20,links.topology=ladder,links.chips=2", {"replicas": 2}),
    ],
)
def test_steps_take_fewer_cycles_and_give_the_same_bits(
    target: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    ordered = compiled(target, 2, **options)
    monkeypatch.setattr(schedule_supersteps, "order_links", lambda *_: None)
    plain = compiled(target, 2, **options)
    check_order(ordered)
    check_order(plain)
    assert results(ordered) == results(plain)
    assert ordered.profile["cycles"] < 0.95 * plain.profile["cycles"]
    assert ordered.profile["remote_hidden_cycles"] > plain.profile["remote_hidden_cycles"]


def test_loads_come_no_further_ahead_than_the_io_tiles_have_room():
    usual = compiled("tiny:10", 2)
    scarce = compiled("tiny:10,memory.bytes_per_tile=40000", 2)
    assert most_ahead(scarce) < most_ahead(usual)
    assert scarce.profile["max_tile_bytes"] <= 40000


def most_ahead(exe: Executable) -> int:
    """The most states that have come to I/O tiles and have not been copied yet."""
    waiting: set[str] = set()
    most = 0
    for op in exe.module_at("exchange").walk():
        if isinstance(op, Load):
            waiting.add(op.destination)
        elif isinstance(op, Copy):
            waiting -= {*op.sources}
        elif isinstance(op, Superstep):
            most = max(most, len(waiting))
    return most
