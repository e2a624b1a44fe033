from collections.abc import Callable

import pytest
import typer

from abele.ir.errors import InputError
from abele.ir.support.errors import MOST_CHARACTERS
from abele.tools.views.user_errors import user_errors


@pytest.mark.parametrize("lines", [1, 3])
def test_the_middle_of_a_long_line_is_left_out(lines: int, capsys: pytest.CaptureFixture[str]):
    line = "b" * MOST_CHARACTERS + "m" * 70_000 + "e" * MOST_CHARACTERS
    with pytest.raises(typer.Exit), user_errors():
        raise InputError("\n".join([line] * lines))
    written = capsys.readouterr().err.splitlines()
    assert len(written) == lines
    for each in written:
        assert len(each) < MOST_CHARACTERS + 100
        assert each.endswith("e")
        assert f"[... {len(line) - MOST_CHARACTERS:,} characters ...]"[:8] in each


def test_a_line_that_fits_stays_whole(capsys: pytest.CaptureFixture[str]):
    line = "x" * (MOST_CHARACTERS - len("error: "))
    with pytest.raises(typer.Exit), user_errors():
        raise InputError(line)
    assert capsys.readouterr().err == f"error: {line}\n"


@pytest.mark.parametrize("text", ["", "model.mlir"])
@pytest.mark.parametrize("convert", [lambda: int("9" * 5000), lambda: str(10**5000)])
def test_an_integer_of_too_many_digits_is_the_users(
    convert: Callable[[], object], text: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(typer.Exit) as ended, user_errors(text):
        convert()
    assert ended.value.exit_code == 2
    where = f"{text}: " if text else ""
    expected = f"error: {where}an integer has too many digits; need at most 4,300\n"
    assert capsys.readouterr().err == expected
