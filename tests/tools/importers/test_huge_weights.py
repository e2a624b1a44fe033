"""Weights far larger than the chip are refused before one byte of them is read."""

import resource
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from abele.ir.errors import DoesNotFit, InputError
from abele.tools import compile_model
from abele.tools.importers.huge_weights import READ_BYTES, Weighed

COUNT, SIDE = 3, 16384
WEIGHT_BYTES = 4 * SIDE * SIDE


def huge(folder: Path, held: int = COUNT * WEIGHT_BYTES) -> Path:
    """A model of three matrices of 1 GiB in external data; the file has holes for bytes."""
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(COUNT)]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [1, SIDE])],
        [helper.make_empty_tensor_value_info(f"x{COUNT}")],
        [weight(i) for i in range(COUNT)],
    )
    with (folder / "weights.bin").open("wb") as stream:
        stream.truncate(held)
    path = folder / "huge.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)]), path)
    return path


def weight(index: int) -> onnx.TensorProto:
    made = onnx.TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=[SIDE, SIDE])
    made.data_location = TensorProto.EXTERNAL
    for key, value in {
        "location": "weights.bin",
        "offset": index * WEIGHT_BYTES,
        "length": WEIGHT_BYTES,
    }.items():
        made.external_data.add(key=key, value=str(value))
    return made


def test_the_command_ends_with_3_in_little_memory(tmp_path: Path):
    limit = 2 << 30
    done = subprocess.run(
        [sys.executable, "-c", "from abele.tools.cli import main; main()", "compile"]
        + [str(huge(tmp_path)), "--target", "tiny", "-o", str(tmp_path / "p.abele")],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1


def test_the_message_names_weights_sum_chip_and_remedy(tmp_path: Path):
    with pytest.raises(DoesNotFit) as caught:
        compile_model(huge(tmp_path), "tiny")
    message = str(caught.value)
    assert f"3 weights (w0 {WEIGHT_BYTES} B, w1 {WEIGHT_BYTES} B, w2 {WEIGHT_BYTES} B)" in message
    assert f"needs {COUNT * WEIGHT_BYTES} bytes on all tiles together, 983040 avail" in message
    assert "13108 tiles and more (--target tiny:N)" in message


def test_a_model_in_memory_is_refused_likewise_where_its_bytes_are_there(tmp_path: Path):
    """Shapes that claim more bytes than the model holds are damaged, not too large."""
    proto = onnx.load(huge(tmp_path), load_external_data=False)
    for tensor in proto.graph.initializer:
        tensor.ClearField("external_data")
        tensor.data_location = TensorProto.DEFAULT
        tensor.raw_data = b"1234"
    with pytest.raises(InputError, match="damaged tensor"):
        compile_model(proto, "tiny")


def test_missing_external_data_are_reported_first(tmp_path: Path):
    with pytest.raises(InputError, match="of 'weights.bin', which has 1000"):
        compile_model(huge(tmp_path, held=1000), "tiny")


def test_weights_that_nothing_reads_do_not_count(tmp_path: Path):
    path = huge(tmp_path)
    proto = onnx.load(path, load_external_data=False)
    del proto.graph.node[:]
    proto.graph.node.append(helper.make_node("Relu", ["x0"], [f"x{COUNT}"]))
    onnx.save(proto, path)
    assert compile_model(path, "tiny").outputs[0].shape == (1, SIDE)


def test_weights_one_after_the_other_are_checked_together_after_every_2_gib():
    seen: list[dict[str, int]] = []
    weighed = Weighed(lambda sizes: seen.append(dict(sizes)))
    for i in range(9):
        weighed.add(f"w{i}", READ_BYTES // 4)
    assert seen == [{f"w{i}": READ_BYTES // 4 for i in range(5)}]
    weighed.add("huge", READ_BYTES + 1)
    assert len(seen) == 2
    assert len(seen[1]) == 10
