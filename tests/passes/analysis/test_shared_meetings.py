"""Small copies between chips wait for each other, where nothing needs their order."""

import numpy as np
import pytest
from lengths import large
from some_models import model, node

from abele.dialects.steps import Superstep
from abele.ir.text import parse_module
from abele.passes.schedule_supersteps import SUPERSTEP, ScheduleSupersteps
from abele.tools import Training, compile_model

from ...strategies import context

TARGET = "tiny:4,links.topology=ladder,links.chips=2"

VERTICES = """
tile.compute_set @{2} {{ tile.vertices space <[i = {3}] (i) of [{3}] -> (i) of [{3}]> body <relu>
  plan <split [2] at {4}> reads [@{0}] writes @{1} }}
"""


def program(lines: str, elements: int = 8, target: str = TARGET) -> str:
    """A program at tile. Variables a to e lie on chip 0, and A to E on chip 1.

    Args:
        lines: "a>B" copies, and "A!B" computes.
    """
    variables = [
        f"tile.variable @{name} : tensor<{elements}xf32> "
        f"layout <[{elements} by 2] (d0) of [{elements}] at {2 * name.isupper()}>"
        for name in "abcdeABCDE"
    ]
    body: list[str] = []
    for i, line in enumerate(lines.split()):
        of, how, to = line
        made = VERTICES.format(of, to, f"c{i}", elements, 2 * of.isupper())
        body.append(f"tile.copy [@{of}] -> @{to}" if how == ">" else made)
    return f'builtin.module attributes {{abele.target = "{target}"}} {{\n' + "\n".join(
        [*variables, "func.func @main() {", *body, "func.return }", "}"]
    )


def scheduled(text: str) -> list[str]:
    """The copies and computes of each superstep, in the form that `program` takes."""
    made = context()
    module = parse_module(text, made)
    ScheduleSupersteps().apply(made, module)
    found: dict[int, list[str]] = {}
    for op in module.walk():
        if SUPERSTEP not in op.attributes:
            continue
        number: int = op.attributes[SUPERSTEP].value.data  # pyright: ignore
        used = next(o for o in op.walk() if hasattr(o, "sources"))
        how = ">" if used is op else "!"
        found.setdefault(number, []).append(f"{used.sources[0]}{how}{used.destinations[0]}")  # pyright: ignore
    return [" ".join(each) for _, each in sorted(found.items())]


def test_sums_and_what_follows_from_them_move_to_the_last_meeting():
    # Two sums arrive on chip 1, which computes two weights; these go back.
    before = "a>A A!B B>b c>C C!D D>d"
    assert scheduled(program(before)) == ["a>A c>C C!D", "A!B", "B>b D>d"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # What arrives is read before chips meet again.
        ("a>A A!B B!C c>D C!E D>d", ["a>A A!B", "B!C", "c>D C!E", "D>d"]),
        # The second copy reads what the first one brings.
        ("a>A A>b", ["a>A", "A>b"]),
        # Its source changes.
        ("a>A b!a c>C", ["a>A b!a", "c>C"]),
        # Its destination is filled again.
        ("a>A b>A", ["a>A", "b>A"]),
    ],
)
def test_what_needs_its_order_keeps_it(before: str, after: list[str]):
    assert scheduled(program(before)) == after


def test_a_copy_passes_computations_that_have_no_part_in_it():
    assert scheduled(program("a>A b!c b!d b>B")) == ["b!c", "b!d", "a>A b>B"]


def test_large_copies_stay():
    before = "a>A b!c b!d b>B"
    assert scheduled(program(before, 4096))[0] == "a>A b!c"


def test_copies_of_variables_with_addresses_stay():
    text = program("a>A b!c b!d b>B").replace("at 2>", "at 2> {address = 0 : i64}", 1)
    assert scheduled(text)[0] == "a>A b!c"


def test_nothing_moves_on_one_chip():
    text = program("a>A b!c b!d b>B", target="tiny:4")
    assert scheduled(text)[0] == "a>A b!c"


def layers():
    """Four layers of weights that are whole numbers."""
    nodes, weights, last = [], {}, "x"
    for i in range(4):
        nodes += [node("Gemm", f"{last} w{i} b{i}", f"h{i}"), node("Relu", f"h{i}", f"r{i}")]
        rng, last = np.random.default_rng(i), f"r{i}"
        weights[f"w{i}"] = rng.integers(-1, 2, (8, 8)).astype(np.float32)
        weights[f"b{i}"] = rng.integers(-1, 2, (8,)).astype(np.float32)
    return model(nodes, {"x": ["N", 8]}, [last], weights)


@pytest.mark.parametrize(("way", "meetings"), [("direct", 2), large("ring", 5)])
def test_chips_meet_as_often_for_several_small_gradients_as_for_one(way: str, meetings: int):
    train = Training(loss="mean_square", reduction="sum", learning_rate=0.125)
    target = "tiny:32,links.topology=ladder,links.chips=4"
    rng = np.random.default_rng(9)
    given = {
        "x": rng.integers(-1, 2, (16, 8)).astype(np.float32),
        "target": rng.integers(-1, 2, (16, 8)).astype(np.float32),
    }
    one = compile_model(layers(), "tiny:8", batch=16, train=train, cache=False)
    four = compile_model(layers(), target, batch=16, train=train, replicas=f"4:{way}", cache=False)
    _ = one.run(given), four.run(given)
    for name, array in one.states.items():
        np.testing.assert_array_equal(four.states[name], array)
    steps = [op for op in four.module_at("exchange").walk() if isinstance(op, Superstep)]
    # One exchange for a reduce-scatter, or three rounds and one more for the parts of updates; and
    # one for new weights.
    assert sum('sync "all"' in str(step) for step in steps) == meetings
