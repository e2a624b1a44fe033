"""The vertices of every tile are those that the graph of the program has there."""

from collections import Counter

import numpy as np
import pytest
from some_models import convolutions

from abele.backends.graph.columns import SetColumns
from abele.backends.prices.price import variables_of
from abele.backends.prices.step_charges import step_charges
from abele.dialects.steps import Vertices
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import MACHINE, Executable
from abele.tools.views.report import vertices as vertices_file
from abele.tools.views.report.collect import Report, collect

FIGURES = ("worker", "cycles", "bytes")


@pytest.fixture(scope="module", params=["tiny:8", "tiny:5"])
def exe(request: pytest.FixtureRequest) -> Executable:
    return compile_model(convolutions(), target=request.param)


@pytest.fixture(scope="module")
def report(exe: Executable) -> Report:
    return collect(exe)


def rows_of(table, part):
    here = np.flatnonzero(table["part"] == part)
    return [{name: int(values[k]) for name, values in table.items()} for k in here]


def listed(report: Report, part: int) -> Counter:
    """How often each tile runs each vertex of a part, as the tables have it."""
    found = Counter()
    vertices, tiles = (report.tables[name] for name in ("vertices", "vertex_tiles"))
    for run in rows_of(tiles, part):
        for row in rows_of(vertices, part):
            if row["kind"] == run["kind"]:
                for tile in range(run["first_tile"], run["first_tile"] + run["tiles"]):
                    found[tile, *(row[name] for name in FIGURES)] += row["vertices"]
    return found


def test_each_tile_has_its_vertices(exe: Executable, report: Report):
    module = exe.module_at(MACHINE)
    variables = variables_of(module)
    steps = step_charges(module, exe.target).steps
    parts = [each.op for step in steps for each in step.operations]
    seen = 0
    for part, op in enumerate(parts):
        count = int(report.tables["parts"]["vertices"][part])
        if not isinstance(op, Vertices):
            assert not listed(report, part)
            continue
        made = {name: np.zeros(count, np.int32) for name in ("tile", *FIGURES)}
        SetColumns(op, variables, exe.target).write(made, 0)
        assert listed(report, part) == Counter(
            zip(*(v.tolist() for v in made.values()), strict=True)
        )
        seen += 1
    assert seen > 3


def test_a_set_that_is_too_large_is_left_out_and_the_report_says_so(
    exe: Executable, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(vertices_file, "MOST_VERTICES", 0)
    found = collect(exe)
    assert len(found.tables["vertices"]["part"]) == 0
    assert "compute sets of more than" in found.absent["vertices"]
