"""Tests for ir/support/kept_tables.py."""

from __future__ import annotations

from abele.ir.support.kept_tables import kept_tables


def test_a_table_is_made_once_until_there_are_too_many_rows():
    made: list[int] = []

    @kept_tables(len, entries=8, most=10)
    def numbers(count: int, *, first: int = 0) -> list[int]:
        made.append(count)
        return list(range(first, first + count))

    assert numbers(4) == numbers(4) == [0, 1, 2, 3]
    assert numbers(6) == numbers(6)
    assert numbers(4, first=2) == [2, 3, 4, 5]  # More than 10 rows: all others are forgotten.
    assert made == [4, 6, 4]
    assert numbers(4, first=2)
    assert numbers(6)
    assert made == [4, 6, 4, 6]
    assert numbers(4)
    assert made == [4, 6, 4, 6, 4]


def test_a_table_with_more_rows_than_the_bound_is_kept_until_the_next_one():
    made: list[int] = []

    @kept_tables(len, entries=8, most=10)
    def numbers(count: int) -> range:
        made.append(count)
        return range(count)

    assert numbers(100) == numbers(100)
    assert made == [100]
    assert numbers(1)
    assert numbers(100)
    assert made == [100, 1, 100]


def test_the_number_of_results_is_bounded_too():
    made: list[int] = []

    @kept_tables(len, entries=2)
    def numbers(count: int) -> range:
        made.append(count)
        return range(count)

    for count in (1, 2, 3, 3, 2, 1):
        numbers(count)
    assert made == [1, 2, 3, 1]


def test_a_function_may_call_itself():
    @kept_tables(len, entries=8, most=3)
    def ones(count: int) -> list[int]:
        return [1, *ones(count - 1)] if count else []

    assert ones(9) == [1] * 9
