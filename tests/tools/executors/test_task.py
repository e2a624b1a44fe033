import pytest

from abele.tools.executors.task import Json, Task


def test_a_task_is_read_back_from_its_line():
    task = Task("module:name", {"numbers": [1, 2.5, None], "text": "a\nb"}, group="g")
    line = task.to_text()
    assert "\n" not in line
    assert Task.from_text(line) == task


def test_equal_calls_have_equal_digests_and_others_have_not():
    def digest(function: str, group: str = "", **arguments: Json) -> str:
        return Task(function, arguments, group=group).digest

    first = digest("m:f", a=1, b=[2])
    assert digest("m:f", group="other", b=[2], a=1) == first
    assert len({first, digest("m:g", a=1, b=[2]), digest("m:f", a=1, b=[3]), digest("m:f")}) == 4


def test_a_number_that_json_does_not_have_has_no_digest():
    with pytest.raises(ValueError, match="JSON"):
        _ = Task("m:f", {"a": float("nan")}).digest
