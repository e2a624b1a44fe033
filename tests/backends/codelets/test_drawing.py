"""Words that workers draw, against a loop over tiles, vectors and workers."""

import numpy as np
import pytest

from abele.backends.codelets.calls import Scratch, run_calls
from abele.backends.codelets.drawing import Generators
from abele.backends.codelets.numerics import Placed, VertexSet, bind_vertices
from abele.backends.host.copies import HostScratch
from abele.backends.host.switch import is_wanted
from abele.backends.host.vertices import bind_vertices as bind_compiled
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Stage, Structure
from abele.ir.geometry.blocks import gather, scatter
from abele.ir.geometry.space import Dim, Space, identity_map
from abele.ir.support.xoroshiro import next_numbers, seeded

F16 = (11.0, -14.0, 65504.0, 1.0)
ROWS, COLUMNS, DEPTH = 13, 10, 3
FIRST_TILE, SPLIT = 2, (3, 2)
DRAWN = Stage("drawn", F16)
BODIES = {
    "alone": Body("drawn", None, F16),
    "in a chain": Body("identity", None, (), (Stage("scale", (1.5,)), DRAWN)),
    "twice": Body("identity", None, (), (DRAWN, Stage("scale", (1.1,)), DRAWN)),
    "of an earlier value": Body(
        "drawn",
        None,
        F16,
        (Stage("add"), Stage("drawn", F16, 0, (1,)), Stage("sub", (), 0, (1, 2))),
    ),
    "behind a sum": Body("identity", "sum", (), (DRAWN,)),
}


def structure_of(body: Body) -> Structure:
    """A body on a matrix, or on the rows of a cube if it merges. Results are stored transposed."""
    dims = [Dim("i", ROWS), Dim("j", COLUMNS)]
    matrix = identity_map((0, 1), (ROWS, COLUMNS))
    operands = [matrix]
    if body.combiner is not None:
        dims.append(Dim("k", DEPTH, "reduction"))
        operands = [identity_map((0, 1, 2), (ROWS, COLUMNS, DEPTH))]
    operands += [matrix] * sum(stage.function == "add" for stage in body.then)
    return Structure(
        Space(tuple(dims), tuple(operands), (identity_map((1, 0), (COLUMNS, ROWS)),)), body
    )


def words_of(roundings: int, tile: int, count: int, workers: int) -> np.ndarray:
    """The words of each rounding of the elements of a tile, in the order of storage."""
    states = seeded(5, tile + 1, workers)[tile]
    words = np.zeros((roundings, count), np.int64)
    for vector in range(-(-count // 4)):
        for which in range(roundings):
            number = int(next_numbers(states[vector % workers])[()])
            for lane in range(min(4, count - 4 * vector)):
                words[which, 4 * vector + lane] = (number >> 16 * lane & 0xFFFF) << 16
    return words


def rounded(values: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Values rounded to float16 as words say. They are between 1 and 2^15."""
    step = 2.0 ** (np.floor(np.log2(np.abs(values))) - 10)
    return np.sign(values) * np.floor(np.abs(values) / step + words / 2**32) * step


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("bind", [bind_vertices, bind_compiled])
def test_each_worker_draws_for_its_vectors_in_the_order_of_storage(bind, name: str, workers: int):
    body = BODIES[name]
    structure = structure_of(body)
    plan = Plan((*SPLIT, 1)[: len(structure.space.dims)], first_tile=FIRST_TILE)
    vertices = VertexSet.of(structure, plan)
    rng = np.random.default_rng(1)
    operands = [
        rng.uniform(2, 90, access.shape).astype(np.float32) for access in structure.space.operands
    ]
    tiles = FIRST_TILE + SPLIT[0] * SPLIT[1]
    memory = np.zeros((tiles, 4096), np.uint8)
    placed = [Placed(memory, 1024 * i, np.dtype(np.float32)) for i in range(len(operands) + 1)]
    for x, place, layout in zip(operands, placed, vertices.layouts, strict=False):
        scatter(x, memory, place.address, layout)
    if bind is bind_compiled and not is_wanted():
        pytest.skip("this run wants no kernels")
    generators = seeded(5, tiles, workers)
    scratch = Scratch() if bind is bind_vertices else HostScratch()
    made = bind(
        structure,
        plan,
        placed[:-1],
        placed[-1],
        scratch,
        generators=Generators(generators, plan.tiles),
    )
    run_calls(made if isinstance(made, list) else made.calls)
    found = gather(memory, placed[-1].address, vertices.layouts[-1], np.dtype(np.float32)).T

    roundings = 2 if name in ("twice", "of an earlier value") else 1
    words = np.zeros((roundings, ROWS, COLUMNS), np.int64)
    cuts = [cut.edges() for cut in vertices.layouts[-1].grid[:2]]
    for a in range(SPLIT[0]):
        for b in range(SPLIT[1]):
            rows, columns = slice(*cuts[0][a : a + 2]), slice(*cuts[1][b : b + 2])
            size = cuts[1][b + 1] - cuts[1][b], cuts[0][a + 1] - cuts[0][a]
            drawn = words_of(
                roundings, FIRST_TILE + a * SPLIT[1] + b, int(size[0] * size[1]), workers
            )
            words[:, rows, columns] = drawn.reshape(roundings, *size).transpose(0, 2, 1)
    x = operands[0].astype(np.float64)
    match name:
        case "alone":
            expected = rounded(x, words[0])
        case "in a chain":
            expected = rounded((operands[0] * np.float32(1.5)).astype(np.float64), words[0])
        case "twice":
            first = rounded(x, words[0]).astype(np.float32) * np.float32(1.1)
            expected = rounded(first.astype(np.float64), words[1])
        case "of an earlier value":
            first = rounded(x, words[0]).astype(np.float32) + operands[1]
            expected = first - rounded(first.astype(np.float64), words[1])
        case _:
            expected = rounded(operands[0].sum(axis=2).astype(np.float64), words[0])
    np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_the_generators_of_other_tiles_stay_and_the_next_run_goes_on():
    structure = structure_of(BODIES["alone"])
    plan = Plan(SPLIT, first_tile=FIRST_TILE)
    memory = np.zeros((9, 4096), np.uint8)
    placed = [Placed(memory, 1024 * i, np.dtype(np.float32)) for i in range(2)]
    layout = VertexSet.of(structure, plan).layouts[0]
    scatter(np.full((ROWS, COLUMNS), 1 + 2.0**-11, np.float32), memory, 0, layout)
    generators = seeded(5, 9, 2)
    before = generators.copy()
    calls = bind_vertices(
        structure, plan, placed[:-1], placed[-1], Scratch(), (), Generators(generators, plan.tiles)
    )
    runs = []
    for _ in range(2):
        run_calls(calls)
        runs.append(memory[:, 1024:2048].copy())
    changed = (generators != before).any(axis=(1, 2))
    assert changed.tolist() == [False] * 2 + [True] * 6 + [False]
    assert (runs[0] != runs[1]).any()
    generators[...] = before
    run_calls(calls)
    np.testing.assert_array_equal(memory[:, 1024:2048], runs[0])
