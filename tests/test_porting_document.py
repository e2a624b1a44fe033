"""Runs the page about bringing models."""

import lzma
from pathlib import Path

from documents import blocks_of, reading

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "porting.md"
FIXTURES = ROOT / "tests" / "tools" / "importers" / "pt2" / "fixtures"
MODELS = {"net.pt2": "mlp", "free.pt2": "free sizes"}
"""The archives that stand for the models of the page."""


def test_the_page_runs_as_it_stands(tmp_path: Path):
    for file, name in MODELS.items():
        data = lzma.decompress((FIXTURES / f"{name}.pt2.xz").read_bytes())
        (tmp_path / file).write_bytes(data)
    with reading(tmp_path) as reader:
        for block in blocks_of(PAGE):
            if block.kind != "text":
                reader.read(block)
