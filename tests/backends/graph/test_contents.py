from itertools import pairwise

import pytest
from xdsl.dialects.builtin import ModuleOp

from abele.backends.graph.contents import MANY, Contents, Made, ValuePath, ways_of
from abele.ir.geometry.blocks import plain_move

FIRST, SECOND = ModuleOp([]), ModuleOp([])
MOVES = [plain_move((n,)) for n in range(1, 4)]


@pytest.fixture
def contents() -> Contents:
    return Contents()


def test_equal_contents_are_one_object(contents: Contents):
    first, second = contents.made(FIRST), contents.made(SECOND, 1)
    assert contents.made(FIRST) is first
    assert contents.either([second, first, None, second]) is contents.either([first, second])
    assert contents.moved([first, None], MOVES[:2]) is contents.moved([first], MOVES[:1])
    assert contents.carried(first, 3) is contents.carried(first, 3)


def test_a_content_of_nothing_is_none(contents: Contents):
    assert contents.either([None, None]) is None
    assert contents.moved([None], MOVES[:1]) is None


def test_ways_list_the_moves_from_the_producer_on(contents: Contents):
    held = contents.made(FIRST, 1)
    for move in MOVES:
        held = contents.moved([held], [move])
    assert held
    assert list(ways_of(held)) == [ValuePath(FIRST, tuple(MOVES), frozenset(), 1)]


def test_a_loop_that_is_left_no_longer_counts(contents: Contents):
    first = contents.made(FIRST)
    carried = contents.carried(contents.carried(first, 1), 2)
    (way,) = ways_of(carried)
    assert way.rounds == {1, 2}
    (way,) = ways_of(contents.carried(contents.left(carried, 2), 3))
    assert way.rounds == {1, 3}
    assert contents.left(first, 1) is first
    assert contents.origins(contents.left(carried, 1)) == {(FIRST, frozenset({2}))}


def test_producers_that_do_not_count_are_left_out(contents: Contents):
    both = contents.moved([contents.made(FIRST), contents.made(SECOND)], MOVES[:2])
    assert both
    other = contents.without(both, frozenset({FIRST}))
    assert [way.producer for way in ways_of(other)] == [SECOND]
    assert contents.origins(other) == {(SECOND, frozenset())}


def test_choices_are_the_contents_up_to_the_last_copies(contents: Contents):
    first = contents.made(FIRST)
    moved = contents.moved([first], MOVES[:1])
    assert moved
    either = contents.either([contents.carried(moved, 1), first])
    found = [contents.along(path) for path in contents.choices(either)]
    assert set(found) == {contents.carried(moved, 1), first}
    assert contents.choices(None) == []


def test_paths_that_double_are_counted_and_not_listed(contents: Contents):
    held = contents.made(FIRST)
    chain = [held]
    for _ in range(1000):
        held = contents.moved([held, held], MOVES[:2])
        assert held
        chain.append(held)
    assert [each.extent.paths for each in chain[:4]] == [1, 2, 4, 8]
    assert held.extent.paths == held.extent.moves == MANY
    assert all(a.number < b.number for a, b in pairwise(chain))
    assert contents.origins(held) == {(FIRST, frozenset())}
    assert not isinstance(held, Made)
