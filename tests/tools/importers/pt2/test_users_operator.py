"""Custom operators of PyTorch that are operations of users."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from called_dialect import called_dialect

from abele.ir.support.errors import InputError

from .fixture_models import imported, results
from .written import node_tree, written

A, B = (np.arange(24, dtype=np.float32).reshape(4, 6) + i for i in range(2))
TYPE = ((4, 6), "float32")


@pytest.fixture(autouse=True)
def mine(tmp_path: Path) -> Generator[Path]:
    with called_dialect(tmp_path) as path:
        yield path


def program(target: str, **arguments: Any) -> bytes:
    node = node_tree("", "found", **arguments)
    node["target"] = f"torch.ops.{target}"
    return written({"a": TYPE, "b": TYPE}, [node], ["found"], {"found": TYPE})


@pytest.mark.parametrize("target", ["mine.mix.default", "mine.mix.out", "mine.mix"])
def test_a_custom_operator_is_the_operation_of_its_namespace_and_name(target: str):
    given = program(target, x="a", rate=0.5, negated=True, y="b", axes=[0, 1])
    (found,) = results(imported(given), [A, B])
    np.testing.assert_array_equal(found, -(0.5 * A + B))


MISFITS = {
    "one tensor": ({"x": "a", "rate": 1.0}, r"1 operands; mine.mix takes 2 \(x, y\)"),
    "an unknown argument": ({"x": "a", "y": "b", "rate": 1.0, "z": 1}, "no attribute 'z'"),
    "an argument of another kind": ({"x": "a", "y": "b", "rate": True}, "need a number"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_call_that_does_not_fit_names_the_node_and_its_line(case: str):
    arguments, message = MISFITS[case]
    with pytest.raises(
        InputError, match=rf"node '\w*' \(mine.mix.default at .*:\d+\): .*{message}"
    ):
        imported(program("mine.mix.default", **arguments))


def test_an_operator_that_nobody_knows_is_refused():
    with pytest.raises(
        InputError, match="mine.mox.default: .* not supported.* did you mean mine.mix of a"
    ):
        imported(program("mine.mox.default", x="a", y="b", rate=1.0))
