import shlex
from pathlib import Path

import pytest
from some_passes import REGISTRY, Append, Break, Crash, Nothing, TooLarge
from xdsl.dialects import builtin, test
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from abele.dialects.abele import Abele
from abele.ir.context import AbeleContext
from abele.ir.errors import DoesNotFit
from abele.ir.instruments.reproducer import Reproducer
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


def test_the_file_tells_the_command_and_the_error(tmp_path: Path):
    with pytest.raises(RuntimeError) as caught:
        PassManager((Crash(),), (Reproducer(tmp_path),)).run(context(), ModuleOp([]))
    first, second, *_ = (tmp_path / "reproducer-01-crash.mlir").read_text().splitlines()
    assert first.startswith("// abele-opt ")
    assert first.removeprefix("// ") in caught.value.__notes__[-1]
    assert second == "// RuntimeError: half way"


def test_what_verification_finds_is_reproduced_too(tmp_path: Path):
    instruments = (Reproducer(tmp_path), VerifyEach())
    with pytest.raises(VerifyException):
        PassManager((Nothing(), Break()), instruments).run(context(), ModuleOp([]))
    assert [each.name for each in tmp_path.iterdir()] == ["reproducer-02-break.mlir"]


def test_a_program_that_does_not_fit_is_no_bug(tmp_path: Path):
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
