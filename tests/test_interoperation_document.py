"""Runs the page about other compilers."""

from pathlib import Path

from documents import blocks_of, reading

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "interoperation.md"


def test_the_page_runs_as_it_stands(tmp_path: Path):
    with reading(tmp_path) as reader:
        for block in blocks_of(PAGE):
            if "jaxlib" not in block.text:
                reader.read(block)
