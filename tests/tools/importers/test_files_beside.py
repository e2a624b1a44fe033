"""Files of a model lie below its folder, and are files."""

import os
from pathlib import Path

import pytest

from abele.ir.support.errors import InputError
from abele.tools.importers.caffe.blobs import read_blobs
from abele.tools.importers.files_beside import file_inside, read_regular
from abele.tools.importers.mxnet.params import read_params


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (read_blobs, read_params, lambda path: read_regular(path, "here")):
        with pytest.raises(InputError, match="no regular file"):
            read(pipe)


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path):
    with pytest.raises(InputError, match="here: cannot be read: No such file"):
        read_regular(tmp_path / "missing", "here")
    (tmp_path / "file").write_bytes(b"bytes")
    assert read_regular(tmp_path / "file", "here") == b"bytes"


def test_a_file_lies_below_the_folder_of_the_model(tmp_path: Path):
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "own").touch()
    (tmp_path / "other").touch()
    (inner / "link").symlink_to(tmp_path / "other")
    assert file_inside(inner, "own", "here", "weights") == inner / "own"
    for where, message in (
        ("../other", r"here: weights in '\.\./other'; need a path below"),
        (str(tmp_path / "other"), "here: weights in .*; need a path below"),
        ("link", "here: 'link' links to a place outside"),
        ("missing", "here: there is no file 'missing' of weights"),
    ):
        with pytest.raises(InputError, match=message):
            file_inside(inner, where, "here", "weights")
