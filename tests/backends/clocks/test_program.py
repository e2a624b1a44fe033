"""Clocks of random programs against a slow simulation of every event, and large numbers."""

from __future__ import annotations

from random import Random
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.clocks.advance import Advance
from abele.backends.clocks.executions import Executions
from abele.backends.clocks.program import ProgramClocks
from abele.backends.clocks.section import MOST_TIMES
from abele.backends.functions import functions_of
from abele.backends.target import resolve_target
from abele.backends.timeline import Execution, timeline
from abele.dialects.steps import Superstep
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp

from ...strategies import context
from .clock_programs import random_advances, random_program, simulated

seeds = st.integers(0, 2**32)


def advance(group: list[int], *cycles: int) -> Advance:
    """An advance of computing zones, in which all take part that compute or meet others."""
    compute = np.array(cycles)
    none = np.zeros_like(compute)
    part = (compute > 0) | (np.array(group) >= 0)
    return Advance(part, np.array(group), none, none, none, compute, compute)


def clocks_of(text: str, **advances: Advance) -> ProgramClocks:
    module = parse_module(text, context())
    steps = {op.sym_name.data: op for op in module.walk() if isinstance(op, Superstep)}
    zones = len(next(iter(advances.values())).tile)
    return ProgramClocks(
        functions_of(module), {steps[name]: each for name, each in advances.items()}, zones
    )


def critical(clocks: ProgramClocks) -> tuple[int, dict[str, int]]:
    """The cycles of a run, and the cycles of each superstep on its critical path."""
    end, taken = clocks.run
    found = {
        step.sym_name.data: sum(
            int(n) * int(c) for n, c in zip(each, clocks.advances[step].cycles, strict=True)
        )
        for step, each in taken.items()
    }
    return int(end.max()), found


@settings(max_examples=80, deadline=None)
@given(seeds, st.integers(1, 5))
def test_clocks_are_those_of_a_simulation_of_every_event(seed: int, zones: int):
    random = Random(seed)
    module = random_program(random)
    advances = random_advances(module, random, zones)
    if not advances:
        return
    clocks = ProgramClocks(functions_of(module), advances, zones)
    end, started = simulated(module, advances)
    found, taken = clocks.run
    assert found.tolist() == end
    times = Executions(clocks).entry()
    assert {s: len(each) for s, each in started.items()} == {s: times.get(s, 0) for s in started}
    # The critical path accounts for every cycle once.
    assert critical(clocks)[0] == sum(critical(clocks)[1].values())
    for step, each in taken.items():
        assert 0 <= each.sum() <= times.get(step, 0)
    busy = sum(np.array(advances[s].cycles) * n for s, n in times.items())
    serial = sum(int(advances[s].cycles.max()) * n for s, n in times.items())
    assert np.max(busy, initial=0) <= max(end) <= serial


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 4), st.booleans(), st.sampled_from((0, 1, 7, 30, 10**6)))
def test_timelines_are_those_of_a_simulation_of_every_event(
    seed: int, chips: int, aside: bool, most: int
):
    random = Random(seed)
    module = random_program(random)
    chips = 1 if chips == 1 else 2 * (chips // 2)
    zones = chips * (1 + aside)
    advances = random_advances(module, random, zones)
    if not advances:
        return
    links = f",links.topology=ladder,links.chips={chips}" if chips > 1 else ""
    target = resolve_target(f"tiny:{4 * chips}{links},io_tiles={int(aside)}")
    end, started = simulated(module, advances)
    run = list(timeline(module, advances, target, most))
    seen: dict[Superstep, int] = dict.fromkeys(advances, 0)
    for each in run:
        assert (each.arrives <= each.starts).all()
        assert (each.starts <= each.ends).all()
        if isinstance(each, Execution) and most == 10**6:
            starts = [-1] * zones
            for zone, start in zip(each.zones, each.starts, strict=True):
                starts[zone] = int(start)
            assert starts == started[each.step][seen[each.step]]
            seen[each.step] += 1
    if most == 10**6:
        assert seen == {step: len(each) for step, each in started.items()}
    if run and not any(op.name == "exchange.read" for op in module.walk()):
        assert max(each.end for each in run) == max(end)


STAGES = """func.func @main() {
  control.repeat 1000000000000 () : () -> () {
    exchange.superstep @one { exchange.sync "internal" }
    exchange.superstep @pass { exchange.sync "internal" }
    exchange.superstep @two { exchange.sync "internal" }
    control.yield
  }
  func.return
}"""


def test_stages_overlap_and_the_slowest_one_decides():
    clocks = clocks_of(
        STAGES,
        one=advance([-1, -1], 70, 0),
        **{"pass": advance([0, 0], 3, 4)},
        two=advance([-1, -1], 0, 50),
    )
    total, path = critical(clocks)
    n = 10**12
    # The first stage is never late: the other one waits for it, and ends after it.
    assert total == 70 * n + 3 * (n - 1) + 4 + 50
    assert path == {"one": 70 * n, "pass": 3 * (n - 1) + 4, "two": 50}


def test_a_chip_that_overtakes_another_one_late_is_seen():
    """The first chip gains one cycle on the third in each iteration, and overtakes it late."""
    text = """func.func @main() {
      exchange.superstep @ahead { exchange.sync "internal" }
      control.repeat COUNT () : () -> () {
        exchange.superstep @a { exchange.sync "internal" }
        exchange.superstep @b { exchange.sync "internal" }
        exchange.superstep @c { exchange.sync "internal" }
        control.yield
      }
      func.return
    }"""

    def ends(count: int) -> int:
        return critical(
            clocks_of(
                text.replace("COUNT", str(count)),
                ahead=advance([-1, -1, -1], 0, 0, 5000),
                a=advance([0, 0, -1], 1000, 1, 0),
                b=advance([-1, 0, 0], 0, 1, 999),
                c=advance([-1, -1, -1], 0, 0, 0),
            )
        )[0]

    def slowly(count: int) -> int:
        x = [0, 0, 5000]
        for _ in range(count):
            x[0] = x[1] = max(x[0], x[1])
            x[0], x[1] = x[0] + 1000, x[1] + 1
            x[1] = x[2] = max(x[1], x[2])
            x[1], x[2] = x[1] + 1, x[2] + 999
        return max(x)

    for count in (1, 2, 3, 1000, 4096, 7001):
        assert ends(count) == slowly(count)


def test_counts_and_clocks_are_bounded():
    inner = 'exchange.superstep @s { exchange.sync "internal" }'
    for _ in range(4):
        inner = f"control.repeat {2**60} () : () -> () {{ {inner} control.yield }}"
    clocks = clocks_of(f"func.func @main() {{ {inner} func.return }}", s=advance([0, 0], 3, 2))
    _, taken = clocks.run
    assert sum(each.sum() for each in taken.values()) == MOST_TIMES


def _pipeline(chips: int, stages: int) -> tuple[ModuleOp, dict[Superstep, Advance]]:
    """Replicas of a pipeline, whose chips all meet after each update."""
    steps = "\n".join(
        f'exchange.superstep @s{k} {{ exchange.sync "internal" }}' for k in range(200)
    )
    text = f"""func.func @main() {{
      control.repeat 1000 () : () -> () {{
        control.repeat 64 () : () -> () {{ {steps} control.yield }}
        exchange.superstep @update {{ exchange.sync "internal" }}
        control.yield
      }}
      func.return
    }}"""
    module = parse_module(text, context())
    random = Random(0)
    own = np.arange(chips)
    none = np.zeros(chips, np.int64)
    found: dict[Superstep, Advance] = {}
    for op in module.walk():
        if not isinstance(op, Superstep):
            continue
        together = own // stages if random.random() < 0.3 else none - 1
        group = none if op.sym_name.data == "update" else together
        cycles = np.array([random.randrange(1000) for _ in own])
        found[op] = Advance(own >= 0, group, none, none, none, cycles, cycles)
    return module, found


@pytest.mark.parametrize(("chips", "stages"), [(256, 4), (256, 256)])
def test_the_clocks_of_256_chips_take_seconds_at_most(chips: int, stages: int):
    module, advances = _pipeline(chips, stages)
    begin = process_time()
    end, _ = ProgramClocks(functions_of(module), advances, chips).run
    assert process_time() - begin < 10
    assert len(set(end.tolist())) > 1
