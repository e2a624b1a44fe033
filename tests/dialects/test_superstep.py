"""What can happen in one superstep."""

import pytest

from abele.dialects.superstep import conflict
from abele.ir.text import parse_module
from abele.ir.upstream import VerifyException

from ..strategies import context

VERTICES = (
    "tile.compute_set @s{0}{1} {{ tile.vertices space <[i = 4] (i) of [4] -> (i) of [4]> "
    "body <relu> plan <split [2]> reads [@{0}] writes @{1} }}"
)


def copied(source: str, destination: str) -> str:
    return f"tile.copy [@{source}] -> @{destination}"


def computed(source: str, destination: str) -> str:
    return VERTICES.format(source, destination)


@pytest.mark.parametrize(
    ("ops", "variable", "problem"),
    [
        ([copied("a", "b"), copied("b", "c")], "b", "reads @b, which is only being made"),
        ([copied("a", "b"), copied("c", "a")], "a", "writes @a, which is in use"),
        ([copied("a", "c"), copied("b", "c")], "c", "writes @c, which is in use"),
        ([computed("a", "b"), computed("b", "c")], "b", "reads @b, which is only being made"),
        ([computed("a", "c"), computed("b", "c")], "c", "writes @c, which is in use"),
        ([computed("a", "b"), copied("b", "c")], "b", "reads @b, which is only being made"),
        ([computed("a", "b"), copied("a", "c")], "", "moves data behind what computes"),
    ],
)
def test_a_conflict_in_a_superstep_names_the_variable_and_the_problem(
    ops: list[str], variable: str, problem: str
):
    found = conflict(operations(ops))
    assert found is not None
    assert (found.variable, found.problem) == (variable, problem)


@pytest.mark.parametrize(
    "ops",
    [
        [copied("a", "b"), computed("b", "c")],
        [copied("a", "b"), computed("c", "a")],
        [copied("a", "b"), copied("a", "c")],
        [computed("a", "b"), computed("a", "c")],
    ],
)
def test_transfers_happen_at_once_and_before_the_compute(ops: list[str]):
    assert conflict(operations(ops)) is None


@pytest.mark.parametrize(
    ("zone", "ops", "problem"),
    [
        ("internal", 'tile.input "x" -> @a : tensor<4xf32>', "but the host takes part"),
        ("external", copied("a", "b"), "but the host takes no part"),
        ("all", 'tile.input "x" -> @a : tensor<4xf32>', "but the host takes part"),
    ],
)
def test_the_sync_of_a_superstep_includes_the_host_only_for_host_traffic(
    zone: str, ops: str, problem: str
):
    (step,) = operations([f'tile.superstep @s {{ tile.sync "{zone}" {ops} }}'])
    with pytest.raises(VerifyException, match=problem):
        step.verify()


@pytest.mark.parametrize("zone", ["internal", "all"])
def test_the_tiles_of_a_chip_or_of_all_chips_meet_without_the_host(zone: str):
    (step,) = operations([f'tile.superstep @s {{ tile.sync "{zone}" {copied("a", "b")} }}'])
    step.verify()


def operations(texts: list[str]):
    variables = "\n".join(
        f"tile.variable @{name} : tensor<4xf32> layout <[4 by 2] (d0) of [4]>" for name in "abc"
    )
    module = parse_module("\n".join([variables, *texts]), context())
    return [op for op in module.ops if op.name != "tile.variable"]
