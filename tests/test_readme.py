"""Runs the README, except the blocks that install and test."""

from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest
from documents import Block, blocks_of, commands_of, is_file, reading

README = Path(__file__).parents[1] / "README.md"

ELSEWHERE = ("$ make", "AlexNet, seeded weights")
"""How blocks begin that the Makefile stands for."""


def blocks(first: str, last: str) -> Iterator[Block]:
    """The blocks of the README from one heading up to another."""
    lines = README.read_text(encoding="utf-8").splitlines()
    start, end = lines.index(first), lines.index(last)
    return (block for block in blocks_of(README) if start < block.line < end)


@pytest.mark.slow
def test_every_block_runs_as_it_stands(tmp_path: Path):
    copytree(README.parent / "examples", tmp_path / "examples")
    with reading(tmp_path) as reader:
        for block in blocks_of(README):
            if not block.text.startswith(ELSEWHERE):
                reader.read(block)
        right = reader.names["scores"].argmax(axis=1) == reader.names["labels"]
        assert f"{right.mean():.3f}" in README.read_text(encoding="utf-8")


def test_a_pass_with_its_program_and_test_has_at_most_15_lines():
    count = 0
    for block in blocks("### Write a pass", "### See the IR between stages"):
        if is_file(block):
            count += sum(bool(line.strip()) for line in block.text.splitlines()[1:])
        else:
            count += sum(1 for _ in commands_of(block))
    assert 0 < count <= 15
