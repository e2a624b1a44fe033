from dataclasses import replace
from math import inf

import pytest
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr

from abele.ir.upstream import ModuleOp
from abele.passes.plans.sparse_prices import (
    ATTRIBUTE,
    SparsePrice,
    read_sparse_prices,
    told_sparse_prices,
    write_sparse_prices,
)

LEFT_OUT = SparsePrice("fc1", "64x32", "16x16", 0.125, 300.0, 200.0, "")
KEPT = SparsePrice("fc2", "64x30", "", 0.9, inf, inf, "90% of its elements are not 0")


def test_prices_are_read_as_they_were_written():
    module = ModuleOp([])
    write_sparse_prices(module, [LEFT_OUT, KEPT])
    assert read_sparse_prices(module) == (LEFT_OUT, KEPT)
    assert read_sparse_prices(ModuleOp([])) == ()


@pytest.mark.parametrize(
    "written", [StringAttr("x"), ArrayAttr([StringAttr("x")]), ArrayAttr([DictionaryAttr({})])]
)
def test_entries_of_another_form_are_skipped(written):
    module = ModuleOp([])
    module.attributes[ATTRIBUTE] = written
    assert read_sparse_prices(module) == ()


def test_json_has_no_infinite_cycles():
    assert KEPT.to_dict()["dense"] is None
    assert LEFT_OUT.to_dict()["dense"] == 300.0
    assert (KEPT.verdict, LEFT_OUT.verdict) == (f"kept: {KEPT.kept}", "left out")


def test_a_line_names_the_first_products_without_zeros():
    assert told_sparse_prices([]) == []
    (line,) = told_sparse_prices([KEPT])
    assert line.startswith("0 of 1 products with a known matrix leave zeros out; abele plan")
    many = [replace(LEFT_OUT, node=f"fc{i}") for i in range(6)]
    (line,) = told_sparse_prices([*many, KEPT])
    assert line.startswith("6 of 7 products")
    assert "(fc0, fc1, fc2, fc3, fc4, ...)" in line
    (line,) = told_sparse_prices([replace(LEFT_OUT, node="fc\nerror: 1")])
    assert "(fc error: 1)" in line
