import threading

import pytest

from abele.tools.views.scan.threads import SLICES, in_slices


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
@pytest.mark.parametrize("few", [0, 10_000])
def test_slices_cover_everything_once(count: int, few: int):
    seen: list[tuple[int, int, int]] = []
    in_slices(lambda *given: seen.append(given), count, few=few)
    assert sorted(k for k, _, _ in seen) == list(range(SLICES))
    assert sorted(i for _, first, last in seen for i in range(first, last)) == list(range(count))


def test_a_few_elements_are_computed_on_the_calling_thread():
    seen: list[str] = []
    in_slices(lambda *_: seen.append(threading.current_thread().name), 5, few=6)
    assert set(seen) == {threading.current_thread().name}


def test_an_error_in_a_thread_is_raised():
    def fails(*_: int) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        in_slices(fails, 3)
