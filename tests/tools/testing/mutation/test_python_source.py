"""Changed copies of modules run next to the original modules."""

import ast
import sys
from pathlib import Path

from abele.passes.convert_nn_to_partition import ConvertNnToPartition
from abele.passes.plans import derive
from abele.tools.testing.mutation.python_source import PythonFile, copy_of, files_of

PASS = "abele.passes.convert_nn_to_partition"
HELPER = "abele.passes.plans.derive"


def test_the_files_of_a_pass_are_its_module_and_its_imports_from_passes():
    files = files_of(PASS)
    assert {PASS, HELPER} <= set(files)
    assert all(name.startswith("abele.passes.") for name in files)


def test_a_copy_uses_the_changed_module_and_nothing_else_does():
    files = files_of(PASS)
    tree = ast.parse(files[HELPER].path.read_text() + "\ncombining = 'changed'\n")
    copy = copy_of(PASS, files, HELPER, tree)
    converts = vars(copy)["convert_structured"]
    assert converts.__globals__["combining"] == "changed"
    assert callable(derive.combining)
    assert sys.modules[PASS].ConvertNnToPartition is ConvertNnToPartition
    assert copy.ConvertNnToPartition is not ConvertNnToPartition


def test_a_module_that_is_imported_from_its_package_is_copied_too():
    module, helper = "abele.passes.rules.own", "abele.passes.rules.nn_library"
    tree = files_of(helper)[helper].tree
    copy = copy_of(module, files_of(module), helper, tree)
    assert copy.nn_library is not sys.modules[helper]
    assert copy.nn_library.fixed.__doc__ == sys.modules[helper].fixed.__doc__


def test_messages_annotations_and_types_are_not_mutated():
    source = "def f(n: int = 1) -> tuple[int, ...]:\n    raise ValueError(n + 1, f'{n + 2}')\n"
    assert PythonFile("f", Path("f.py"), ast.parse(source)).slots == ()
