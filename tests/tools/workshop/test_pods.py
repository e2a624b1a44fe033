"""Tests for tools/workshop/pods.py."""

import pytest
from typer.testing import CliRunner

from abele.backends.target import resolve_target
from abele.ir.errors import InputError
from abele.tools.views.script import script
from abele.tools.workshop import pods as module
from abele.tools.workshop.pods import NETWORKS, measured, parsed, pods, sum_loads, weights_of


def test_networks_are_named_with_images_and_precision():
    assert parsed(NETWORKS[1]) == ("resnet50", 256, "float16")
    with pytest.raises(InputError, match="need NAME:IMAGES:PRECISION"):
        parsed("alexnet:0:float32")
    with pytest.raises(InputError, match="need one of float32, float16"):
        parsed("alexnet:4:int8")


@pytest.mark.large
def test_a_network_is_compiled_priced_and_run():
    found = measured("squeezenet", 1, "float32", "mk1x2", 1)
    assert found["cycles"] > 0
    assert min(found["compile"], found["price"], found["gigabytes"]) > 0


def test_a_ring_of_four_chips_sends_three_quarters_of_a_sum():
    loads = sum_loads(1 << 20, resolve_target("mk1x4"))
    assert loads["ring"][1] == 3 * (1 << 20)
    assert loads["both"][0] < loads["ring"][0]


def test_a_line_has_the_figures_of_each_row_before_the_table(monkeypatch: pytest.MonkeyPatch):
    figures = {"cycles": 123_456, "compile": 7.25, "price": 0.5, "gigabytes": 1.5}
    monkeypatch.setattr(module, "in_own_process", lambda *_: figures)
    options = ["--networks", "squeezenet:1:float32", "--targets", "mk1x2,mk1x4"]
    found = CliRunner().invoke(
        script(pods), [*options, "--sums", "squeezenet"], env={"COLUMNS": "120"}
    )
    assert found.exit_code == 0, found.output
    first, second, title, *table = found.output.splitlines()
    assert first.startswith("squeezenet:1:float32 on mk1x2: 123,456 cycles; compiled in 7.2 s")
    assert second.startswith("squeezenet:1:float32 on mk1x4: ")
    assert "networks on many chips" in title
    assert sum("123,456" in row for row in table) == 2


def test_tables_are_printed():
    found = CliRunner().invoke(
        script(pods), ["--networks", "", "--sums", "squeezenet"], env={"COLUMNS": "120"}
    )
    assert found.exit_code == 0, found.output
    assert f"{weights_of('squeezenet') * 4 / 1e6:,.1f} MB" in found.output
    assert "middle" in found.output
