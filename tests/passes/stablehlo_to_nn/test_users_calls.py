from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from called_dialect import called_dialect
from lowered_stablehlo import lowered, results_of, returned

from abele.ir.support.errors import InputError

X = "tensor<4x6xf32>"
HALF = "tensor<2x6xf32>"
GIVEN = "%x: tensor<4x6xf32>, %y: tensor<4x6xf32>"
A, B = (np.arange(24, dtype=np.float32).reshape(4, 6) + i for i in range(2))


@pytest.fixture(autouse=True)
def mine(tmp_path: Path) -> Generator[Path]:
    with called_dialect(tmp_path) as path:
        yield path


def call(attributes: str, name: str = "mine.mix", properties: str = "", result: str = X) -> str:
    told = f'call_target_name = "{name}"{properties}'
    return (
        f'%0 = "stablehlo.custom_call"(%x, %y) <{{{told}}}> {attributes} : ({X}, {X}) -> {result}\n'
        + returned(["0"], [result], "func.return")
    )


def config(settings: str) -> str:
    return f"{{mhlo.backend_config = {{{settings}}}}}"


@pytest.mark.parametrize(
    "settings",
    [
        "rate = 2.0 : f64",
        "rate = 2.0 : f32",
        "rate = 2 : i64",
        "rate = dense<2.0> : tensor<f32>",
        "rate = 2.0 : f64, axes = dense<[0, 1]> : tensor<2xi64>",
        "rate = 2.0 : f64, axes = array<i32: 0, 1>, negated = false",
    ],
)
def test_a_custom_call_builds_the_operation_of_its_name(settings: str):
    (found,) = results_of(call(config(settings)), GIVEN, X, A, B)
    np.testing.assert_array_equal(found, 2 * A + B)


def test_a_custom_call_may_be_told_by_its_property_and_use_a_name_that_a_file_declares():
    layouts = "operand_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>]"
    body = call("", "com.example.Blend", f", backend_config = {{alpha = 2.0}}, {layouts}")
    (found,) = results_of(body, GIVEN, X, A, B)
    np.testing.assert_array_equal(found, 2 * A + B)


def test_a_custom_call_may_have_several_results():
    body = (
        f'%0, %1 = "stablehlo.custom_call"(%x) <{{call_target_name = "mine.halves", '
        f'backend_config = ""}}> : ({X}) -> ({HALF}, {HALF})\n'
        + returned(["1", "0"], [HALF] * 2, "func.return")
    )
    names = [op.name for op in lowered(body, f"%x: {X}", f"{HALF}, {HALF}").walk()]
    assert names.count("mine.halves") == 1


COMPOSITE = f"""%0 = "stablehlo.composite"(%x, %y) <{{name = "NAME", decomposition = @sum,
composite_attributes = {{rate = 2.0 : f64}}, version = 0 : i32}}> : ({X}, {X}) -> {X}
func.return %0 : {X}
}}
func.func private @sum(%a: {X}, %b: {X}) -> {X} {{
  %c = "stablehlo.add"(%a, %b) : ({X}, {X}) -> {X}
  func.return %c : {X}
"""


@pytest.mark.parametrize(("name", "rate"), [("mine.mix", 2), ("other.mix", 1)])
def test_a_composite_is_the_operation_of_its_name_else_its_decomposition(name: str, rate: int):
    (found,) = results_of(COMPOSITE.replace("NAME", name), GIVEN, X, A, B)
    np.testing.assert_array_equal(found, rate * A + B)


RATE = config("rate = 2.0 : f64")
MISFITS = {
    "a name that is nearly right": (
        call(RATE, "mine.mox"),
        "a call of @mine.mox is not supported.*did you mean mine.mix of a file that was loaded",
    ),
    "an unknown setting": (call(config("rat = 2.0 : f64, rate = 1.0")), "no attribute 'rat'"),
    "a missing setting": (call(""), "attribute rate of mine.mix is missing"),
    "a setting of another kind": (call(config('rate = "a"')), "is the text 'a'; need a number"),
    "an opaque text": (call("", properties=', backend_config = "ab"'), "the backend_config"),
    "a side effect": (
        call(RATE, properties=", has_side_effect = true"),
        "a side effect of @mine.mix is not supported",
    ),
    "a function": (
        call(RATE, properties=", called_computations = [@sum]"),
        "a function that @mine.mix calls is not supported",
    ),
    "columns one after another": (
        call(RATE, properties=", result_layouts = [dense<[0, 1]> : tensor<2xindex>]"),
        r"the layout \[0, 1\] of result 0 is not supported; \[1, 0\] is",
    ),
    "code that fails": (
        call(config("rate = 1.0, axes = array<i64: 7, 7>")),
        "mine.py:33: KeyError: 'missing'",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_a_call_that_does_not_fit_is_refused(case: str):
    body, message = MISFITS[case]
    with pytest.raises(InputError, match=rf"stablehlo.custom_call at .*{message}"):
        lowered(body, GIVEN, X)


def test_a_call_that_declares_another_result_is_refused():
    with pytest.raises(
        InputError, match="declares results tensor<4x5xf32>; mine.mix has tensor<4x6xf32>"
    ):
        lowered(call(RATE, result="tensor<4x5xf32>"), GIVEN, "tensor<4x5xf32>")
