"""Profiles, reports and plans have joules and areas where the target has facts, and only there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from swept_product import PACKED_PRODUCT
from typer.testing import CliRunner

from abele.tools import compile_model
from abele.tools.cli import app
from abele.tools.driver.energy import COLUMNS, UNKNOWN, energy_columns, energy_text
from abele.tools.driver.request import Request
from abele.tools.views.planning.plan import plan_model

TEXT = """
builtin.module {
  func.func @main(%x: tensor<16x8xf16>, %w: tensor<8x4xf16>) -> tensor<16x4xf16> {
    %0 = nn.matmul %x, %w : (tensor<16x8xf16>, tensor<8x4xf16>) -> tensor<16x4xf16> loc("fc")
    func.return %0 : tensor<16x4xf16>
  }
}
"""
JOULES = 16 * 8 * 4 * 3e-12
MINE = """
base = "tiny"
name = "mine"

[energy]
float16_float32_pj_per_mac = 3.0  # assumed: a round figure
exchange_pj_per_byte = 2.0

[area]
tile_mm2 = 0.5
memory_mm2_per_mib = 2.0
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    model, target = tmp_path / "net.mlir", tmp_path / "mine.toml"
    model.write_text(TEXT)
    target.write_text(MINE)
    return str(model), str(target)


def test_a_target_without_facts_adds_no_figure(files):
    profile = compile_model(files[0], "tiny").profile
    assert not {*COLUMNS, UNKNOWN} & profile.keys()
    assert energy_columns(profile) == {}
    assert energy_text(profile) == ""


def test_facts_of_a_file_give_joules_by_kind_and_their_sum(files):
    profile = compile_model(*files).profile
    moved = profile["exchange_bytes"] * 2e-12
    assert energy_columns(profile) == {
        "joules": pytest.approx(JOULES + moved),
        "compute_joules": pytest.approx(JOULES),
        "exchange_joules": pytest.approx(moved),
        "mm2": pytest.approx(4 * (0.5 + 2 / 4)),
    }
    assert profile[UNKNOWN] == ["memory", "static power"]


def test_the_report_shows_them_in_a_line_and_conditions_may_name_them(files, tmp_path):
    model, target = files
    folder = tmp_path / "report"
    arguments = ["report", model, "--target", target, "-o", str(folder)]
    found = CliRunner().invoke(app, [*arguments, "--fail-if", "joules > 1"])
    assert found.exit_code == 0, found.output
    (line,) = [line for line in found.output.splitlines() if line.startswith("energy: ")]
    program = json.loads((folder / "report.json").read_text())["program"]
    assert line == energy_text(program)
    assert f"compute {JOULES:.3g}" in line
    assert "area: 4 mm2" in line


def test_a_plan_has_the_joules_of_products_and_says_that_it_counts_no_bytes(files, tmp_path):
    model, target = files
    found = CliRunner().invoke(
        app, ["plan", model, "--target", target, "--json", str(tmp_path / "plan.json")]
    )
    assert found.exit_code == 0, found.output
    assert f"energy: {JOULES:.3g} J a run (compute {JOULES:.3g})" in found.output
    assert "exchange (not counted here)" in found.output
    assert json.loads((tmp_path / "plan.json").read_text())["joules"] == pytest.approx(JOULES)


def test_a_plan_counts_products_of_packed_integers_as_a_profile_does(files):
    model, target = files
    Path(model).write_text(PACKED_PRODUCT)
    planned = plan_model(Request(model, target, passes="nn")).plan.energy
    profile = compile_model(model, target).profile
    assert planned["compute_joules"] == profile["compute_joules"] == pytest.approx(8 * 6 * 3e-12)


def test_a_wrong_fact_is_refused_with_its_line(files, tmp_path):
    (tmp_path / "mine.toml").write_text(MINE.replace("= 2.0\n\n[area]", "= -2.0\n\n[area]"))
    found = CliRunner().invoke(app, ["report", files[0], "--target", files[1], "-o", "x"])
    assert found.exit_code == 2
    assert "mine.toml:7: energy.exchange_pj_per_byte: -2.0; need a number in 0..1e+09" in (
        found.output
    )
