import pytest

from abele.ir.errors import InputError
from abele.tools.debug.diagnostics import Expectations


def at(line: int, message: str) -> InputError:
    return InputError(f"x.mlir:{line}:5: {message}")


@pytest.mark.parametrize(
    ("comments", "line"),
    [
        (["// expected-error {{no}}"], 1),
        (["// expected-error@+1 {{no}}"], 2),
        (["// expected-error@+3 {{no}}"], 4),
        (["op", "// expected-error@-1 {{no}}"], 1),
        (["// expected-error@below {{no}}", "// expected-error@below {{yes}}", "op"], 3),
        (["op", "// expected-error @above {{yes}}", "// expected-error@above {{no}}"], 1),
        (["op  // some words expected-error{{no}}"], 1),
    ],
)
def test_an_expected_error_must_be_at_its_line(comments: list[str], line: int):
    text = "\n".join([*comments, "", "", ""])
    for other in range(1, 6):
        problem = Expectations(text, "x.mlir").match(at(other, "no, thanks"))
        assert (problem == "") == (other == line), other


def test_an_error_with_another_text_does_not_match():
    expectations = Expectations("// expected-error {{no}}", "x.mlir")
    problem = expectations.match(at(1, "perhaps"))
    assert problem == "x.mlir:1: unexpected error: x.mlir:1:5: perhaps"
    assert expectations.unmatched() == ["x.mlir:1: expected error 'no' did not occur"]


def test_each_expectation_must_be_met_the_stated_number_of_times():
    expectations = Expectations("// expected-error 2 {{no}}", "x.mlir")
    assert expectations.match(at(1, "no")) == ""
    assert len(expectations.unmatched()) == 1
    assert expectations.match(at(1, "no")) == ""
    assert expectations.unmatched() == []
    assert expectations.match(at(1, "no")) != ""


def test_two_expectations_of_one_line():
    expectations = Expectations("// expected-error {{a}} expected-error {{b}}", "x.mlir")
    assert expectations.match(at(1, "b")) == ""
    assert expectations.unmatched() == ["x.mlir:1: expected error 'a' did not occur"]


def test_an_error_without_a_line_is_unknown():
    expectations = Expectations("\n// expected-error@unknown {{no}}", "x.mlir")
    assert expectations.match(ValueError("no")) == ""
    assert Expectations("// expected-error {{no}}", "x.mlir").match(ValueError("no")) != ""


@pytest.mark.parametrize(
    ("comment", "says"),
    [
        ("// expected-warning {{no}}", "x.mlir:1: expected-warning: abele reports errors only"),
        ("// expected-error", "x.mlir:1: expected-error without its text"),
        ("// expected-error@+9 {{no}}", "x.mlir:1: @+9: no such line"),
        ("// expected-error@above {{no}}", "x.mlir:1: @above: no such line"),
        ("// expected-error@there {{no}}", "x.mlir:1: @there: no such line"),
    ],
)
def test_comments_that_are_not_valid_expectations_are_refused(comment: str, says: str):
    with pytest.raises(InputError, match=says.replace("+", r"\+")):
        Expectations(comment, "x.mlir")
