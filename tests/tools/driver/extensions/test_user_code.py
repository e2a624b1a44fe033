from pathlib import Path

import pytest
from some_extensions import RELU, SOFT, abele

BROKEN = """
from dataclasses import dataclass
from xdsl.dialects.builtin import TensorType, f32
from xdsl.passes import ModulePass
from abele.dialects import nn

def helper(thing):
    return thing.no_such

@dataclass(frozen=True)
class Oops(ModulePass):
    name = "oops"
    def apply(self, ctx, op):
        for each in op.walk():
            if isinstance(each, nn.ReluOp):
                helper(each)

@dataclass(frozen=True)
class Breaks(ModulePass):
    name = "breaks"
    def apply(self, ctx, op):
        for each in op.walk():
            if isinstance(each, nn.ReluOp):
                each.result._type = TensorType(f32, [7])
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    return path


def test_a_failing_pass_shows_its_own_lines_only(broken: Path, relu: Path):
    down = ("-p", "oops,nn,partition,tile,exchange")
    result = abele("run", "relu.mlir", "--load", "broken.py", *down)
    assert result.exit_code == 2
    first, *rest = result.stderr.splitlines()
    problem = "AttributeError: 'ReluOp' object has no attribute 'no_such'"
    assert first.startswith("error: pass 'oops' (1 of ")
    assert first.endswith(f") failed at nn.relu, relu.mlir:4:5: {problem}")
    assert f'  File "{broken}", line 8, in helper' in rest
    assert f'  File "{broken}", line 16, in apply' in rest
    assert "pass_manager.py" not in result.stderr
    assert rest[-1].startswith("reproduce with: abele-opt abele-reproducer-oops/reproducer-01-oops")
    assert rest[-1].endswith("--load broken.py")


def test_the_reproducing_command_reproduces_the_failure(broken: Path, relu: Path):
    failed = abele("opt", "relu.mlir", "--load", "broken.py", "-p", "oops")
    command = failed.stderr.splitlines()[-1].removeprefix("reproduce with: abele-opt ").split()
    again = abele("opt", *command)
    assert again.exit_code == 2
    assert "'ReluOp' object has no attribute 'no_such'" in again.stderr
    assert "reproduce with" not in again.stderr, "it is its own reproducer"
    assert len(list(Path().glob("abele-reproducer-*"))) == 1


def test_a_fresh_folder_is_taken_for_each_failure(broken: Path, relu: Path):
    for name in ("abele-reproducer-oops", "abele-reproducer-oops-2"):
        abele("opt", "relu.mlir", "--load", "broken.py", "-p", "oops")
        assert (Path(name) / "reproducer-01-oops.mlir").exists()


def test_a_dump_holds_the_reproducer_too(broken: Path, relu: Path):
    down = ("-p", "oops,nn,partition,tile,exchange", "--dump-ir", "dump")
    abele("run", "relu.mlir", "--load", "broken.py", *down)
    assert (Path("dump") / "reproducer-01-oops.mlir").exists()
    assert not list(Path().glob("abele-reproducer-*"))


def test_a_pass_whose_result_does_not_verify_is_bad_input(broken: Path, relu: Path):
    result = abele("opt", "relu.mlir", "--load", "broken.py", "-p", "breaks")
    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert first.startswith("error: after pass 'breaks' (1 of 1): nn.relu at relu.mlir:4:5: result")
    assert second.startswith("reproduce with: abele-opt ")


def test_a_function_that_fails_on_the_machine_is_its_users(soft: Path, relu: Path):
    soft.write_text(SOFT.replace("x / (1 + np.abs(x))", "np.no_such(x)"))
    relu.write_text(RELU.replace("nn.relu", "mine.softsign"))
    result = abele("run", relu, "--load", soft, "--target", "tiny")
    assert result.exit_code == 2
    assert "AttributeError: module 'numpy' has no attribute 'no_such'" in result.stderr
    assert "soft.py" in result.stderr
