import re

from abele.tools.sweeps.remaining import counted, shown_seconds


def test_nothing_is_said_while_nothing_is_known():
    remaining = counted("aabb", 1)
    assert remaining.text() == ""
    remaining.finish("a", 10)
    assert remaining.text() == ""


def test_a_group_without_finished_tasks_gives_a_lower_bound():
    remaining = counted("aaabb", 1)
    remaining.finish("a", 10)
    remaining.finish("a", 10)
    assert remaining.text() == "more than 10 s left"


def test_equal_tasks_give_one_number_and_workers_share_them():
    remaining = counted("a" * 12, 2)
    for _ in range(2):
        remaining.finish("a", 8)
    assert remaining.text() == "40 s left"


def test_the_range_is_wide_while_times_differ():
    remaining = counted("a" * 102, 1)
    remaining.finish("a", 1)
    remaining.finish("a", 3)
    # The mean is 2, and its standard error 1: twice that is as much as the mean.
    assert remaining.text() == "0 s to 7 min left"


def test_at_the_end_nothing_is_left():
    remaining = counted("a", 1)
    remaining.finish("a", 1)
    assert remaining.text() == ""


def test_times_are_short():
    assert [shown_seconds(s) for s in (0.4, 99, 100, 5999, 9000)] == [
        *("0 s", "99 s", "2 min", "100 min", "2.5 h")
    ]
    assert all(re.fullmatch(r"[\d.]+ \w+", shown_seconds(10**k)) for k in range(8))
