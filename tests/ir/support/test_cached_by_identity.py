import gc
from weakref import ref

import pytest

from abele.ir.support import cached_by_identity as module
from abele.ir.support.cached_by_identity import cached_by_identity


def test_an_object_is_asked_about_once_and_an_equal_one_again():
    asked: list[tuple[int, ...]] = []
    first, equal = tuple([1, 2]), tuple([1, 2])
    assert first is not equal

    @cached_by_identity
    def length(given: tuple[int, ...]) -> int:
        asked.append(given)
        return len(given)

    assert [length(first), length(first), length(equal)] == [2, 2, 2]
    assert len(asked) == 2


def test_objects_that_are_gone_leave_no_results_to_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_MOST", 3)

    @cached_by_identity
    def number(given: list[int]) -> int:
        return given[0]

    assert [number([i]) for i in range(50)] == list(range(50))


def test_what_an_object_raised_is_raised_again():
    @cached_by_identity
    def inverse(given: int) -> float:
        return 1 / given

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            inverse(0)


def test_a_result_is_forgotten_with_its_object():
    class Made:
        pass

    class Result:
        pass

    @cached_by_identity
    def result(given: Made) -> Result:
        return Result()

    made = Made()
    kept = ref(result(made))
    assert result(made) is kept()
    del made
    # What is young: a search of all objects of a long session takes seconds.
    gc.collect(1)
    assert kept() is None
