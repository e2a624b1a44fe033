"""Two programs side by side."""

from dataclasses import replace

import pytest
from some_models import convolutions, model, node, random

from abele.ir.errors import InputError
from abele.tools.driver.compile import compile_model
from abele.tools.views.report.collect import Report, collect
from abele.tools.views.report.compare import compared, markdown_lines


def report(target: str) -> Report:
    return collect(compile_model(convolutions(), target=target))


@pytest.fixture(scope="module")
def eight() -> Report:
    return report("tiny:8")


def test_a_program_does_not_differ_from_itself(eight: Report):
    found = compared(eight, eight, "b")
    assert not any(row["differs"] for row in found.rows)
    assert all(now == was for _, now, was in found.figures)
    assert markdown_lines(found, {})[-1] == "No operation differs."


def test_operations_are_aligned_by_node(eight: Report):
    found = compared(report("tiny:4"), eight, "b")
    assert [row["operation"] >= 0 and not row["is_new"] for row in found.rows] == [True] * len(
        found.rows
    )
    assert len(found.rows) == len(eight.tables["operations"]["name"])
    differences = [abs(row["cycles"] - row["was_cycles"]) for row in found.rows]
    assert differences == sorted(differences, reverse=True)
    assert differences[0] > 0
    assert found.note == "The targets differ: tiny, and tiny:8 for the baseline."


def test_a_summary_lists_figures_operations_and_verdicts(eight: Report):
    found = compared(report("tiny:4"), eight, "b")
    lines = markdown_lines(found, {"cycles > 1": True, "cycles > 1e12": False})
    assert "- **fails**: `cycles > 1`" in lines
    assert "- passes: `cycles > 1e12`" in lines
    assert any(line.startswith("| cycles | ") for line in lines)
    assert any("the\\_c0" in line for line in lines)


def test_a_baseline_without_its_facts_is_refused(eight: Report):
    damaged = replace(eight, program={**eight.program, "cycles": "many"})
    with pytest.raises(InputError, match="b: the report does not say 'cycles'; write the report"):
        compared(eight, damaged, "b")


def test_another_model_is_no_baseline(eight: Report):
    other = model([node("Relu", "a", "b")], {"a": [2, 3]}, ["b"], {})
    found = collect(compile_model(other, target="tiny:8"))
    with pytest.raises(InputError, match="the baseline is another model"):
        compared(found, eight, "b")


def test_a_layer_that_only_one_program_has_is_kept():
    def net(*names: str):
        values = ["x", *[f"h{k}" for k in range(len(names) - 1)], "y"]
        nodes = [node("MatMul", f"{a} {w}", b) for a, b, w in zip(values, values[1:], names)]
        return collect(
            compile_model(
                model(nodes, {"x": [4, 8]}, ["y"], {w: random((8, 8)) for w in names}), "tiny:4"
            )
        )

    longer, shorter = net("v", "w"), net("v")
    added = compared(longer, shorter, "b").rows
    assert [row["is_new"] for row in added if row["name"] == "the_h0"] == [True]
    gone = compared(shorter, longer, "b").rows
    assert [row["operation"] for row in gone if row["name"] == "the_h0"] == [-1]
