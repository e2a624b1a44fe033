from pathlib import Path

import numpy as np
import pytest
from some_extensions import abele

from abele.dialects.levels import OWN_LEVELS
from abele.ir.errors import InputError
from abele.tools.commands.arguments import LONGEST_VALUE, given_values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16000", np.array(16000)),
        ("-1.5e3", np.array(-1500.0)),
        ("true", np.array(True)),
        ("1,2", np.array([1, 2])),
        ("[[1], [2]]", np.array([[1], [2]])),
        ("[]", np.array([])),
    ],
)
def test_a_value_is_a_number_or_a_list_of_numbers(text: str, value: np.ndarray):
    (found,) = given_values([f"a:b={text}"]).values()
    np.testing.assert_array_equal(found, value, strict=True)


def test_a_value_may_be_in_a_file(tmp_path: Path):
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    np.save(tmp_path / "x.npy", array)
    found = given_values(["y=1", f"x={tmp_path / 'x.npy'}"])
    assert list(found) == ["y", "x"]
    np.testing.assert_array_equal(found["x"], array, strict=True)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["sr"], r"--value sr: need INPUT=VALUE, such as sr=16000"),
        (["=1"], r"--value =1: need INPUT=VALUE"),
        (["sr=loud"], r"--value sr=loud: need numbers, true or false, a list of them such as 1,2"),
        (["sr=[[1],[1,2]]"], r"need numbers"),
        (["sr=1", "sr=2"], r"--value sr=2: sr has a value already; need one"),
        (["sr=none.npy"], r"none.npy: cannot be read: No such file"),
        (["sr=" + "1" * (LONGEST_VALUE + 1)], r"sr=...: 10001 letters; need a .npy file"),
        (["sr=" + "[" * 3000], r"need numbers"),
    ],
)
def test_a_value_that_is_none_is_refused(given: list[str], message: str):
    with pytest.raises(InputError, match=message):
        given_values(given)


@pytest.mark.parametrize("data", [b"", b"PK\3\4", np.lib.format.MAGIC_PREFIX + b"\1\0\xff\xff{"])
def test_a_damaged_file_is_refused(tmp_path: Path, data: bytes):
    path = tmp_path / "x.npy"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"x.npy: damaged, or not an .npy file"):
        given_values([f"x={path}"])


@pytest.mark.parametrize("command", ["run", "fuzz", "mutate"])
def test_help_names_the_levels_and_says_that_extensions_add_more(command: str):
    words = " ".join(abele(command, "--help").output.replace("│", " ").split())
    levels = ", ".join(map(str, OWN_LEVELS))
    assert f"{levels}, or the name of a level that an extension adds" in words
