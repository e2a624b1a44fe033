from types import SimpleNamespace
from typing import cast

import pytest

from abele.tools import Executable
from abele.tools.commands.showing import TOLD, tell_recomputed
from abele.tools.driver.recomputation.record import Recomputed


def of(*choices: Recomputed) -> Executable:
    return cast(Executable, SimpleNamespace(recomputed=choices))


def test_the_choices_that_save_most_are_told_in_their_order(capsys: pytest.CaptureFixture[str]):
    count = TOLD + 3
    choices = [Recomputed((f"op{i}",), (), (), 100 * (i + 1), 7) for i in range(count)]
    tell_recomputed(of(*choices))
    *told, rest = capsys.readouterr().err.splitlines()
    assert [line.split()[2] for line in told] == [f"op{i}:" for i in range(3, count)]
    assert rest == "and 3 smaller choices: 600 bytes for 21 cycles; --verbose prints them"
    tell_recomputed(of(*choices), every=True)
    assert len(capsys.readouterr().err.splitlines()) == count


def test_a_choice_says_whether_it_computes_again_or_keeps_narrow(
    capsys: pytest.CaptureFixture[str],
):
    narrow = Recomputed((), (), (), 1000, 20, ("f134@0.25:relu1",))
    tell_recomputed(of(narrow, Recomputed(("conv1",), (), (), 1000, 20)))
    assert capsys.readouterr().err.splitlines() == [
        "keeps narrow relu1 as f134@0.25: 1,000 bytes for 20 cycles",
        "computes again conv1: 1,000 bytes for 20 cycles",
    ]
