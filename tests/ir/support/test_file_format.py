from dataclasses import replace

import pytest

from abele.ir.support.errors import InputError
from abele.ir.support.file_format import FileFormat

THING = FileFormat("thing", 4, "make the thing again", gone=("abele 0.1", "abele 0.2 and 0.3"))


@pytest.mark.parametrize("version", [3, 4])
def test_a_version_that_is_read_is_returned(version: int):
    assert THING.check(version, "f") == version


@pytest.mark.parametrize(
    ("version", "reader"), [(1, "abele 0.1"), (2, "abele 0.2 and 0.3")], ids=str
)
def test_an_older_version_is_refused_with_the_abele_that_reads_it(version: int, reader: str):
    with pytest.raises(InputError) as raised:
        THING.check(version, "f")
    assert str(raised.value) == (
        f"f: version {version} of thing, which {reader} reads; this abele reads versions 3 to 4; "
        "make the thing again"
    )


@pytest.mark.parametrize("version", [5, 10**18 - 1])
def test_a_newer_version_is_refused_with_what_to_do(version: int):
    with pytest.raises(InputError) as raised:
        THING.check(version, "f")
    assert str(raised.value) == (
        f"f: version {version} of thing is of a newer abele; this one reads versions 3 to 4; "
        "update abele, or make the thing again with this one"
    )


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        (None, "None"),
        (0, "0"),
        (-1, "-1"),
        (True, "True"),
        (3.0, "3.0"),
        (float("nan"), "nan"),
        ("3", "'3'"),
        ([3], "[3]"),
        ("a\nb" * 99, "'a\\nba\\nba\\nba\\nba\\nba\\nba\\nba\\nba\\nba\\n..."),
        (10**18, "of 60 bits"),
        (-(10**9999), "of 33,216 bits"),
    ],
    ids=lambda value: str(value)[:9] if isinstance(value, str) else type(value).__name__,
)
def test_what_is_no_version_is_refused_in_one_line(version: object, shown: str):
    with pytest.raises(InputError) as raised:
        THING.check(version, "f")
    assert str(raised.value) == f"f: version {shown} of thing; need versions 3 to 4"


def test_one_version_is_named_as_one():
    with pytest.raises(InputError, match=r"; need version 4$"):
        replace(THING, gone=("a", "b", "c")).check(0, "f")
