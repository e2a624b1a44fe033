import re

import pytest

from abele.ir.errors import InputError
from abele.ir.pass_manager import load_pass
from abele.passes.pipelines import PASSES
from abele.tools.views.pass_listing import first_sentence
from abele.tools.views.progress import progress

LINE = re.compile(r" *(\d+\.\d{3}) s  (.+)")


def test_verbose_writes_a_line_for_each_step_and_their_sum(capsys: pytest.CaptureFixture[str]):
    with progress(verbose=True) as tell:
        tell("read")
        tell("fold-constants (2 of 16)")
        tell("run at exchange")
    found = [LINE.fullmatch(line) for line in capsys.readouterr().err.splitlines()]
    assert [each[2] for each in found if each] == [
        "read",
        "fold-constants (2 of 16): Replace operations on constants by constants.",
        "run at exchange",
        "in all",
    ]
    *steps, whole = [float(each[1]) for each in found if each]
    assert sum(steps) <= whole + 0.002


def test_verbose_says_where_it_stopped(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(InputError), progress(verbose=True) as tell:
        tell("read")
        raise InputError("no")
    assert [line.split("s  ")[1] for line in capsys.readouterr().err.splitlines()] == [
        "read",
        "stopped",
    ]


def test_a_pipe_sees_no_progress(capsys: pytest.CaptureFixture[str]):
    with progress() as tell:
        tell("read")
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_says_what_it_does_in_a_sentence(name: str):
    assert re.fullmatch(r"[A-Z].{15,}\.", first_sentence(load_pass(name, PASSES)))
