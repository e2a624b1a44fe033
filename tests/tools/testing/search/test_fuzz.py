"""Long runs go on past a failure, and save it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.passes.pipelines import PASSES
from abele.tools.cli import app
from abele.tools.executors.executor import OnProgress
from abele.tools.executors.here import Here
from abele.tools.executors.named import executor_of
from abele.tools.executors.task import End, Json, Result, Task
from abele.tools.testing import Report
from abele.tools.testing.search.fuzz import Asked, fuzz, jobs


def test_there_is_a_job_for_every_pass_and_every_level():
    names = set(jobs())
    assert set(PASSES) - {"plan-splits"} <= names
    assert {f"nn -> {level}, at random" for level in ("partition", "tile", "exchange")} <= names


def test_a_failure_is_saved_and_the_other_jobs_go_on(tmp_path: Path):
    (tmp_path / "mine.py").write_text(WRONG)
    asked = Asked(("wrong", "canonicalize"), load=(str(tmp_path / "mine.py"),))
    with executor_of("local:2") as executor:
        done = {each.name: each for each in fuzz(asked, 2.5, 1, tmp_path, executor)}
    assert "after pass 'wrong'" in done["wrong"].failure
    assert (tmp_path / "wrong" / "program.mlir").exists()
    assert done["canonicalize"].failure == ""
    assert done["canonicalize"].report.examples > 0


class Elsewhere(Here):
    """An executor whose files are somewhere else."""

    def run(self, tasks: Iterable[Task], on_progress: OnProgress | None = None) -> Iterator[Result]:
        for result in super().run(tasks, on_progress):
            folder = Path(str(result.task.arguments["folder"]))
            folder.rename(folder.with_name("elsewhere"))
            yield result


def contents(folder: Path) -> dict[str, bytes]:
    files = (each for each in folder.rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in files}


def test_a_failure_on_another_host_is_saved_here_too(tmp_path: Path):
    (tmp_path / "mine.py").write_text(WRONG)
    asked = Asked(("wrong",), load=(str(tmp_path / "mine.py"),))
    (found,) = fuzz(asked, 4, 1, tmp_path / "here", Elsewhere(), reduce_seconds=0)
    assert f"saved in {tmp_path / 'here' / 'wrong'}" in found.failure
    saved = contents(tmp_path / "here")
    assert "wrong/program.mlir" in saved
    assert saved == contents(tmp_path / "elsewhere")


def test_a_failure_names_its_folder_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "mine.py").write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    asked = Asked(("wrong",), load=("mine.py",))
    (found,) = fuzz(asked, 4, 1, Path("out"), Here(), reduce_seconds=0)
    assert "saved in out/wrong\n" in found.failure


def test_a_worker_cannot_write_outside_the_folder(tmp_path: Path):
    value: Json = {"report": Report().to_record(), "failure": "x", "saved": {"../a": ""}}
    done = [Result(Task("", {"name": "cse"}), End.DONE, value=value)]
    with (
        patch.object(Here, "run", lambda *_: iter(done)),
        pytest.raises(InputError, match=r"\.\./a: a worker names a file outside"),
    ):
        _ = list(fuzz(Asked(("cse",), load=()), 1, 1, tmp_path / "here", Here()))
    assert not (tmp_path / "a").exists()


def test_a_job_that_its_worker_cannot_begin_is_a_failure_of_its_own(tmp_path: Path):
    asked = Asked(("cse",), load=())
    lost = [Result(Task("", {"name": "cse"}), End.LOST, problem="two workers ended")]
    with patch.object(Here, "run", lambda *_: iter(lost)):
        assert [each.failure for each in fuzz(asked, 1, 1, tmp_path, Here())] == [
            "two workers ended"
        ]


def test_train_is_fuzzed_as_steps_of_training_that_all_passes_compile():
    report = Report()
    jobs(["train"])["train"](examples=2, seed=1, report=report)
    assert report.examples == report.steps == report.changed > 0
    assert report.exercised
    # It comes from another process as JSON.
    assert Report.from_record(json.loads(json.dumps(report.to_record()))) == report


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
    words += ["--executor", "here"]
    result = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "after pass 'wrong'" in result.output
    assert "replay: " in result.output


def test_the_command_refuses_an_unknown_pass():
    assert CliRunner().invoke(app, ["fuzz", "wrong"]).exit_code == 2


def test_passes_of_xdsl_and_passes_made_of_rules_are_fuzzed(tmp_path: Path):
    path = tmp_path / "double.rw"
    path.write_text("rule double: nn.neg(nn.neg(x)) => x")
    asked = Asked(("cse", "double"), load=(str(path),))
    done = {each.name: each for each in fuzz(asked, 0.5, 1, tmp_path, Here())}
    assert {name: each.failure for name, each in done.items()} == {"cse": "", "double": ""}
    assert all(each.report.examples for each in done.values())
    assert "cse" not in jobs()


IDLE = WRONG.replace("nn.SubOp", "partition.RelayoutOp").replace("import nn", "import partition")


def test_the_command_exits_1_if_nothing_was_changed(tmp_path: Path):
    (tmp_path / "mine.py").write_text(IDLE)
    words = ["fuzz", "wrong", "--load", str(tmp_path / "mine.py"), "--seconds", "1", "--seed", "1"]
    words += ["--executor", "here"]
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
