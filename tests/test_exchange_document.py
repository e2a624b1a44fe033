"""Runs the page about exchanges."""

from pathlib import Path

from documents import blocks_of, reading

PAGE = Path(__file__).parents[1] / "docs" / "exchange.md"


def test_the_page_runs_as_it_stands(tmp_path: Path):
    with reading(tmp_path) as reader:
        for block in blocks_of(PAGE):
            reader.read(block)
