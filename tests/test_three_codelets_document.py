"""Runs the page that works out three codelets, whose files are examples."""

from pathlib import Path

from documents import TITLE, blocks_of, reading

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "three-codelets.md"


def test_the_page_runs_as_it_stands(tmp_path: Path):
    with reading(tmp_path) as reader:
        for block in blocks_of(PAGE):
            reader.read(block)


def test_its_codelets_are_those_of_the_examples():
    titles = {
        found[1]: block.text for block in blocks_of(PAGE) if (found := TITLE.match(block.text))
    }
    for name in ("heat.py", "gate.py", "blocks.py"):
        assert titles[name] == (ROOT / "examples" / name).read_text(encoding="utf-8")
