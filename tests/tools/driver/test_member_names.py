import os
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.tools.cli import app
from abele.tools.driver.arrays import Tensor, read_npz, write_npz
from abele.tools.driver.member_names import LONGEST, member_names

PIECES = st.sampled_from(["y", "a", "..", "/", "\\", ".npy", "\0", "C:", ".", "é", "\n", "\ud800"])
NAMES = st.lists(PIECES, max_size=5).map("".join) | st.text(max_size=8)


@given(st.lists(NAMES, min_size=1, max_size=4, unique=True))
@settings(max_examples=80, deadline=None)
@example(["y", "y.npy"])
@example([""])
@example(["file", "/y"])
@example(["..\\..\\y"])
def test_every_array_is_read_back_under_its_own_name(names: list[str]):
    arrays = {name: np.array(index) for index, name in enumerate(names)}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "y.npz"
        try:
            write_npz(path, arrays)
        except InputError:
            assert not path.exists()
            return
        with np.load(path, allow_pickle=False) as found:
            assert set(found.files) == set(names)
            assert all(int(found[name]) == index for index, name in enumerate(names))
    for member in member_names(names).values():
        unpacked = os.path.normpath(os.path.join("/folder", member))
        assert unpacked.startswith("/folder/")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["y\0a", "y\0b"], r"'y\\x00a' cannot be stored in an .npz file: zip ends names at"),
        (["../../y"], "'../../y' .* leads out of the folder"),
        (["a/../../y"], "leads out of the folder"),
        (["/etc/y"], "leads out of the folder"),
        (["C:\\y"], "leads out of the folder"),
        (["y" * LONGEST], "'y{60}'... .* has 65535 bytes, and zip stores at most 65531"),
        (["y", "y.npy"], "numpy.load would return 'y' for it"),
        (["\ud800"], "not Unicode text"),
    ],
    ids=lambda value: str(value)[:20].encode(errors="replace").decode(),
)
def test_a_name_that_would_be_lost_is_refused(names: list[str], message: str):
    with pytest.raises(InputError, match=message):
        member_names(names)


@pytest.mark.parametrize("name", ["y", "y:0", "scope/y", "a..b", "...", "y.npy", "file", "é" * 9])
def test_names_of_frameworks_are_taken(name: str):
    assert member_names([name]) == {name: f"{name}.npy"}


def test_equal_arrays_make_equal_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(2):
        monkeypatch.setattr("time.time", lambda now=number: 1e9 + 1e7 * now)
        write_npz(tmp_path / f"{number}.npz", {"y": np.arange(3)})
    assert (tmp_path / "0.npz").read_bytes() == (tmp_path / "1.npz").read_bytes()


def test_run_refuses_a_name_before_it_runs(tmp_path: Path):
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["../../y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("../../y", TensorProto.FLOAT, [4])],
    )
    opsets = [helper.make_opsetid("", 17)]
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    arguments = ["run", str(path), "--target", "tiny", "--outputs", str(tmp_path / "y.npz")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "the name '../../y' cannot be stored" in result.stderr
    assert not (tmp_path / "y.npz").exists()


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, ml_dtypes.bfloat16])
def test_an_array_from_another_process_is_read_back_with_its_type(dtype, tmp_path: Path):
    """NumPy does not count the type of an unpickled array as a type of its own."""
    array = pickle.loads(pickle.dumps(np.array([1, 0, 1], dtype)))
    write_npz(tmp_path / "x.npz", {"x": array})
    found = read_npz(tmp_path / "x.npz", [Tensor("x", array.shape, np.dtype(dtype))])["x"]
    assert found.dtype == dtype
    assert found.tobytes() == array.tobytes()
