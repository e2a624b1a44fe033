from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from called_dialect import called_dialect
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute, Block

from abele.dialects import nn
from abele.dialects.model_calls import (
    MODEL_CALLS,
    callable_names,
    called_operation,
    model_call,
)
from abele.ir.errors import InputError
from abele.ir.upstream import VerifyException
from abele.tools.extensions import load_extensions

X = nn.tensor([4, 6], f32)


@pytest.fixture
def mine(tmp_path: Path) -> Generator[Path]:
    with called_dialect(tmp_path) as path:
        yield path


def called(name: str, *types: Attribute, **given: Any) -> Any:
    call = model_call(name)
    assert call is not None
    return called_operation(call, Block(arg_types=types or (X, X)).args, given)


@pytest.mark.usefixtures("mine")
def test_an_operation_is_called_by_its_own_name_and_by_those_that_its_file_declares():
    for name, rate in (("mine.mix", "rate"), ("com.example.Blend", "alpha"), ("blend", "rate")):
        op = called(name, **{rate: 3})
        assert (op.name, op.rate.value.data, op.result.type) == ("mine.mix", 3.0, X)


def test_names_last_as_long_as_their_file(tmp_path: Path):
    with called_dialect(tmp_path):
        assert {"com.example.Blend", "mine.mix"} <= {*callable_names()}
        assert model_call("mine.other") is None
        assert model_call("other.mix") is None
    assert callable_names() == []
    assert model_call("mine.mix") is None
    assert MODEL_CALLS == {}


def test_operations_of_abele_are_not_called():
    assert model_call("nn.relu") is None


@pytest.mark.usefixtures("mine")
def test_flags_are_numbers_or_truth_values():
    for value, there in ((1, True), (True, True), (0, False), (False, False)):
        assert (called("mine.mix", rate=1.0, negated=value).negated is not None) is there


@pytest.mark.usefixtures("mine")
def test_several_results_have_the_types_that_the_operation_infers():
    op = called("mine.halves", X)
    assert [each.type for each in op.results] == [nn.tensor([2, 6], f32)] * 2


WRONG = {
    "too few operands": ((X,), {"rate": 1.0}, r"1 operands; mine.mix takes 2 \(x, y\)"),
    "an unknown attribute": (
        (X, X),
        {"rate": 1.0, "rat": 2.0},
        "no attribute 'rat'; did you mean rate",
    ),
    "a missing attribute": ((X, X), {}, "attribute rate of mine.mix is missing"),
    "a text for a number": (
        (X, X),
        {"rate": "a"},
        "attribute rate of mine.mix is the text 'a'; need a number",
    ),
    "a number for a list": ((X, X), {"rate": 1.0, "axes": 3}, "axes .* is 3; need a list of int"),
    "a number for a flag": ((X, X), {"rate": 1.0, "negated": 2}, "is 2; need true or false"),
    "element types that differ": (
        (X, nn.tensor([4, 6], i32)),
        {"rate": 1.0},
        "element types f32 and i32",
    ),
    "code that fails": ((X, X), {"rate": 1.0, "axes": (7, 7)}, r"mine.py:33: KeyError: 'missing'"),
}


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str):
    types, given, message = WRONG[case]
    with pytest.raises(VerifyException, match=message):
        called("mine.mix", *types, **given)


@pytest.mark.usefixtures("mine")
def test_a_model_must_declare_the_results_that_the_operation_has():
    call = model_call("mine.halves")
    assert call is not None
    with pytest.raises(VerifyException, match=r"declares results tensor<4x6xf32>; mine.halves has"):
        called_operation(call, Block(arg_types=[X]).args, {}, [X])


@pytest.mark.usefixtures("mine")
def test_results_that_nobody_infers_take_the_types_that_the_model_declares():
    call = model_call("mine.untyped")
    assert call is not None
    assert called_operation(call, Block(arg_types=[X]).args, {}, [X]).results[0].type == X
    with pytest.raises(VerifyException, match="give it a method infer"):
        called("mine.untyped", X)


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('ModelCall("blend", MINE)', "call 'blend' is already defined by .*mine.py"),
        ('ModelCall("other", MINE, {"a": "rat"})', "mine.mix has no attribute 'rat'; did you"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(call: str, message: str, tmp_path: Path):
    other = tmp_path / "other.py"
    other.write_text(f"""
from abele.dialects.levels import USERS_DIALECTS
from abele.tools.extensions import ModelCall
(MINE, *_) = USERS_DIALECTS["mine"].operations
CALL = {call}
""")
    with pytest.raises(InputError, match=message):
        load_extensions([other])
