"""Runs the README, except the blocks that install and test."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from documents import Block, blocks_of, commands_of, is_file, reading
from onnx import TensorProto, helper, numpy_helper

README = Path(__file__).parents[1] / "README.md"

ELSEWHERE = ("$ make", "AlexNet, seeded weights", "=====")
"""How blocks begin that the Makefile stands for."""


def blocks(first: str, last: str) -> Iterator[Block]:
    """The blocks of the README from one heading up to another."""
    lines = README.read_text(encoding="utf-8").splitlines()
    start, end = lines.index(first), lines.index(last)
    return (block for block in blocks_of(README) if start < block.line < end)


def write_model(path: Path) -> None:
    """A model with weights, whose batch has no size yet: y = 2 x."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 4]) for n in "xy")
    w = numpy_helper.from_array(2 * np.eye(4, dtype=np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [w])
    opsets = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def test_every_block_runs_as_it_stands(tmp_path: Path):
    write_model(tmp_path / "model.onnx")
    x = np.linspace(-1, 1, 4, dtype=np.float32).reshape(1, 4)
    np.savez(tmp_path / "x.npz", x=x)
    with reading(tmp_path) as reader:
        for block in blocks_of(README):
            if not block.text.startswith(ELSEWHERE):
                reader.read(block)
        assert np.array_equal(reader.names["outputs"]["y"], 2 * x)


def test_a_pass_with_its_program_and_test_is_fifteen_lines_at_most():
    count = 0
    for block in blocks("### Write a pass", "### See the IR between stages"):
        if is_file(block):
            count += sum(bool(line.strip()) for line in block.text.splitlines()[1:])
        else:
            count += sum(1 for _ in commands_of(block))
    assert 0 < count <= 15
