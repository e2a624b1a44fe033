from pathlib import Path
from shlex import split

import pytest
from training import training_step

from abele.backends.target import resolve_target
from abele.tools.advice.memory_map import memory_map
from abele.tools.advice.recomputation import recomputations
from abele.tools.advice.room import CompileSettings, Trial
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable


@pytest.fixture
def step(tmp_path: Path) -> Path:
    path = tmp_path / "step.mlir"
    path.write_text(training_step(5, 8, 16))
    return path


def compiled(path: Path, how: CompileSettings) -> Executable:
    return compile_model(
        path, how.target, passes=how.passes, recompute=how.recompute, unbounded=True
    )


def trials(path: Path, target: str, passes: str = "") -> tuple[Executable, list[Trial]]:
    own = CompileSettings(resolve_target(target), passes)
    exe = compiled(path, own)
    return exe, [*recomputations(memory_map(exe), exe, own, lambda how: compiled(path, how))]


def test_nothing_is_computed_again_in_a_program_that_fits(step: Path):
    assert trials(step, "tiny:8")[1] == []


def test_following_the_advice_gives_the_figures_of_the_trial(step: Path):
    target = "tiny:8,memory.bytes_per_tile=30000"
    before, (tried,) = trials(step, target)
    assert tried.bytes < before.memory.max_tile_bytes
    option, value = split(tried.change)
    assert option == "--recompute"
    exe = compile_model(step, target, recompute=value)
    assert exe.memory.max_tile_bytes == tried.bytes
    assert exe.profile["cycles"] == tried.cycles


def test_a_pipeline_that_does_not_name_nn_is_left_alone(step: Path):
    own = "fuse-chains,partition,tile,exchange"
    assert trials(step, "tiny:8,memory.bytes_per_tile=30000", own)[1] == []
