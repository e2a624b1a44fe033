"""TOML that Python's parser stumbles over is refused with the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.target import Target, resolve_target
from abele.ir.errors import InputError
from abele.ir.support.toml_text import read_toml

HOSTILE = {
    "a = " + "9" * 5000: r"my\.toml:1: a number of too many digits",
    "b = 1\na = " + "[" * 3000: r"my\.toml:2: nested too deeply; at most 64 nested brackets",
    "a = " + "{a=" * 3000: r"my\.toml:1: nested too deeply",
    "a." * 3000 + "b = 1": "nested too deeply",
    "[" + "a." * 3000 + "b]": "nested too deeply",
    "\ufeffa = 1": "not TOML",
    "a = \0": "not TOML",
    "a = \u0663": "not TOML",
    "a = 1\na = 2": "not TOML",
}


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_hostile_text_is_refused_with_the_file(text: str):
    with pytest.raises(InputError, match=HOSTILE[text]):
        read_toml(text, "my.toml")


@given(st.text("[]{}=.\"'#\n\r _abxe0179-+\u0663\0\ufeff,", max_size=50))
def test_any_text_is_read_or_refused(text: str):
    for read in (read_toml, Target.from_toml):
        try:
            read(text, "my.toml")
        except InputError as error:
            assert str(error).startswith("my.toml")


@given(st.text("tiny:,=.\"'[]{}0179e-+abk\u0663\0", max_size=30) | st.just("x" * 9999))
def test_any_target_is_resolved_or_refused(text: str):
    for each in (text, f"tiny:{text}", f"tiny,tiles={text}", f"tiny,clock_hz={text}"):
        try:
            resolve_target(each)
        except InputError:
            pass


def test_long_numbers_of_tiles_are_refused():
    with pytest.raises(InputError, match=r"need an integer in 1\.\.1e\+06"):
        resolve_target("tiny:" + "9" * 5000)
