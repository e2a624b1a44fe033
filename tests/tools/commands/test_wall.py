"""The stages that a command prints add up to the time that it takes."""

import json
from pathlib import Path
from time import perf_counter, time

import psutil
import pytest
from typer.testing import CliRunner

from abele.tools.cli import app
from abele.tools.commands import wall
from abele.tools.commands.wall import OTHER, START_UP, Wall
from abele.tools.driver.stages import CHECK, Stages
from abele.tools.views.progress import progress

TEXT = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32>
    attributes {arg_names = ["x"], result_names = ["y"]} {
  %y = nn.relu %x : (tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}
"""


def test_stages_add_up_from_the_start_of_the_process(monkeypatch: pytest.MonkeyPatch):
    now = iter([100.0, 107.0, 109.0, 110.0])
    monkeypatch.setattr(wall, "perf_counter", lambda: next(now))
    monkeypatch.setattr(wall, "_age_of_process", lambda: 2.0)
    command, stages = Wall(of_process=True), Stages({"read": 1.0, "run": 4.0})
    command.call()
    for elapsed in (9.0, 11.0):
        command.settle(stages)
        assert list(stages.seconds) == [START_UP, "read", "run", OTHER]
        assert sum(stages.seconds.values()) == elapsed
    command.call()
    assert command.begun == command.called == 110.0


def test_a_process_knows_its_age():
    age = time() - psutil.Process().create_time()
    assert wall._age_of_process() == pytest.approx(age, abs=1.5)


def test_a_run_names_all_its_stages_and_they_add_up(tmp_path: Path):
    (tmp_path / "net.mlir").write_text(TEXT)
    profile = tmp_path / "p.json"
    asked = ["run", str(tmp_path / "net.mlir"), "--target", "tiny:2", "--check"]
    start = perf_counter()
    found = CliRunner().invoke(app, [*asked, "--no-cache", "--profile", str(profile)])
    elapsed = perf_counter() - start
    assert found.exit_code == 0
    seconds = json.loads(profile.read_text())["seconds"]
    compiled = ["read", "nn", "partition", "tile", "exchange"]
    assert [*seconds] == [START_UP, *compiled, "load", "run", "check", "figures", OTHER]
    assert 0.5 * elapsed < sum(seconds.values()) <= elapsed
    row = found.stdout.partition("│ seconds ")[2].partition("│ largest error ")[0]
    assert all(f"{name} " in row for name in seconds)


def test_a_check_tells_its_parts_and_is_one_step(capsys: pytest.CaptureFixture[str]):
    with progress(verbose=True) as tell:
        for part in ("", " (superstep 1 of 2)", " (superstep 2 of 2)", " (outputs)"):
            tell(f"{CHECK}{part}")
    shown = [line.split("s  ")[1] for line in capsys.readouterr().err.splitlines()]
    assert shown == [CHECK, "in all"]
