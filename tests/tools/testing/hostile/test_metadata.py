"""Hostile properties of nodes end in short printable names and lines, or in a message."""

import numpy as np
import onnx
import pytest

from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx
from abele.tools.importers.modules_and_lines import MOST_FILE, MOST_PATH, MOST_TEXT
from abele.tools.importers.onnx.origins import node_origins
from abele.tools.testing.hostile.metadata import DAMAGE, hostile_metadata

SAMPLE = 60
MOST_NAME = 2 * MOST_PATH + 20
"""A module, an operator, and a number."""


def model(number: int) -> onnx.ModelProto:
    case = hostile_metadata(np.random.default_rng([31, number]))
    return onnx.ModelProto.FromString(case.files["model.onnx"])


def test_names_and_lines_are_short_and_printable():
    lines = renamed = 0
    for number in range(SAMPLE):
        for each in node_origins(model(number)):
            if each.line is not None:
                assert len(each.line.file) <= MOST_FILE
                assert len(each.line.text) <= MOST_TEXT
                assert (each.line.file + each.line.text).isprintable()
                lines += 1
            if each.name != each.in_file:
                assert len(each.name) <= MOST_NAME
                assert each.name.isprintable()
                renamed += 1
    assert lines
    assert renamed


def test_models_are_imported_or_refused():
    imported = 0
    for number in range(SAMPLE // 3):
        try:
            import_onnx(model(number), AbeleContext())
            imported += 1
        except InputError as error:
            assert len(str(error)) < 1 << 18
    assert imported


@pytest.mark.parametrize("change", DAMAGE)
def test_every_change_changes_a_node(change):
    node = onnx.helper.make_node("Relu", ["x"], ["y"], "n")
    node.metadata_props.add(key="namespace", value=": net.Net/relu: aten.relu")
    before = node.SerializeToString()
    assert any(
        change(node, np.random.default_rng(number)) and node.SerializeToString() != before
        for number in range(10)
    )
