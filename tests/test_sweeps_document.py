"""Runs the page about sweeps."""

from pathlib import Path

from documents import blocks_of, reading

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "sweeps.md"


def test_the_page_runs_as_it_stands(tmp_path: Path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with reading(tmp_path) as reader:
        for block in blocks_of(PAGE):
            reader.read(block)
