import re

import pytest
from onnx import defs

from abele.tools.importers.onnx.node import Node
from abele.tools.importers.onnx.reader import DOMAINS, OPERATORS
from abele.tools.manual.guards import guards_of
from abele.tools.manual.onnx_table import onnx_table_page


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    """The cells of each row of the first domain, by operator."""
    text = onnx_table_page().partition("## ai.onnx\n")[2].partition("\n## ")[0]
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line[:3] == "| `"]
    return {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in lines}


def test_every_operator_of_onnx_and_every_importer_is_listed(rows: dict[str, list[str]]):
    current = {each.name for each in defs.get_all_schemas() if not each.domain}
    assert set(rows) >= OPERATORS.keys() | current - {"Scatter", "Upsample"}
    text = onnx_table_page()
    for importers in DOMAINS.values():
        assert not [name for name in importers if f"| `{name}` |" not in text]


def test_an_operator_has_its_versions_types_and_refusals(rows: dict[str, list[str]]):
    opsets, imported, types, refused = rows["Expand"]
    assert (opsets, imported) == ("8, 13", "yes")
    assert types == "floats of 16 to 64 bits, integers of 8 to 64 bits, bool, strings"
    assert refused == "complex128, complex64 elements; known: shape"


def test_an_operator_without_importer_says_why(rows: dict[str, list[str]]):
    assert rows["ImageDecoder"][1:] == ["no", "", "nobody imports it"]
    assert rows["CausalConvWithState"][1] == "function"


# Guards


def _below(node: Node) -> None:
    raise node.unsupported("what a function below refuses", "none is")


def _importer(node: Node):
    if node.flag("odd"):
        raise node.unsupported(f"mode {node.text('mode')}", "none is")
    node.array(1, "axes")
    node.parameter("shape", 1, 5)
    _below(node)
    return node.value(0)


def test_guards_are_the_messages_of_an_importer_and_of_what_it_calls(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("abele.tools.manual.guards.IMPORTERS", __name__.rpartition(".")[0])
    found = guards_of(_importer)
    assert found.unsupported == (
        "mode ... is not supported, none is",
        "what a function below refuses is not supported, none is",
    )
    assert found.known == ("axes", "shape")


def test_guards_of_importers_that_functions_make_are_found():
    assert "batch normalisation that learns" in " ".join(
        guards_of(OPERATORS["BatchNormalization"]).unsupported
    )
    assert guards_of(OPERATORS["CumSum"]).known == ("axis",)
    assert guards_of(OPERATORS["Relu"]).unsupported == ()
