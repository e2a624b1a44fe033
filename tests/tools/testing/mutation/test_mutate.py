"""Tests of the command abele mutate."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from abele.tools.cli import app

MINE = """
from dataclasses import dataclass
from abele.dialects import nn
from abele.ir.upstream import Context, ModuleOp, ModulePass

@dataclass(frozen=True)
class DropNegOfAbs(ModulePass):
    name = "drop-neg-in-square"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            negs = [v for v in each.operands if isinstance(v.owner, nn.NegOp)]
            if isinstance(each, nn.SquareOp) and negs:
                each.operands[0] = negs[0].owner.operands[0]
"""

LAWS = "rule mine: nn.square(x) as s => nn.mul(x, x) where same_type(x, s)\n"


def abele(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_users_pass_is_mutated_in_its_own_file(tmp_path: Path):
    file, out = tmp_path / "mine.py", tmp_path / "out.json"
    file.write_text(MINE)
    result = abele(
        *("mutate", "drop-neg-in-square", "--load", file, "--examples", 60),
        *("--only", "drop-guard/2", "--json", out),
    )
    assert result.exit_code == 0, result.output
    (trial,) = json.loads(out.read_text())["trials"]
    assert (trial["place"], trial["after"]) == ("mine.py:13", "True")
    assert trial["verdict"] == "found"
    assert "1 of 1 planted bugs found (100.0 %)" in result.output
    assert file.read_text() == MINE


def test_users_rules_are_listed_with_their_mutants(tmp_path: Path):
    file = tmp_path / "mine.rw"
    file.write_text(LAWS)
    result = abele("mutate", "mine", "--load", file, "--examples", 40, "--list")
    assert result.exit_code == 0, result.output
    assert "mine/rule-drop-operation/1" in result.output
    assert "mine.rw:1" in result.output


UNFOLD = """
from abele.dialects import nn
from abele.ir.rules import rewrite

@rewrite("nn.square(x) as s")
def unfold(x, s):
    if len(x.type.get_shape()) > 1:
        return None
    return nn.MulOp(x, x)
"""


def test_a_rule_in_python_is_mutated_in_its_function_in_any_process(tmp_path: Path):
    file, out = tmp_path / "unfold.py", tmp_path / "out.json"
    file.write_text(UNFOLD)
    found = []
    for executor in ("here", "local:1"):
        result = abele(
            *("mutate", "unfold", "--load", file, "--examples", 20, "--json", out),
            *("--only", "comparison,drop-guard/1", "--executor", executor),
        )
        assert result.exit_code == 0, result.output
        trials = json.loads(out.read_text())["trials"]
        found.append([(each["name"], each["verdict"], each["examples"]) for each in trials])
    assert found[0] == found[1]
    assert {name for name, _, _ in found[0]} == {"unfold/comparison/1", "unfold/drop-guard/1"}
    # The condition decides where the rule applies, not whether it is correct.
    assert {verdict for _, verdict, _ in found[0]} <= {"survived", "same"}


def test_a_pass_that_is_wrong_itself_is_reported_and_nothing_is_planted(tmp_path: Path):
    file = tmp_path / "mine.py"
    file.write_text(MINE.replace("nn.SquareOp) and", "nn.TensorOp) and"))
    result = abele("mutate", "drop-neg-in-square", "--load", file, "--examples", 100)
    assert result.exit_code == 1
    assert "drop-neg-in-square is wrong without any bug planted: value" in result.stderr
    assert "planted bugs found" not in result.output


def test_too_few_found_is_a_failure():
    # Walking from front to back removes less, but nothing is wrong.
    harmless = ("mutate", "eliminate-dead", "--only", "wrong-axis/1", "--examples", 8)
    result = abele(*harmless, "--fail-under", 100)
    assert result.exit_code == 1
    assert "reversed(tuple(op.walk()))" in result.output


def test_bad_arguments_are_reported():
    for arguments, problem in [
        (["no-such-pass"], "no pass 'no-such-pass'"),
        (["plan-splits"], "only decides"),
        (["decompose", "--level", "cloud"], "level 'cloud'"),
        (["decompose", "--only", "nonsense"], "no class of mutants"),
        (["decompose", "--jobs", "3"], "--jobs"),
    ]:
        result = abele("mutate", *arguments, "--examples", "2")
        assert result.exit_code == 2, arguments
        assert problem in result.stderr
