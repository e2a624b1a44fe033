from pathlib import Path

import pytest
from some_passes import Append, Nothing
from xdsl.dialects import builtin, test
from xdsl.dialects.builtin import ModuleOp

from abele.dialects.abele import Abele
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.ir.instruments.dump_ir import MANIFEST, DumpIR, check_dump_folder
from abele.ir.pass_manager import PassManager
from abele.ir.text import print_module, read_module


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
    assert (tmp_path / "00-input.mlir").read_text() == first
    assert (tmp_path / "01-append.mlir").read_text() == print_module(module)


def test_a_dump_removes_the_previous_one_and_nothing_else(tmp_path: Path):
    notes = ("notes.mlir", "2024-notes.mlir", "01-notes.txt")
    for name in notes:
        (tmp_path / name).write_text("")
    for passes in ((Append(1), Append(1), Append(1)), (Append(1),)):
        PassManager(passes, (DumpIR(tmp_path),)).run(AbeleContext(), ModuleOp([]))
    assert files(tmp_path) == ["00-input.mlir", "01-append.mlir", "2024-notes.mlir", "notes.mlir"]
    assert (tmp_path / "01-notes.txt").exists()


def dump_into(folder: Path) -> None:
    PassManager((Append(1),), (DumpIR(folder),)).run(AbeleContext(), ModuleOp([]))


def test_a_file_that_was_added_stays_and_is_named(tmp_path: Path):
    for folder in (tmp_path / "new", tmp_path / "dumped"):
        folder.mkdir()
    dump_into(tmp_path / "dumped")
    for folder in (tmp_path / "new", tmp_path / "dumped"):
        mine = folder / "07-mine.mlir"
        mine.write_text("mine")
        with pytest.raises(
            InputError, match=r"07-mine.mlir: not written by a dump, so abele keeps it"
        ):
            check_dump_folder(folder, "net.onnx")
        with pytest.raises(InputError, match=r"need another folder, or remove it"):
            dump_into(folder)
        assert mine.read_text() == "mine"
        mine.unlink()
        check_dump_folder(folder, "net.onnx")


def test_if_a_dumped_file_was_edited_the_whole_dump_stays(tmp_path: Path):
    dump_into(tmp_path)
    edited = tmp_path / "01-append.mlir"
    edited.write_text(edited.read_text() + "// mine")
    for refuses in (lambda: check_dump_folder(tmp_path, ""), lambda: dump_into(tmp_path)):
        with pytest.raises(InputError, match=r"01-append.mlir: changed since it was dumped"):
            refuses()
    assert files(tmp_path) == ["00-input.mlir", "01-append.mlir"]
    assert edited.read_text().endswith("// mine")


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_dump_whose_manifest_is_lost_stays(tmp_path: Path, text: str):
    dump_into(tmp_path)
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(InputError, match=r"00-input.mlir: not written by a dump"):
        check_dump_folder(tmp_path, "")


def test_a_dump_does_not_remove_its_own_source(tmp_path: Path):
    PassManager((Append(1),), (DumpIR(tmp_path),)).run(AbeleContext(), ModuleOp([]))
    with pytest.raises(InputError, match=r"01-append.mlir would be lost"):
        check_dump_folder(tmp_path, str(tmp_path / "01-append.mlir"))
    check_dump_folder(tmp_path / "other", str(tmp_path / "01-append.mlir"))
