from rich.table import Table
from some_models import model, node, random

from abele.tools.bench.switching import PROGRAMS, add_rows
from abele.tools.driver.compile import compile_model
from abele.tools.driver.session import Session


def test_each_change_between_two_programs_has_a_row():
    made = model([node("MatMul", "x w", "y")], {"x": ["N", 6]}, ["y"], {"w": random((6, 4))})
    programs = {str(n): compile_model(made, "tiny:8", batch=n) for n in (1, 2, 3)}
    table = Table(*[str(each) for each in range(9)])
    add_rows(table, "dense", Session(programs))
    assert table.row_count == 6
    assert next(iter(table.columns[1].cells)) == "1 -> 2"
    assert set(PROGRAMS) == {"resnet50", "alexnet"}
