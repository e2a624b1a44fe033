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
from abele.tools.extensions import Extensions

LAYERS = 5


@pytest.fixture
def step(tmp_path: Path) -> Path:
    path = tmp_path / "step.mlir"
    path.write_text(training_step(LAYERS, 8, 16))
    return path


def compiled(path: Path, how: CompileSettings) -> Executable:
    return compile_model(path, how.target, passes=how.passes, unbounded=True)


def trials(path: Path, target: str, passes: str = "") -> tuple[Executable, list[Trial]]:
    own = CompileSettings(resolve_target(target), passes)
    exe = compiled(path, own)
    tried = recomputations(memory_map(exe), exe, own, lambda how: compiled(path, how), Extensions())
    return exe, list(tried)


def test_more_operations_are_recomputed_until_the_program_fits(step: Path):
    exe, tried = trials(step, "tiny:8,memory.bytes_per_tile=30000")
    assert [each.fits for each in tried] == [False, True]
    sizes = [exe.memory.max_tile_bytes, *(each.bytes for each in tried)]
    assert sizes == sorted(sizes, reverse=True)
    assert all((each.cycles or 0) > exe.profile["cycles"] for each in tried)


def test_one_recomputation_is_tried_for_a_program_that_fits(step: Path):
    exe, tried = trials(step, "tiny:8")
    assert len(tried) == 1
    assert tried[0].bytes < exe.memory.max_tile_bytes


def test_following_the_advice_gives_the_figures_of_the_trial(step: Path):
    target = "tiny:8,memory.bytes_per_tile=32000"
    _, (tried,) = trials(step, target)
    option, passes = split(tried.change)
    assert option == "-p"
    exe = compile_model(step, target, passes=passes)
    assert exe.memory.max_tile_bytes == tried.bytes
    assert exe.profile["cycles"] == tried.cycles


def test_a_pipeline_of_the_users_stays_round_it(step: Path):
    _, (tried,) = trials(step, "tiny:8", "nn,eliminate-dead,partition,tile,exchange")
    passes = split(tried.change)[1]
    assert passes.startswith("nn,recompute{nodes=")
    assert passes.endswith(",eliminate-dead,partition,tile,exchange")


def test_a_pipeline_that_does_not_name_nn_is_left_alone(step: Path):
    _, tried = trials(step, "tiny:8", "fuse-chains,partition,tile,exchange")
    assert tried == []


def test_a_program_that_begins_below_nn_is_left_alone(step: Path, tmp_path: Path):
    compile_model(step, "tiny:8", dump_ir=tmp_path / "stages")
    (below,) = (tmp_path / "stages").glob("*-convert-nn-to-partition.mlir")
    _, tried = trials(below, "tiny:8")
    assert tried == []
