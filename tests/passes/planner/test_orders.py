"""The order of a split's cells, and what lies wherever it is wanted."""

import numpy as np

from abele.backends.target import resolve_target
from abele.dialects.abele import Plan
from abele.ir.geometry.layout import linear_layout
from abele.passes.planner.orders import arriving, last_dims, orders
from abele.passes.planner.price import largest_cells
from abele.passes.planner.problem import Problem
from abele.passes.planner.question import Question, unplaced
from abele.passes.planner.search import exact, fastest

from .some_operators import matmul

HALF = np.dtype(np.float16)
MK2 = resolve_target("mk2")
UNPAIRED = resolve_target("mk1")


def asked(free: bool, rows: int = 512, depth: int = 512, columns: int = 512) -> Problem:
    return Problem(matmul(rows, depth, columns), (HALF, HALF), HALF, (False,) * 2, free=(free,) * 2)


def exchanged(problem: Problem, split: tuple[int, ...], order: tuple[int, ...]) -> float:
    plan = Plan(split, order)
    return exact(unplaced(problem, MK2, 2**62), plan).exchange_cycles


def test_the_dimension_placed_last_is_the_one_that_saves_most():
    parts = np.array([[4, 8, 1], [8, 4, 1], [3, 4, 1], [3, 5, 1]])
    cells = largest_cells(asked(True).structure, parts)
    last, saved = last_dims(asked(True), parts, cells, MK2)
    assert last.tolist() == [1, 0, 1, -1]
    assert saved[3] == 0 < saved[:3].min()
    assert not last_dims(asked(True), parts, cells, UNPAIRED)[1].any()


def test_a_good_order_is_tried():
    for split in ((4, 8, 1), (8, 4, 1), (4, 8, 4), (8, 8, 2)):
        tried = [exchanged(asked(True), split, order) for order in orders(asked(True), split, MK2)]
        every = [exchanged(asked(True), split, o) for o in ((), (1, 2, 0), (2, 1, 0), (2, 0, 1))]
        assert min(tried) <= min(every) * 1.02


def test_a_part_that_is_already_on_its_tile_does_not_arrive():
    parts, cells = np.array([[4, 8, 1]]), np.array([[128, 64, 512]])
    block = 128 * 512 * 2
    assert arriving(asked(False), 0, parts, cells) == block
    assert arriving(asked(True), 0, parts, cells) == block - block // 8


def test_free_operands_cost_less_than_linear_ones():
    free = fastest(unplaced(asked(True), MK2, MK2.usable_bytes_per_tile))
    linear = (linear_layout((512, 512), 2, MK2.tiles),) * 2
    moved = fastest(Question(asked(False), linear, MK2, MK2.usable_bytes_per_tile))
    assert 0 < free.exchange_cycles < moved.exchange_cycles
    assert free.resident_bytes == 0
