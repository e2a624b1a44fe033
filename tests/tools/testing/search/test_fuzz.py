"""Long runs go on past a failure, and save it."""

from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.passes.pipelines import PASSES
from abele.tools.cli import app
from abele.tools.extensions import load_extensions
from abele.tools.testing import Report, check_pass
from abele.tools.testing.search.fuzz import fuzz, jobs

from ..wrong_passes import SwapSub


def test_there_is_a_job_for_every_pass_and_every_level():
    names = set(jobs())
    assert set(PASSES) - {"plan-splits"} <= names
    assert {f"nn -> {level}, at random" for level in ("partition", "tile", "exchange")} <= names


def test_a_failure_is_saved_and_the_other_jobs_go_on(tmp_path: Path):
    checks = {"wrong one": partial(check_pass, SwapSub()), **jobs(["canonicalize"])}
    done = {each.name: each for each in fuzz(checks, 2.5, 1, tmp_path, processes=2)}
    assert "swap-sub" in done["wrong one"].failure
    assert (tmp_path / "wrong-one" / "program.mlir").exists()
    assert done["canonicalize"].failure == ""
    assert done["canonicalize"].report.examples > 0


def test_train_is_fuzzed_as_steps_of_training_that_all_passes_compile():
    report = Report()
    jobs(["train"])["train"](examples=2, seed=1, report=report)
    assert report.examples == report.steps == report.changed > 0


@pytest.mark.parametrize("spec", ["train{optimizer=adam}", "train,canonicalize"])
def test_what_train_makes_of_a_program_is_not_compared_with_it(spec: str):
    with pytest.raises(InputError, match="need train alone and without options"):
        jobs([spec])


def test_an_unknown_pass_is_refused():
    with pytest.raises(InputError, match="canonicalise"):
        jobs(["canonicalise"])


WRONG = """
from dataclasses import dataclass
from abele.dialects import nn
from abele.ir.upstream import ModulePass

@dataclass(frozen=True)
class Wrong(ModulePass):
    name = "wrong"
    def apply(self, ctx, op):
        for each in op.walk():
            if isinstance(each, nn.SubOp):
                each.operands[0], each.operands[1] = each.operands[1], each.operands[0]
"""


def test_the_command_exits_1_and_prints_how_to_replay_the_failure(tmp_path: Path):
    (tmp_path / "mine.py").write_text(WRONG)
    words = ["fuzz", "wrong", "--load", str(tmp_path / "mine.py"), "--seconds", "4", "--seed", "1"]
    result = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "after pass 'wrong'" in result.output
    assert "replay: " in result.output


def test_the_command_refuses_an_unknown_pass():
    assert CliRunner().invoke(app, ["fuzz", "wrong"]).exit_code == 2


def test_passes_of_xdsl_and_passes_made_of_rules_are_fuzzed(tmp_path: Path):
    path = tmp_path / "double.rw"
    path.write_text("rule double: nn.neg(nn.neg(x)) => x")
    checks = jobs(["cse", "double"], load_extensions([path]).passes)
    done = {each.name: each for each in fuzz(checks, 0.5, 1, tmp_path)}
    assert {name: each.failure for name, each in done.items()} == {"cse": "", "double": ""}
    assert all(each.report.examples for each in done.values())
    assert "cse" not in jobs()


IDLE = WRONG.replace("nn.SubOp", "partition.RelayoutOp").replace("import nn", "import partition")


def test_the_command_exits_1_if_nothing_was_changed(tmp_path: Path):
    (tmp_path / "mine.py").write_text(IDLE)
    words = ["fuzz", "wrong", "--load", str(tmp_path / "mine.py"), "--seconds", "1", "--seed", "1"]
    result = CliRunner().invoke(app, [*words, "--level", "nn", "-o", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "changed none of" in result.output
    assert "give --level, one of stablehlo, nn, partition" in result.output


def test_the_level_of_a_job_may_be_given():
    assert jobs(["allocate"], level="placed")["allocate"].args[1] == "placed"
    assert jobs(["allocate"])["allocate"].args[1] is None
    with pytest.raises(InputError, match="level 'tiel'; need one of"):
        jobs(["allocate"], level="tiel")


def test_a_pipeline_may_name_levels_and_what_programs_are_about():
    checks = jobs(["nn,partition"], level="nn", operators=["nn.matmul"], decisions=["combine"])
    report = checks["nn,partition"](examples=4, seed=1, report=Report())
    assert report.examples == 4
    with pytest.raises(InputError, match="decision 'color'"):
        jobs(["canonicalize"], decisions=["color"])
    with pytest.raises(InputError, match="no pass 'nothing'"):
        jobs(["nn,nothing"])
