"""Every operation has its entries, and every table what it names."""

import inspect
from pathlib import Path

import pytest

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.backends.evaluate import partition as evaluate_partition
from abele.dialects import nn, partition
from abele.dialects.levels import LEVELS as LEGAL
from abele.dialects.structured import (
    FUNCTIONS,
    Composite,
    Movement,
    Reinterpretation,
    Structured,
)
from abele.ir.pass_manager import load_pass, parse_pipeline
from abele.passes import pipelines
from abele.passes.pipelines import LEVELS, PASSES, pipeline


def test_scalar_functions_are_known_to_dialects_and_codelets_alike():
    assert {n: (f.arity, f.parameters) for n, f in SCALAR_FUNCTIONS.items()} == FUNCTIONS


def test_every_operation_of_nn_shows_what_it_is():
    kinds = (Structured, Movement, Reinterpretation, Composite)
    for op in nn.NN.operations:
        shown = sum(issubclass(op, kind) for kind in kinds)
        assert shown == (op not in nn.STATE), op.name


def test_every_operation_of_partition_can_be_evaluated():
    declared = {partition.StateOp}
    assert set(partition.Partition.operations) == declared | set(evaluate_partition._EXECUTE)


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_is_found_in_the_file_of_its_name(name: str):
    found = load_pass(name, PASSES)
    assert found.name == name
    assert inspect.getmodule(found).__name__.endswith("." + name.replace("-", "_"))


def test_the_folder_of_passes_holds_passes_alone():
    folder = Path(inspect.getfile(pipelines)).parent
    lists = {"__init__", "pipelines", "universe"}
    assert {file.stem for file in folder.glob("*.py")} - lists == {
        name.replace("-", "_") for name in PASSES
    }


def test_the_way_down_names_passes_and_levels_that_exist():
    assert set(LEVELS) <= set(LEGAL)
    for start in range(len(LEVELS)):
        for end in range(start, len(LEVELS)):
            parse_pipeline(pipeline(LEVELS[start], LEVELS[end], "tiny"), PASSES)
