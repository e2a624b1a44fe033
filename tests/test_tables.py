"""Every operation has its entries, and every table what it names."""

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest
from xdsl.traits import Commutative

import abele.dialects
from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.backends.evaluate import partition as evaluate_partition
from abele.backends.levels import RUNNERS
from abele.dialects import nn, partition
from abele.dialects.levels import DIALECTS, LEVELS, NN, OWN_LEVELS, SOURCES, STABLEHLO
from abele.dialects.mlir import MLIR
from abele.dialects.scalar_functions import FUNCTIONS, Mathematics
from abele.dialects.structured import (
    Composite,
    Movement,
    Reinterpretation,
    Structured,
)
from abele.ir.level import Level
from abele.ir.pass_levels import declared_levels
from abele.ir.pass_manager import load_pass, parse_pipeline
from abele.passes import pipelines
from abele.passes.pipelines import DOWN, FROM_SOURCES, PASSES, STAGE, pipeline
from abele.tools.debug.run_level import OBSERVED
from abele.tools.testing.generators.levels import known_levels
from abele.tools.testing.oracle.oracles import BOUNDED

RECORDS = (
    "dialects/scalar_functions.py",
    "dialects/scalar_meanings.py",
    "backends/codelets/scalar.py",
    "backends/codelets/functions.py",
)
"""The only files with tables that are keyed by names of scalar functions."""

CASES = ("backends/host/battery/", "tools/proving/scalars/")
"""The files that list functions as cases to try, or as what a solver computes by itself."""

OF_FRAMEWORKS = (
    *("tools/importers/pt2/", "tools/importers/caffe/", "tools/importers/mxnet/"),
    *("passes/linalg_to_nn/", "passes/exporting/", "passes/nn_to_linalg/"),
    *("passes/nn_to_stablehlo/",),
)
"""The files that translate operators of others, or into these; some are called as ours are."""


def test_scalar_functions_are_known_to_dialects_and_codelets_alike():
    assert list(SCALAR_FUNCTIONS) == list(FUNCTIONS)
    for name, function in SCALAR_FUNCTIONS.items():
        for each in fields(Mathematics):
            assert getattr(function, each.name) == getattr(FUNCTIONS[name], each.name)


def test_every_scalar_function_is_computed_and_priced():
    for function in SCALAR_FUNCTIONS.values():
        assert callable(function.kernel)
        assert function.loops is not None, function.name


def test_a_host_instruction_takes_the_operands_and_numbers_of_its_function():
    for name, function in SCALAR_FUNCTIONS.items():
        by = [step.by for step in function.compiled or ()]
        assert by.count("parameter") in (0, function.parameters), name
        if function.compiled is not None:
            assert function.arity in (1, 2), name
            assert by == ["operand"] or function.arity == 1, name


def tables_of_functions(text: str) -> list[int]:
    """The lines of dicts, sets, lists and tuples that have three scalar functions or more."""
    found: list[int] = []
    if len(FUNCTIONS.keys() & re.findall(r"""(?<=["'])\w+(?=["'])""", text)) < 3:
        return found
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Dict(keys=words) | ast.Set(elts=words):
                pass
            case ast.List(elts=words) | ast.Tuple(elts=words):
                pass
            case _:
                continue
        names = {each.value for each in words if isinstance(each, ast.Constant)}
        if len(names & FUNCTIONS.keys()) >= 3:
            found.append(node.lineno)
    return found


def test_no_other_table_is_keyed_by_scalar_functions():
    assert tables_of_functions('A = {"relu": 1, "exp": 2, "log": 3}') == [1]
    assert tables_of_functions('A = frozenset(("relu", "exp", "log"))') == [1]
    root = Path(abele.dialects.__path__[0]).parent
    rooms = ("ir", "dialects", "backends", "passes", "tools")
    for path in (path for room in rooms for path in (root / room).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        is_record = name in RECORDS or name.startswith((*CASES, *OF_FRAMEWORKS))
        lines = [] if is_record else tables_of_functions(path.read_text())
        assert not lines, f"{name}:{lines}: put these facts into {' or '.join(RECORDS)}"


def test_an_operation_is_commutative_if_its_function_is():
    for op in nn.ELEMENTWISE:
        known = FUNCTIONS.get(op.name.partition(".")[2])
        assert op.has_trait(Commutative) == (known is not None and known.commutative), op.name


def test_every_operation_of_nn_is_of_exactly_one_kind():
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


@pytest.mark.parametrize("table", [RUNNERS, DOWN])
def test_every_level_has_an_entry_in_each_table_of_levels(table: dict[Level, object]):
    assert tuple(table) == OWN_LEVELS


@pytest.mark.parametrize("table", [OBSERVED, BOUNDED])
def test_tables_of_what_runs_have_the_levels_above_nn_too(table: dict[Level, object]):
    assert tuple(table) == (*SOURCES, *OWN_LEVELS)


def test_a_level_has_the_name_of_its_dialect():
    for level in LEVELS:
        assert level.name in DIALECTS
        assert level.name in level.own


def test_no_two_kinds_of_programs_have_one_name():
    assert len(set(known_levels())) == len(known_levels())


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_declares_the_levels_that_the_default_pipeline_leads_through(name: str):
    declared = declared_levels(load_pass(name, PASSES))
    assert declared is not None
    if declared.takes not in LEVELS:
        assert name in FROM_SOURCES[declared.takes]
        assert declared.leaves == NN
        return
    end = STAGE.get(name, declared.takes)
    if declared.takes == NN and declared.leaves in (MLIR, STABLEHLO):
        # A way out, to other compilers.
        assert name == f"convert-{declared.takes}-to-{declared.leaves}"
        return
    if name.startswith("convert-"):
        assert name == f"convert-{declared.takes}-to-{declared.leaves}"
        assert declared.leaves == end
    else:
        assert declared.leaves is None
        assert LEVELS.index(end) - LEVELS.index(declared.takes) in (0, 1)


def test_the_folder_of_passes_holds_passes_alone():
    folder = Path(inspect.getfile(pipelines)).parent
    lists = {"__init__", "names", "pipelines", "universe"}
    assert {file.stem for file in folder.glob("*.py")} - lists == {
        name.replace("-", "_") for name in PASSES
    }


def test_the_way_down_names_passes_and_levels_that_exist():
    assert tuple(DOWN) == OWN_LEVELS
    for start in range(len(LEVELS)):
        for end in range(start, len(LEVELS)):
            parse_pipeline(pipeline(LEVELS[start], LEVELS[end], "tiny"), PASSES)
