"""Programs of StableHLO, lowered to nn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp

from abele.backends.reference import run_reference
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp
from abele.passes.convert_stablehlo_to_nn import ConvertStablehloToNn
from abele.tools.driver.context import new_context

Array = NDArray[Any]


def lowered(body: str, arguments: str, results: str, more: str = "") -> ModuleOp:
    """A program after the pass.

    Args:
        body: the operations of @main.
        arguments: of @main, such as "%x: tensor<2xf32>".
        results: their types.
        more: other functions.
    """
    context = new_context()
    main = f"func.func @main({arguments}) -> ({results}) {{ {body} }}"
    text = f"builtin.module {{ {main} {more} }}"
    module = parse_module(text, context)
    module.verify()
    ConvertStablehloToNn().apply(context, module)
    module.verify()
    return module


def operations(module: ModuleOp) -> list[str]:
    """The names of the operations of @main and of its regions that compute something."""
    around = ("builtin.module", "func.func", "func.return", "control.yield")
    return [op.name for op in module.walk() if op.name not in around]


def values_of(module: ModuleOp, *arrays: Array) -> list[Array]:
    """The results of @main of some arguments."""
    (main,) = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    names = [f"x{i}" for i in range(len(main.body.block.args))]
    outputs = [f"y{i}" for i in range(len(main.function_type.outputs))]
    for what, listed in (("arg_names", names), ("result_names", outputs)):
        main.attributes[what] = ArrayAttr(map(StringAttr, listed))
    inputs = dict(zip(names, map(np.asarray, arrays), strict=True))
    return list(run_reference(module, inputs).outputs.values())


def results_of(body: str, arguments: str, results: str, *arrays: Array) -> list[Array]:
    """The results of a program of some arguments."""
    return values_of(lowered(body, arguments, results), *arrays)


def number(name: str, value: str, type_: str) -> str:
    """A constant without axes."""
    return (
        f'%{name} = "stablehlo.constant"() <{{value = dense<{value}> : tensor<{type_}>}}> '
        f": () -> tensor<{type_}>\n"
    )


def applied(name: str, operands: Sequence[str], type_: str, made: str) -> str:
    """An operation on operands of one type, without properties."""
    listed = ", ".join(f"%{each}" for each in operands)
    types = ", ".join([type_] * len(operands))
    return f'%{made} = "{name}"({listed}) : ({types}) -> {type_}\n'


def compared(a: str, b: str, direction: str, element: str, made: str, kind: str = "") -> str:
    """A comparison of numbers without axes."""
    more = f", compare_type = #stablehlo<comparison_type {kind}>" if kind else ""
    return (
        f'%{made} = "stablehlo.compare"(%{a}, %{b}) <{{comparison_direction = '
        f"#stablehlo<comparison_direction {direction}>{more}}}> : "
        f"(tensor<{element}>, tensor<{element}>) -> tensor<i1>\n"
    )


def returned(names: Sequence[str], types: Sequence[str], end: str = "stablehlo.return") -> str:
    """The end of a region."""
    listed = ", ".join(f"%{each}" for each in names)
    return f'"{end}"({listed}) : ({", ".join(types)}) -> ()\n'
