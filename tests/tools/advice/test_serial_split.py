import json
from pathlib import Path
from shlex import split
from typing import Any

import pytest

from abele.backends.target import resolve_target
from abele.tools.advice.memory_map import memory_map
from abele.tools.advice.room import CompileSettings, Trial
from abele.tools.advice.serial_split import constraints_with, serial_splits
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable
from abele.tools.extensions import Extensions

NET = """
func.func @main(%x: tensor<64x256xf32>, %w: tensor<256x512xf32>, %v: tensor<512x32xf32>)
    -> tensor<64x32xf32> {
  %0 = nn.matmul %x, %w
      : (tensor<64x256xf32>, tensor<256x512xf32>) -> tensor<64x512xf32> loc("fc1")
  %1 = nn.relu %0 : (tensor<64x512xf32>) -> tensor<64x512xf32> loc("relu1")
  %2 = nn.matmul %1, %v
      : (tensor<64x512xf32>, tensor<512x32xf32>) -> tensor<64x32xf32> loc("fc2")
  func.return %2 : tensor<64x32xf32>
}
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.mlir"
    path.write_text(NET)
    return path


def compiled(path: Path, way: CompileSettings) -> Executable:
    asked = path.with_suffix(".json")
    asked.write_text(json.dumps(constraints_with(None, way.operators)))
    return compile_model(path, way.target, passes=way.passes, constraints=asked, unbounded=True)


def trials(path: Path, target: str, passes: str = "") -> tuple[Executable, list[Trial]]:
    own = CompileSettings(resolve_target(target), passes)
    exe = compiled(path, own)
    found = serial_splits(memory_map(exe), exe, own, lambda way: compiled(path, way), Extensions())
    return exe, list(found)


def asked_by(tried: Trial) -> dict[str, Any]:
    return json.loads(split(tried.change.partition(" with ")[2])[0].rstrip(":"))


def test_the_operator_of_the_fullest_superstep_is_given_less(net: Path):
    exe, (tried,) = trials(net, "tiny:16")
    assert exe.memory.worst_step == "fc1+relu1"
    assert list(asked_by(tried)["operators"]) == ["fc1+relu1"]
    assert tried.bytes < exe.memory.max_tile_bytes
    assert (tried.cycles or 0) > exe.profile["cycles"]


def test_the_steps_of_an_operator_are_reported(net: Path):
    _, (tried,) = trials(net, "tiny:16,memory.bytes_per_tile=100000")
    assert tried.change.endswith(": fc1+relu1 in 8 steps")


def test_the_memory_proportion_is_lowered_until_the_program_fits(net: Path):
    exe, tried = trials(net, "tiny:16,memory.bytes_per_tile=70000")
    sizes = [exe.memory.max_tile_bytes, *(each.bytes for each in tried)]
    assert len(tried) > 1
    assert sizes == sorted(set(sizes), reverse=True)
    limits = [asked_by(each)["operators"]["fc1+relu1"]["memory_proportion"] for each in tried]
    assert limits == sorted(set(limits), reverse=True)


def test_following_the_advice_gives_the_figures_of_the_trial(net: Path, tmp_path: Path):
    target = "tiny:16,memory.bytes_per_tile=100000"
    _, (tried,) = trials(net, target)
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps(asked_by(tried)))
    exe = compile_model(net, target, constraints=asked)
    assert (exe.memory.max_tile_bytes, exe.profile["cycles"]) == (tried.bytes, tried.cycles)


def test_a_pipeline_that_does_not_name_nn_is_left_alone(net: Path):
    assert trials(net, "tiny:8", "fuse-chains,partition,tile,exchange")[1] == []


def test_existing_constraints_are_kept():
    given = {"memory_proportion": 0.5, "operators": {"a": {"tiles": 4}, "b": {"plan": "split [1]"}}}
    assert constraints_with(given, [("a", 0.1), ("b", 0.1), ("c", 0.2)]) == {
        "memory_proportion": 0.5,
        "operators": {
            "a": {"tiles": 4, "memory_proportion": 0.1},
            "b": {"plan": "split [1]"},
            "c": {"memory_proportion": 0.2},
        },
    }
