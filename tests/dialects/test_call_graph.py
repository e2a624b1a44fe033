"""How deep calls are and how large functions are, also where there are exponentially many calls."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from xdsl.dialects.func import FuncOp

from abele.dialects.call_graph import calls_of, check_inlined, check_nested_calls
from abele.ir.errors import InputError
from abele.ir.support.limits import INLINED_NODES, NESTED_CALLS
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp
from abele.tools.driver.context import new_context

ROW = "tensor<4xf32>"


def module_of(calls: Mapping[str, Sequence[str]]) -> ModuleOp:
    """Functions that call others one after the other."""
    lines: list[str] = []
    for name, called in calls.items():
        lines.append(f"func.func @{name}(%v0: {ROW}) -> {ROW} {{")
        lines += [
            f"%v{i + 1} = func.call @{each}(%v{i}) : ({ROW}) -> {ROW}"
            for i, each in enumerate(called)
        ]
        lines.append(f"func.return %v{len(called)} : {ROW}\n}}")
    return parse_module("\n".join(lines), new_context(), "net.mlir")


def functions_of(calls: Mapping[str, Sequence[str]]) -> dict[str, FuncOp]:
    found = (op for op in module_of(calls).ops if isinstance(op, FuncOp))
    return {each.sym_name.data: each for each in found}


def tree(depth: int, fan: int) -> dict[str, list[str]]:
    """@main calls @f1 a few times, that calls @f2, and so on."""
    names = ["main", *(f"f{i}" for i in range(1, depth + 1))]
    return {a: [b] * fan for a, b in pairwise(names)} | {names[-1]: []}


def test_each_function_has_its_operations_and_callees():
    found = calls_of(functions_of({"main": ["f", "f"], "f": []}))
    assert found["main"].operations == 3
    assert found["main"].callees == ["f", "f"]
    assert found["f"].callees == []


@pytest.mark.parametrize("fan", [1, 3])
def test_calls_nest_up_to_the_limit(fan: int):
    check_nested_calls(module_of(tree(NESTED_CALLS.most, fan)), "main", "net.mlir")
    deeper = module_of(tree(NESTED_CALLS.most + 1, fan))
    with pytest.raises(InputError, match=r"net.mlir: calls 65 deep; at most 64 nested calls"):
        check_nested_calls(deeper, "main", "net.mlir")
    # Functions that no run reaches count nothing.
    check_nested_calls(deeper, "f2", "net.mlir")


def test_a_cycle_has_no_depth_of_its_own():
    calls = tree(NESTED_CALLS.most, 1)
    calls[f"f{NESTED_CALLS.most}"] = ["f1"]
    check_nested_calls(module_of(calls | {f"other{i}": [] for i in range(9)}), "main", "net.mlir")


def test_exponentially_many_calls_are_counted_at_once(monkeypatch: pytest.MonkeyPatch):
    check_inlined(functions_of(tree(9, 2)), "main")
    with pytest.raises(InputError, match="@main with all that it calls; at most 262,144 inlined"):
        check_inlined(functions_of(tree(60, 10)), "main")
    # Ten functions of three operations, the last one of one.
    monkeypatch.setenv(INLINED_NODES.variable, str(3 * (2**9 - 1) + 2**9))
    check_inlined(functions_of(tree(9, 2)), "main")
    monkeypatch.setenv(INLINED_NODES.variable, str(3 * (2**9 - 1) + 2**9 - 1))
    with pytest.raises(InputError):
        check_inlined(functions_of(tree(9, 2)), "main")
