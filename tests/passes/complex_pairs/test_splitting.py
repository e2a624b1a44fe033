"""Complex numbers become pairs everywhere: in regions, functions, arguments and results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from lowered_stablehlo import Array, compared, lowered, values_of
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp

from abele.backends.stablehlo import run_stablehlo
from abele.dialects.host import host_names
from abele.dialects.source_types import is_complex
from abele.ir.support.errors import InputError
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import ModuleOp
from abele.passes.complex_pairs.signature import real_signature
from abele.passes.complex_pairs.splitting import holds_complex
from abele.passes.complex_pairs.table import split_complex
from abele.passes.convert_stablehlo_to_nn import refusals
from abele.tools.driver.context import new_context

C = "complex<f32>"
DRAW = np.random.default_rng(3)


def drawn(*shape: int) -> Array:
    return (DRAW.integers(-3, 4, shape) + 1j * DRAW.integers(-3, 4, shape)).astype(np.complex64)


def program(body: str, arguments: str, results: str, more: str = "") -> ModuleOp:
    text = f"builtin.module {{ func.func @main({arguments}) -> ({results}) {{ {body} }} {more} }}"
    module = parse_module(text, new_context())
    module.verify()
    return module


def main_of(module: ModuleOp) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")


def parts(arrays: Sequence[Array]) -> list[Array]:
    return [
        np.asarray(part)
        for each in arrays
        for part in ((each.real, each.imag) if np.iscomplexobj(each) else (each,))
    ]


def interpreted(module: ModuleOp, arrays: Sequence[Array]) -> list[Array]:
    names = host_names(main_of(module), "arg_names", len(main_of(module).body.block.args))
    return list(run_stablehlo(module, dict(zip(names, arrays, strict=True))).outputs.values())


def check(body: str, arguments: str, results: str, *arrays: Array, more: str = "") -> None:
    """The program computes the same with complex numbers, with their parts, and in nn."""
    wanted = parts(interpreted(program(body, arguments, results, more), arrays))
    module = program(body, arguments, results, more)
    real_signature(main_of(module))
    split_complex(module)
    module.verify()
    assert not holds_complex(module)
    assert not any(map(is_complex, main_of(module).function_type.inputs))
    found = interpreted(module, parts(arrays))
    below = values_of(lowered(body, arguments, results, more), *parts(arrays))
    for mine, other, third in zip(found, wanted, below, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(third, other, rtol=1e-5, atol=1e-5)


def end(name: str, kind: str) -> str:
    return f'"func.return"(%{name}) : ({kind}) -> ()\n'


def test_a_product_becomes_six_operations():
    module = program(
        f'%0 = "stablehlo.multiply"(%x, %x) : (tensor<2x{C}>, tensor<2x{C}>) -> tensor<2x{C}>'
        + end("0", f"tensor<2x{C}>"),
        f"%x: tensor<2x{C}>",
        f"tensor<2x{C}>",
    )
    real_signature(main_of(module))
    split_complex(module)
    lines = [each.strip() for each in print_module(module, locations=False).splitlines()]
    pair = ": (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"
    assert lines[1:-2] == [
        "func.func @main(%0: tensor<2xf32>, %1: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {",
        f'%2 = "stablehlo.multiply"(%0, %0) {pair}',
        f'%3 = "stablehlo.multiply"(%1, %1) {pair}',
        f'%4 = "stablehlo.subtract"(%2, %3) {pair}',
        f'%5 = "stablehlo.multiply"(%0, %1) {pair}',
        f'%6 = "stablehlo.multiply"(%1, %0) {pair}',
        f'%7 = "stablehlo.add"(%5, %6) {pair}',
        "func.return %4, %7 : tensor<2xf32>, tensor<2xf32>",
    ]


V, S = f"tensor<4x{C}>", f"tensor<{C}>"


def reduced(name: str) -> str:
    return f"""%0 = "stablehlo.constant"() <{{value = dense<(2.0, 1.0)> : {S}}}> : () -> {S}
        %1 = "stablehlo.reduce"(%x, %0) <{{dimensions = array<i64: 0>}}> ({{
        ^bb0(%a: {S}, %b: {S}):
        %2 = "stablehlo.{name}"(%a, %b) : ({S}, {S}) -> {S}
        "stablehlo.return"(%2) : ({S}) -> () }}) : ({V}, {S}) -> {S}
        {end("1", S)}"""


@pytest.mark.parametrize("name", ["add", "multiply", "maximum"])
def test_a_reduction_merges_both_parts(name: str):
    check(reduced(name), f"%x: {V}", S, drawn(4))


def test_a_sort_moves_both_parts():
    body = f"""%0, %n = "stablehlo.sort"(%x, %k) <{{dimension = 0 : i64, is_stable = true}}> ({{
        ^bb0(%a: {S}, %b: {S}, %c: tensor<i32>, %d: tensor<i32>):
        %1 = "stablehlo.real"(%a) : ({S}) -> tensor<f32>
        %2 = "stablehlo.real"(%b) : ({S}) -> tensor<f32>
        {compared("1", "2", "LT", "f32", "3")}
        "stablehlo.return"(%3) : (tensor<i1>) -> () }})
        : ({V}, tensor<4xi32>) -> ({V}, tensor<4xi32>)
        "func.return"(%0, %n) : ({V}, tensor<4xi32>) -> ()"""
    x = np.array([2 + 1j, -1 + 4j, 0 + 2j, -1 - 3j], np.complex64)
    check(
        body, f"%x: {V}, %k: tensor<4xi32>", f"{V}, tensor<4xi32>", x, np.arange(4, dtype=np.int32)
    )


def test_a_loop_and_a_branch_carry_both_parts():
    body = f"""%0 = "stablehlo.constant"() <{{value = dense<0> : tensor<i32>}}> : () -> tensor<i32>
        %1, %2 = "stablehlo.while"(%0, %x) ({{
        ^bb0(%i: tensor<i32>, %v: {V}):
        %3 = "stablehlo.constant"() <{{value = dense<3> : tensor<i32>}}> : () -> tensor<i32>
        {compared("i", "3", "LT", "i32", "4")}
        "stablehlo.return"(%4) : (tensor<i1>) -> () }}, {{
        ^bb1(%i: tensor<i32>, %v: {V}):
        %5 = "stablehlo.constant"() <{{value = dense<1> : tensor<i32>}}> : () -> tensor<i32>
        %6 = "stablehlo.add"(%i, %5) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        %7 = "stablehlo.add"(%v, %x) : ({V}, {V}) -> {V}
        "stablehlo.return"(%6, %7) : (tensor<i32>, {V}) -> () }})
        : (tensor<i32>, {V}) -> (tensor<i32>, {V})
        %8 = "stablehlo.if"(%p) ({{ "stablehlo.return"(%2) : ({V}) -> () }}, {{
        %9 = "stablehlo.negate"(%2) : ({V}) -> {V}
        "stablehlo.return"(%9) : ({V}) -> () }}) : (tensor<i1>) -> {V}
        {end("8", V)}"""
    for truth in (True, False):
        check(body, f"%x: {V}, %p: tensor<i1>", V, drawn(4), np.array(truth))


def test_a_function_takes_and_returns_both_parts():
    more = f"""func.func private @twice(%a: {V}, %b: tensor<4xf32>) -> ({V}, tensor<4xf32>) {{
        %0 = "stablehlo.add"(%a, %a) : ({V}, {V}) -> {V}
        %1 = "stablehlo.imag"(%a) : ({V}) -> tensor<4xf32>
        "func.return"(%0, %1) : ({V}, tensor<4xf32>) -> () }}"""
    body = f"""%0 = "stablehlo.real"(%x) : ({V}) -> tensor<4xf32>
        %1, %2 = func.call @twice(%x, %0) : ({V}, tensor<4xf32>) -> ({V}, tensor<4xf32>)
        "func.return"(%1, %2) : ({V}, tensor<4xf32>) -> ()"""
    check(body, f"%x: {V}", f"{V}, tensor<4xf32>", drawn(4), more=more)


def test_elements_move_with_both_parts():
    body = f"""%z = "stablehlo.constant"() <{{value = dense<(0.5, -0.5)> : {S}}}> : () -> {S}
        %0 = "stablehlo.pad"(%x, %z) <{{edge_padding_low = array<i64: 1>, edge_padding_high =
        array<i64: 0>, interior_padding = array<i64: 1>}}> : ({V}, {S}) -> tensor<8x{C}>
        %1 = "stablehlo.reverse"(%0) <{{dimensions = array<i64: 0>}}> : (tensor<8x{C}>)
        -> tensor<8x{C}>
        %2 = "stablehlo.concatenate"(%1, %x) <{{dimension = 0 : i64}}> : (tensor<8x{C}>, {V})
        -> tensor<12x{C}>
        %3 = "stablehlo.reshape"(%2) : (tensor<12x{C}>) -> tensor<3x4x{C}>
        %4 = "stablehlo.transpose"(%3) <{{permutation = array<i64: 1, 0>}}> : (tensor<3x4x{C}>)
        -> tensor<4x3x{C}>
        %5 = "stablehlo.dot_general"(%3, %4) <{{dot_dimension_numbers = #stablehlo.dot<
        lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}}>
        : (tensor<3x4x{C}>, tensor<4x3x{C}>) -> tensor<3x3x{C}>
        {end("5", f"tensor<3x3x{C}>")}"""
    check(body, f"%x: {V}", f"tensor<3x3x{C}>", drawn(4))


def test_numbers_are_made_of_other_types_and_of_bits():
    body = f"""%0 = "stablehlo.convert"(%k) : (tensor<4xi32>) -> {V}
        %1 = "stablehlo.iota"() <{{iota_dimension = 0 : i64}}> : () -> {V}
        %2 = "stablehlo.complex"(%y, %y) : (tensor<4xf32>, tensor<4xf32>) -> {V}
        %3 = "stablehlo.select"(%p, %0, %2) : (tensor<4xi1>, {V}, {V}) -> {V}
        %4 = "stablehlo.subtract"(%3, %1) : ({V}, {V}) -> {V}
        %5 = "stablehlo.bitcast_convert"(%4) : ({V}) -> tensor<4x2xf32>
        %6 = "stablehlo.bitcast_convert"(%5) : (tensor<4x2xf32>) -> {V}
        %7 = "stablehlo.convert"(%6) : ({V}) -> tensor<4xcomplex<f64>>
        %8 = "stablehlo.convert"(%7) : (tensor<4xcomplex<f64>>) -> tensor<4xi32>
        %9 = "stablehlo.compare"(%6, %x) <{{comparison_direction =
        #stablehlo<comparison_direction NE>}}> : ({V}, {V}) -> tensor<4xi1>
        "func.return"(%5, %6, %8, %9) : (tensor<4x2xf32>, {V}, tensor<4xi32>, tensor<4xi1>) -> ()"""
    check(
        body,
        f"%x: {V}, %k: tensor<4xi32>, %y: tensor<4xf32>, %p: tensor<4xi1>",
        f"tensor<4x2xf32>, {V}, tensor<4xi32>, tensor<4xi1>",
        drawn(4),
        np.arange(4, dtype=np.int32),
        np.array([2, -0.0, 1, 4], np.float32),
        np.array([True, False, False, True]),
    )


@pytest.mark.parametrize("name", ["collective_permute", "all_gather"])
def test_a_process_alone_keeps_both_parts(name: str):
    groups = "replica_groups = dense<0> : tensor<1x1xi64>, all_gather_dim = 0 : i64"
    given = groups if name == "all_gather" else "source_target_pairs = dense<0> : tensor<1x2xi64>"
    body = f'%0 = "stablehlo.{name}"(%x) <{{{given}}}> : ({V}) -> {V}\n{end("0", V)}'
    check(body, f"%x: {V}", V, drawn(4))


CLAMPED = (
    f'%0 = "stablehlo.negate"(%x) : ({V}) -> {V}\n'
    f'%1 = "stablehlo.clamp"(%0, %0, %0) : ({V}, {V}, {V}) -> {V}\n'
    f'%2 = "stablehlo.negate"(%1) : ({V}) -> {V}\n' + end("2", V)
)


def test_an_operation_without_a_rule_is_refused_by_name_and_alone():
    with pytest.raises(InputError, match=r"stablehlo.clamp at .* a complex number is not support"):
        lowered(CLAMPED, f"%x: {V}", V)
    module = program(CLAMPED, f"%x: {V}", V)
    before = print_module(module)
    found = refusals(module)
    assert [op.name for op, _ in found] == ["stablehlo.clamp"]
    assert found[0][0] in set(module.walk())
    assert print_module(module) == before


def test_parts_of_arguments_and_results_have_their_names():
    module = program(end("x", V), f"%x: {V}", V)
    main = main_of(module)
    main.attributes["arg_names"] = ArrayAttr([StringAttr("params['w']")])
    main.attributes["result_names"] = ArrayAttr([StringAttr("result[0]")])
    real_signature(main)
    module.verify()
    assert host_names(main, "arg_names", 2) == ["params['w'].real", "params['w'].imag"]
    assert host_names(main, "result_names", 2) == ["result[0].real", "result[0].imag"]


@pytest.mark.parametrize("attribute", ["arg_names", "result_names"])
def test_a_name_that_a_part_would_have_too_is_refused(attribute: str):
    kinds = f"{V}, tensor<4xf32>"
    body = f'"func.return"(%x, %y) : ({kinds}) -> ()'
    module = program(body, f"%x: {V}, %y: tensor<4xf32>", kinds)
    main_of(module).attributes[attribute] = ArrayAttr(map(StringAttr, ["z", "z.imag"]))
    with pytest.raises(InputError, match=f"{attribute}: z.imag is also the name of a part"):
        real_signature(main_of(module))
