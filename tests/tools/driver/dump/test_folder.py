from pathlib import Path

import pytest
from some_models import convolutions, relu

from abele.ir.errors import InputError
from abele.ir.support.whole_folder import MANIFEST
from abele.tools import compile_model
from abele.tools.driver.dump.folder import check_dump, dump_folder


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    compile_model(relu(), "tiny", dump_ir=tmp_path / "dump")
    return tmp_path / "dump"


def test_a_page_of_another_program_is_not_overwritten(tmp_path: Path):
    (tmp_path / "index.html").write_text("<p>mine</p>")
    with pytest.raises(InputError, match=r"holds index.html, which abele did not write"):
        check_dump(tmp_path, "net.onnx")
    with pytest.raises(InputError, match=r"index.html"):
        compile_model(convolutions(), "tiny", dump_ir=tmp_path)
    assert (tmp_path / "index.html").read_text() == "<p>mine</p>"


def test_a_dump_replaces_the_previous_one_and_nothing_else(dump: Path):
    first = names(dump)
    compile_model(relu(), "tiny", passes="nn,partition,tile,exchange", dump_ir=dump)
    assert names(dump) == first
    for name in ("notes.txt", "07-mine.mlir", "blobs/mine.npy"):
        (dump / name).parent.mkdir(exist_ok=True)
        (dump / name).write_text("mine")
        with pytest.raises(
            InputError, match=r"dump: cannot be written: it holds \S+, which abele did not write;"
        ):
            compile_model(relu(), "tiny", dump_ir=dump)
        assert (dump / name).read_text() == "mine"
        (dump / name).unlink()


def test_a_dump_does_not_remove_its_own_source(dump: Path):
    source = dump / "00-input.mlir"
    with pytest.raises(InputError, match=r"00-input.mlir would be lost"):
        compile_model(source, dump_ir=dump)
    compile_model(source, dump_ir=dump.with_name("other"))


def test_a_dump_shows_the_program_up_to_a_failure(tmp_path: Path):
    folder = tmp_path / "dump"
    with pytest.raises(KeyboardInterrupt), dump_folder(folder) as made:
        (made / "00-input.mlir").write_text("input")
        raise KeyboardInterrupt
    assert names(folder) == {"00-input.mlir", MANIFEST}
    # Nothing was dumped: the previous dump stays.
    with pytest.raises(ValueError, match="early"), dump_folder(folder):
        raise ValueError("early")
    assert names(folder) == {"00-input.mlir", MANIFEST}


def test_a_full_disk_keeps_the_previous_dump(dump: Path, monkeypatch: pytest.MonkeyPatch):
    before = {each.name: each.read_bytes() for each in dump.iterdir() if each.is_file()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("abele.tools.driver.dump.instruments.page", full)
    with pytest.raises(InputError, match="dump: cannot be written: No space left on device"):
        compile_model(relu(), "tiny", dump_ir=dump)
    assert {each.name: each.read_bytes() for each in dump.iterdir() if each.is_file()} == before
    assert names(dump.parent) == {"dump"}
