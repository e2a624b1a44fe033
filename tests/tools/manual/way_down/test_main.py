"""The picture of the design page shows the program that the page compiles."""

from pathlib import Path

import pytest

from abele.ir.errors import InputError
from abele.passes.pipelines import DOWN
from abele.tools.manual.way_down.__main__ import draw, picture
from abele.tools.manual.way_down.drawing import PASSES
from abele.tools.manual.way_down.example import PADDING, Example, example

DOCS = Path(__file__).parents[4] / "docs"
PAGE, PICTURE = DOCS / "design.md", DOCS / "way_down.svg"
WINDOW = "conv+relu/in0"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Example:
    block = PAGE.read_text().split("```mlir\n// conv.mlir\n")[1].split("```")[0]
    path = tmp_path_factory.mktemp("example") / "conv.mlir"
    path.write_text(block)
    return example(path, "tiny:4")


def test_the_picture_is_what_the_program_draws():
    assert picture(PAGE.read_text()) == PICTURE.read_text(), "run `make reference`"


def test_another_program_draws_another_picture():
    page = PAGE.read_text().replace("pad [1, 1] to [1, 1] :", "pad [0, 1] to [2, 1] :", 1)
    assert page != PAGE.read_text()
    assert picture(page) != PICTURE.read_text()


def test_the_messages_are_those_that_the_price_counts(found: Example):
    received = sum(int(found.received(name).sum()) for name in (WINDOW, "conv+relu/in1"))
    assert received == found.step.exchange_bytes > 0


def test_a_part_has_its_rows_and_one_of_each_neighbour(found: Example):
    rows = found.variables[WINDOW].senders[:, 0, 0, :, 1]
    assert rows.tolist() == [
        [PADDING, 0, 0, 0, 0, 1],
        [0, 1, 1, 1, 1, 2],
        [1, 2, 2, 2, 2, 3],
        [2, 3, 3, 3, 3, PADDING],
    ]


def test_the_passes_between_levels_are_in_the_pipeline(found: Example):
    names = [name for line in PASSES for name in line.split(", ")]
    every = [name.partition("{")[0] for passes in DOWN.values() for name in passes]
    assert [name for name in every if name in names] == names


def test_a_page_without_an_example_is_refused(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("# Nothing\n")
    with pytest.raises(InputError, match="no example"):
        draw(page, tmp_path / "out.svg")
    assert not (tmp_path / "out.svg").exists()
