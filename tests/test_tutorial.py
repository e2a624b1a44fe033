"""Runs the tutorial: each chapter from its first block to its last, in one folder."""

import re
from pathlib import Path

import pytest
from documents import blocks_of, reading

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial"
CHAPTERS = sorted(TUTORIAL.glob("[0-9]*.md"), key=lambda path: int(path.stem.partition("-")[0]))
CONVERSION = TUTORIAL.parents[1] / "passes" / "rules" / "tile_to_exchange.rw"


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_runs_as_it_stands(chapter: Path, tmp_path: Path):
    with reading(tmp_path) as reader:
        for block in blocks_of(chapter):
            reader.read(block)


def test_the_index_names_every_chapter():
    index = (TUTORIAL / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\d.*?\.md)\)", index) == [path.name for path in CHAPTERS]


def test_the_conversion_that_is_shown_is_abeles_own():
    (shown, *_) = (each.text for each in blocks_of(CHAPTERS[2]) if "my_conversion" in each.text)
    assert rules_in(shown) == rules_in(CONVERSION.read_text(encoding="utf-8"))


def rules_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("//")]
