import io
from dataclasses import dataclass

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from abele.ir.errors import InputError
from abele.tools.views.planning.columns import (
    Column,
    add_columns,
    chosen,
    csv_text,
    fitting,
    hidden_line,
)


@dataclass(frozen=True)
class Layer:
    name: str
    cycles: float


COLUMNS = (
    Column[Layer]("node", lambda each: each.name, keep=3, fold=8),
    Column[Layer]("cycles", lambda each: each.cycles, lambda each: f"{each.cycles:,.0f}", keep=2),
    Column[Layer]("of peak", lambda each: each.cycles / 8192, lambda _: "50.00% MACs", keep=1),
)
LAYERS = (Layer("conv1+batch_norm1+relu1", 4096.5), Layer('pool, "max"', 12))
CELLS = {each.name: [each.cell(row) for row in LAYERS] for each in COLUMNS}


def names(columns: tuple[Column[Layer], ...]) -> list[str]:
    return [each.name for each in columns]


def test_a_cell_is_one_line_whatever_a_name_holds():
    assert COLUMNS[0].cell(Layer("fc\nerror: 1", 0)) == "fc error: 1"


def test_columns_go_by_rank_as_the_terminal_gets_narrower():
    found = [names(fitting(COLUMNS, CELLS, width)) for width in (80, 35, 34, 21, 20, 1)]
    every = ["node", "cycles", "of peak"]
    assert found == [every, every, every[:2], every[:2], every[:1], every[:1]]


@pytest.mark.parametrize("width", [21, 26, 35, 60])
def test_columns_that_fit_are_printed_within_the_width(width: int):
    shown = fitting(COLUMNS, CELLS, width)
    table = Table()
    add_columns(table, shown)
    for row in LAYERS:
        table.add_row(*(each.cell(row) for each in shown))
    written = io.StringIO()
    Console(file=written, width=width).print(table)
    lines = written.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= width
    # Numbers are whole.
    assert any("4,096" in line for line in lines)


def test_columns_are_chosen_in_any_order_with_a_dash_for_a_space():
    assert names(chosen(COLUMNS, "of-peak, node")) == ["of peak", "node"]
    assert names(chosen(COLUMNS, "of peak,of_peak")) == ["of peak"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("cycle", "--columns cycle: no column 'cycle'; did you mean cycles?"),
        ("foo", "--columns foo: no column 'foo'; there are cycles, node, of peak"),
        ("node,", "--columns node,: no column ''; need some of node, cycles, of peak"),
    ],
)
def test_a_column_that_is_not_there(asked: str, says: str):
    with pytest.raises(InputError) as caught:
        chosen(COLUMNS, asked)
    assert str(caught.value) == says


def test_hidden_columns_are_named():
    assert hidden_line(COLUMNS, COLUMNS) == ""
    assert hidden_line(COLUMNS, COLUMNS[:1]).startswith("too narrow for cycles, of peak; --columns")


def test_csv_has_the_figures_as_numbers():
    assert csv_text(COLUMNS[:2], LAYERS) == (
        'node,cycles\nconv1+batch_norm1+relu1,4096.5\n"pool, ""max""",12\n'
    )
