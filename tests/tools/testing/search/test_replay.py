"""A failure that needs files of users names them, and runs again where they are not loaded."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from some_extensions import loads_taken_back
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

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
PYTHON_RULES = """
from abele.ir.rules import rewrite


@rewrite("nn.add(x, y)", where="same_type(x, y)")
def one_of_two(x, y):
    return y
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
    @dataclass(frozen=True)
    class Nothing(ModulePass):
        name = "nothing"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            """Leave the module as it is."""

    assert replay_command(tmp_path, replay_record([Nothing()], "value")) == ""


def test_a_failure_of_rules_in_python_runs_again_where_nothing_is_loaded(tmp_path: Path):
    file, folder = tmp_path / "sums.py", tmp_path / "found"
    file.write_text(PYTHON_RULES)
    with loads_taken_back(), pytest.raises(Miscompiled, match=r"sums\.py"):
        tested = load_pass("sums", load_extensions([str(file)]).passes)()
        check_pass(tested, examples=200, seed=1, folder=folder, reduce_seconds=0)
    with loads_taken_back():
        program, record = saved_program(folder)
        assert record["load"] == [str(file)]
        assert replay_command(folder, record)
        assert replayed(program, record) is not None


def test_a_failure_of_a_rule_runs_again_where_nothing_is_loaded(tmp_path: Path):
    files, folder = written(tmp_path, "x + 1"), tmp_path / "found"
    with loads_taken_back(), pytest.raises(Miscompiled, match="mine.negate"):
        check_pass(loaded_rule(files), examples=200, seed=1, folder=folder, reduce_seconds=2)
    assert json.loads((folder / "replay.json").read_text())["load"] == files
    with loads_taken_back():
        program, record = saved_program(folder)
        assert replayed(program, record) is not None
