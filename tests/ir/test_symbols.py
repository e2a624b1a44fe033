"""Renaming of symbols and their references, and numbering that is equal for equal programs."""

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr

from abele.ir.equal import same_program
from abele.ir.symbols import (
    number_symbols,
    referenced_symbols,
    rename_references,
    symbol_of,
    symbols_in,
)
from abele.ir.upstream import ModuleOp
from abele.tools.driver.context import new_context

from ..some_tensors import module_of


def program(x: str, y: str, step: str) -> ModuleOp:
    layout = "tensor<6xf32> layout <[6] (d0) of [6]>"
    return module_of(
        f"""
        exchange.variable @{x} at 0 : {layout}
        exchange.variable @{y} at 24 : {layout}
        func.func @main() {{
          exchange.superstep @{step} {{
            exchange.sync "internal"
            exchange.move [@{x}] -> @{y}
          }}
          func.return
        }}""",
        new_context(),
    )


def test_an_attribute_references_one_symbol_or_several():
    one, two = SymbolRefAttr("a"), SymbolRefAttr("b")
    assert list(symbols_in(ArrayAttr([one, two]))) == ["a", "b"]
    assert list(symbols_in(one)) == ["a"]
    assert list(symbols_in(None)) == []


def test_renaming_a_symbol_changes_the_operations_that_name_it():
    module = program("x", "y", "step")
    rename_references(module, {"x": "z"})
    named = [name for op in module.walk() for name in referenced_symbols(op)]
    assert named == ["z", "y"]
    assert [symbol_of(op) for op in module.body.block.ops] == ["x", "y", "main"]


def test_programs_that_differ_in_names_are_numbered_alike():
    # A superstep may be called as a variable is.
    first, second = program("x", "y", "y"), program("a", "x", "step")
    assert not same_program(first, second)
    number_symbols(first)
    number_symbols(second)
    assert same_program(first, second)
    assert [symbol_of(op) for op in first.body.block.ops] == ["s0", "s1", "main"]


def test_programs_that_use_different_variables_stay_different():
    first, second = program("x", "y", "step"), program("x", "y", "step")
    rename_references(second, {"x": "y", "y": "x"})
    number_symbols(first)
    number_symbols(second)
    assert not same_program(first, second)
