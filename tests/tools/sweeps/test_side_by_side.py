from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from abele.ir.support.errors import InputError
from abele.tools.executors.here import Here
from abele.tools.sweeps.folder import SUMMARY
from abele.tools.sweeps.side_by_side import laid
from abele.tools.sweeps.spec import Spec, spec_of
from abele.tools.sweeps.sweep import run_sweep
from abele.tools.sweeps.tables import Rows


def spec(product: Path, *tables: str, **target: Any) -> Spec:
    given = {
        "model": [{"file": product.name, "name": name} for name in ("one", "other")],
        "target": [{"base": "tiny:4", **target}],
        "result": {"tables": list(tables)},
    }
    return spec_of(given, "s.toml", product.parent)


@pytest.fixture
def rows(product: Path, monkeypatch: pytest.MonkeyPatch) -> Rows:
    monkeypatch.setattr("abele.tools.sweeps.sweep.draw", lambda *_: None)
    some = spec(
        product,
        "cycles by tiles",
        tiles=[2, 4],
        **{"memory.bytes_per_tile": [16640, 65536]},
    )
    return run_sweep(some, product.with_name("f"), Here()).rows


def test_each_value_of_a_column_has_figures_of_its_own_beside_the_others(rows: Rows, product: Path):
    (table,) = spec(product, "cycles by tiles").choice.tables
    found = laid(table, rows)
    cycles = {
        (row["model"], row["memory_bytes_per_tile"], row["tiles"]): row["cycles"]
        for row in rows.rows
    }
    assert found.names == ("model", "memory_bytes_per_tile")
    assert found.heads == (2, 4)
    assert [line[:2] for line in found.lines] == [
        (model, memory) for model in ("one", "other") for memory in (16640, 65536)
    ]
    for model, memory, *cells in found.lines:
        figures = [cycles[model, memory, tiles] for tiles in (2, 4)]
        assert cells == [figure or "does not fit" for figure in figures]
        assert (None in figures) == (memory == 16640)


def test_what_the_column_decides_is_no_part_of_a_line(rows: Rows, product: Path):
    decided = [{**row, "chips": row["tiles"] // 2} for row in rows.rows]
    (table,) = spec(product, "cycles by tiles").choice.tables
    assert laid(table, replace(rows, rows=tuple(decided))).names == (
        "model",
        "memory_bytes_per_tile",
    )


@pytest.mark.usefixtures("rows")
def test_the_summary_has_the_table(product: Path):
    text = (product.with_name("f") / SUMMARY).read_text()
    lines = text[text.index("## cycles by tiles") :].splitlines()
    assert lines[2:4] == ["| model | memory bytes per tile | 2 | 4 |", "|---|---|--:|--:|"]
    assert lines[4] == "| one | 16,640 | does not fit | does not fit |"


@pytest.mark.parametrize("text", ["cycle by tiles", "cycles by tile"])
def test_a_column_that_rows_do_not_have_is_refused_before_anything_is_compiled(
    text: str, product: Path
):
    with pytest.raises(InputError, match=rf"tables: {text}: no column .*; did you mean"):
        run_sweep(spec(product, text), product.with_name("f"), Here())
    assert not product.with_name("f").exists()
