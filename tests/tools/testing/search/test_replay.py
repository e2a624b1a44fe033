"""A failure that needs files of users names them, and runs again where they are not loaded."""

import json
from pathlib import Path

import pytest
from some_extensions import loads_taken_back

from abele.ir.pass_manager import load_pass
from abele.ir.upstream import ModulePass
from abele.tools.extensions import load_extensions
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.search.replay import replayed, saved_program
from abele.tools.testing.search.save import replay_command, replay_record

MINE = """
from abele.tools.extensions import codelet, ulps


@codelet(
    space="n",
    reads={"x": "n"},
    writes={"out": "n"},
    types={"x": "numbers"},
    cycles=lambda n: 9 * n,
    bound=ulps(1),
)
def negate(x):
    return RESULT
"""
RULES = "takes nn\n\nrule negated: nn.neg(x: ?[_]) => mine.negate(x)\n"


def written(folder: Path, result: str) -> list[str]:
    """A file of a codelet, and one of a rule that puts the codelet into programs."""
    mine, rules = folder / "mine.py", folder / "negated.rw"
    mine.write_text(MINE.replace("RESULT", result))
    rules.write_text(RULES)
    return [str(mine), str(rules)]


def loaded_rule(files: list[str]) -> ModulePass:
    return load_pass("negated", load_extensions(files).passes)()


def test_a_rule_may_put_operations_of_users_into_programs(tmp_path: Path):
    with loads_taken_back():
        report = check_pass(loaded_rule(written(tmp_path, "-x")), examples=40, seed=1)
    assert report.changed > 2


def test_a_pass_that_no_other_process_can_find_has_no_command(tmp_path: Path):
    file = tmp_path / "sums.py"
    file.write_text(
        'from abele.ir.rules import rewrite\n\n\n@rewrite("nn.add(x, y)")\ndef swapped(x, y):\n'
        "    return y\n"
    )
    with loads_taken_back():
        tested = load_pass("sums", load_extensions([str(file)]).passes)()
        record = replay_record([tested], "value")
    assert replay_command(tmp_path, record) == ""


def test_a_failure_of_a_rule_runs_again_where_nothing_is_loaded(tmp_path: Path):
    files, folder = written(tmp_path, "x + 1"), tmp_path / "found"
    with loads_taken_back(), pytest.raises(Miscompiled, match="mine.negate"):
        check_pass(loaded_rule(files), examples=200, seed=1, folder=folder, reduce_seconds=2)
    assert json.loads((folder / "replay.json").read_text())["load"] == files
    with loads_taken_back():
        program, record = saved_program(folder)
        assert replayed(program, record) is not None
