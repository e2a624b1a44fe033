"""A file that no front end reads is named, with the line that exports its model."""

from pathlib import Path

import pytest

from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.importers.front_ends import suffixes
from abele.tools.importers.other_files import EXPORTS, how_to_export

NO_LINE = {".caffemodel", ".params", ".ort"}
"""Kinds of files from which nothing exports."""


@pytest.mark.parametrize("suffix", EXPORTS)
def test_each_kind_of_file_says_what_it_is_and_how_it_is_exported(tmp_path: Path, suffix: str):
    path = tmp_path / f"net{suffix}"
    path.write_bytes(b"anything")
    with pytest.raises(InputError) as caught:
        compile_model(path, "tiny:2")
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "which abele does not read" in message
    assert ("; export it: " in message) == (suffix not in NO_LINE)
    assert "{" not in message.replace("{'zipmap'", "")


def test_no_kind_is_one_that_abele_reads():
    assert not EXPORTS.keys() & {*suffixes()}


@pytest.mark.parametrize("name", ["", "saved_model.pb"])
def test_a_saved_model_is_known_by_its_file(tmp_path: Path, name: str):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    line = f"python -m tf2onnx.convert --saved-model {tmp_path} --output net.onnx"
    assert how_to_export(str(tmp_path / name)).endswith(line)


def test_upper_case_and_unknown_kinds():
    assert "weights without a graph" in how_to_export("NET.SAFETENSORS")
    assert how_to_export("net.doc") == how_to_export("net") == ""
