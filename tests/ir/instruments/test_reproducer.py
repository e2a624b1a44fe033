import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from some_passes import REGISTRY, Append, Break, Crash, Nothing, TooLarge
from xdsl.context import Context
from xdsl.dialects import builtin, test
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.test import TestOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from abele.dialects.abele import Abele
from abele.ir.context import AbeleContext
from abele.ir.errors import DoesNotFit
from abele.ir.instruments.reproducer import Reproducer, fresh_folder
from abele.ir.instruments.verify_each import VerifyEach
from abele.ir.pass_manager import PassManager, parse_pipeline
from abele.ir.text import read_module


def context() -> AbeleContext:
    made = AbeleContext()
    for dialect in (builtin.Builtin, test.Test, Abele):
        made.load_dialect(dialect)
    return made


def test_the_reproducer_reproduces(tmp_path: Path):
    passes = (Append(2), Crash(), Nothing(label="a b", rate=1e-9))
    with pytest.raises(RuntimeError, match="half way") as caught:
        PassManager(passes, (Reproducer(tmp_path),)).run(context(), ModuleOp([]))
    note = caught.value.__notes__[-1]
    command = shlex.split(note.removeprefix("reproduce with: "))
    path = tmp_path / "reproducer-02-crash.mlir"
    assert command[:3] == ["abele-opt", str(path), "-p"]

    here = context()
    module = read_module(path, here)
    assert len(module.body.block.ops) == 2, "the module is as it was before the pass"
    assert len(here.blobs) == 2
    rest = parse_pipeline(command[3], REGISTRY)
    assert rest == passes[1:]
    with pytest.raises(RuntimeError, match="half way"):
        PassManager(rest).run(here, module)


def test_the_reproducer_file_names_the_command_and_the_error(tmp_path: Path):
    with pytest.raises(RuntimeError) as caught:
        PassManager((Crash(),), (Reproducer(tmp_path),)).run(context(), ModuleOp([]))
    first, second, *_ = (tmp_path / "reproducer-01-crash.mlir").read_text().splitlines()
    assert first.startswith("// abele-opt ")
    assert first.removeprefix("// ") in caught.value.__notes__[-1]
    assert second == "// RuntimeError: half way"


def test_verification_errors_are_reproduced_too(tmp_path: Path):
    instruments = (Reproducer(tmp_path), VerifyEach())
    with pytest.raises(VerifyException):
        PassManager((Nothing(), Break()), instruments).run(context(), ModuleOp([]))
    assert [each.name for each in tmp_path.iterdir()] == ["reproducer-02-break.mlir"]


def test_a_program_that_does_not_fit_leaves_no_reproducer(tmp_path: Path):
    with pytest.raises(DoesNotFit):
        PassManager((TooLarge(),), (Reproducer(tmp_path),)).run(context(), ModuleOp([]))
    assert not list(tmp_path.iterdir())


def test_success_leaves_nothing(tmp_path: Path):
    PassManager((Append(),), (Reproducer(tmp_path),)).run(context(), ModuleOp([]))
    assert not list(tmp_path.iterdir())


def test_a_reproducer_that_cannot_be_written_hides_no_error(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(RuntimeError, match="half way") as caught:
        PassManager((Crash(),), (Reproducer(file),)).run(context(), ModuleOp([]))
    assert caught.value.__notes__[-1].startswith(f"no reproducer: {file}/reproducer-01-crash.mlir")


# Smaller modules


@dataclass(frozen=True)
class NoTwins(ModulePass):
    """Fail on two operations of one name."""

    name = "no-twins"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = [each.attributes["name"] for each in op.body.block.ops]
        twins = {name for name in names if names.count(name) > 1}
        if twins:
            raise RuntimeError(f"{len(twins)} pairs of twins\nof {len(names)}")


def twins(*names: str) -> ModuleOp:
    return ModuleOp([TestOp(attributes={"name": StringAttr(name)}) for name in names])


def without_each(module: ModuleOp, fails: Callable[[ModuleOp], bool]) -> ModuleOp:
    """Erase what can be: the simplest of reducers."""
    for index in reversed(range(len(module.body.block.ops))):
        smaller = module.clone()
        smaller.body.block.erase_op(list(smaller.body.block.ops)[index])
        if fails(smaller):
            module = smaller
    return module


def reproduced(folder: Path, module: ModuleOp, **options: Any) -> str:
    with pytest.raises(RuntimeError) as caught:
        PassManager((NoTwins(),), (Reproducer(folder, **options),)).run(context(), module)
    assert "reproduce with: " in caught.value.__notes__[-1]
    return (folder / "reproducer-01-no-twins.mlir").read_text()


def test_a_reproducer_is_reduced_as_long_as_it_fails_in_the_same_way(tmp_path: Path):
    module = twins("a", "b", "c", "b", "d")
    text = reproduced(tmp_path, module, reduce=without_each)
    assert text.count("test.op") == 2
    assert text.count('"b"') == 2
    assert len(module.body.block.ops) == 5, "the program itself is left alone"


def test_a_reproducer_is_not_reduced_to_another_failure(tmp_path: Path):
    text = reproduced(tmp_path, twins("a", "a", "b", "b", "c"), reduce=without_each)
    assert text.count("test.op") == 4, "one pair of twins is told apart from two"


def test_the_result_of_a_wrong_reducer_is_dropped(tmp_path: Path):
    def wrong(module: ModuleOp, fails: Callable[[ModuleOp], bool]) -> ModuleOp:
        return ModuleOp([])

    assert reproduced(tmp_path, twins("a", "a"), reduce=wrong).count("test.op") == 2


def test_a_reducer_that_crashes_hides_no_error(tmp_path: Path):
    def crash(module: ModuleOp, fails: Callable[[ModuleOp], bool]) -> ModuleOp:
        raise ValueError("reducer")

    assert reproduced(tmp_path, twins("a", "a"), reduce=crash).count("test.op") == 2


def test_reduction_ends_with_its_time(tmp_path: Path):
    text = reproduced(tmp_path, twins("a", "b", "b"), reduce=without_each, seconds=0)
    assert text.count("test.op") == 3


def test_verification_errors_are_reduced_too(tmp_path: Path):
    checks = (VerifyEach(),)
    module = twins("a", "b", "c")
    instruments = (Reproducer(tmp_path, checks=checks, reduce=without_each), *checks)
    with pytest.raises(VerifyException):
        PassManager((Nothing(), Break()), instruments).run(context(), module)
    text = (tmp_path / "reproducer-02-break.mlir").read_text()
    assert "test.op" not in text.partition("builtin.module")[2]


# Where it goes


def test_a_folder_is_found_when_a_pass_fails(tmp_path: Path):
    with pytest.raises(RuntimeError):
        folder = Reproducer(lambda name: tmp_path / name)
        PassManager((Nothing(), Crash()), (folder,)).run(context(), ModuleOp([]))
    assert (tmp_path / "crash" / "reproducer-02-crash.mlir").exists()


def test_a_fresh_folder_does_not_exist_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert fresh_folder("crash") == Path("abele-reproducer-crash")
    (tmp_path / "abele-reproducer-crash").write_text("a file")
    (tmp_path / "abele-reproducer-crash-2").mkdir()
    assert fresh_folder("crash") == Path("abele-reproducer-crash-3")


def test_a_file_that_is_not_a_reproducer_is_left_alone(tmp_path: Path):
    mine = tmp_path / "reproducer-01-crash.mlir"
    mine.write_text("mine")
    for _ in range(2):
        with pytest.raises(RuntimeError):
            PassManager((Crash(),), (Reproducer(tmp_path),)).run(context(), ModuleOp([]))
    assert mine.read_text() == "mine"
    assert {each.name for each in tmp_path.glob("*.mlir")} == {
        "reproducer-01-crash.mlir",
        "reproducer-01-crash-2.mlir",
    }


def test_the_command_has_all_arguments_that_the_passes_need(tmp_path: Path):
    with pytest.raises(RuntimeError) as caught:
        reproducer = Reproducer(tmp_path, ("--load", "my pass.py"))
        PassManager((Crash(),), (reproducer,)).run(context(), ModuleOp([]))
    assert caught.value.__notes__[-1].endswith("-p crash --load 'my pass.py'")
