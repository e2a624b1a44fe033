from pathlib import Path

from some_passes import Append, Nothing
from xdsl.dialects import builtin, test
from xdsl.dialects.builtin import ModuleOp

from abele.dialects.abele import Abele
from abele.ir.context import AbeleContext
from abele.ir.instruments.dump_ir import DumpIR
from abele.ir.pass_manager import PassManager
from abele.ir.text import print_module, read_module
from abele.ir.text_version import with_version


def files(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.glob("*.mlir"))


def test_only_passes_that_changed_the_text_leave_a_file(tmp_path: Path):
    passes = (Nothing(), Append(2), Nothing(), Append(1))
    PassManager(passes, (DumpIR(tmp_path),)).run(AbeleContext(), ModuleOp([]))
    assert files(tmp_path) == ["00-input.mlir", "02-append.mlir", "04-append.mlir"]


def test_a_dump_can_be_read_again_with_its_blobs_and_locations(tmp_path: Path):
    module = ModuleOp([])
    PassManager((Append(3),), (DumpIR(tmp_path),)).run(AbeleContext(), module)
    assert len(list((tmp_path / "blobs").glob("*.npy"))) == 3
    context = AbeleContext()
    for dialect in (builtin.Builtin, test.Test, Abele):
        context.load_dialect(dialect)
    again = read_module(tmp_path / "01-append.mlir", context)
    assert again.is_structurally_equivalent(module)
    assert print_module(again) == print_module(module)


def test_one_instrument_serves_several_runs(tmp_path: Path):
    dump, module = DumpIR(tmp_path), ModuleOp([])
    PassManager((Append(1),), (dump,)).run(AbeleContext(), module)
    first = print_module(module)
    PassManager((Append(2),), (dump,)).run(AbeleContext(), module)
    assert files(tmp_path) == ["00-input.mlir", "01-append.mlir"]
    assert (tmp_path / "00-input.mlir").read_text() == with_version(first)
    assert (tmp_path / "01-append.mlir").read_text() == with_version(print_module(module))
