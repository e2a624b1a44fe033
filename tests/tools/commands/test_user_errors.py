import pytest
import typer

from abele.ir.errors import InputError
from abele.tools.commands.user_errors import MOST_CHARACTERS, user_errors


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
