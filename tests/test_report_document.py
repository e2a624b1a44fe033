"""The queries of the page about reports run, and its tables are those of the schema."""

import re
from pathlib import Path

import pytest
from some_models import convolutions

from abele.tools import load_report
from abele.tools.driver.compile import compile_model
from abele.tools.views.report.__main__ import with_tables
from abele.tools.views.report.collect import collect
from abele.tools.views.report.folder import write_report

PAGE = Path(__file__).parents[1] / "docs" / "report.md"
QUERIES = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report") / "DIR"
    write_report(collect(compile_model(convolutions(), target="tiny:8")), place)
    return place


def test_there_are_ten_questions():
    assert len(QUERIES) == 10


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_has_an_answer(query: str, folder: Path):
    assert len(load_report(folder).sql(query)) > 0


def test_the_page_lists_the_tables_of_the_schema():
    assert with_tables(PAGE.read_text()) == PAGE.read_text()
