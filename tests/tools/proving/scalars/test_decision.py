"""What is equal, different and undecided about scalar terms."""

from __future__ import annotations

import pytest

from abele.tools.proving.scalars import decide, missing_meanings
from abele.tools.proving.terms import Apply, Const, Merge, Term, Var, replaced

X, Y, Z = (Var(name, "f32") for name in "xyz")
H = Var("h", "f16")
I, J = Var("i", "i32"), Var("j", "i32")  # noqa: E741
SMALL, BYTE = Var("s", "i8"), Var("b", "ui8")
TRUTH = Var("t", "i1")


def f(name: str, *args: Term | float, dtype: str = "", parameters: tuple[float, ...] = ()) -> Apply:
    """A function of terms and numbers."""
    kind = dtype or next(arg.dtype for arg in args if not isinstance(arg, float | int))
    terms = tuple(Const(arg, kind) if isinstance(arg, float | int) else arg for arg in args)
    return Apply(name, terms, kind, parameters)


def truth(name: str, *args: Term | float) -> Apply:
    """A comparison."""
    kind = next(arg.dtype for arg in args if not isinstance(arg, float | int))
    terms = tuple(Const(arg, kind) if isinstance(arg, float | int) else arg for arg in args)
    return Apply(name, terms, "i1")


TO_THE_BIT = {
    "a sum commutes": (f("add", X, Y), f("add", Y, X)),
    "two signs cancel": (f("neg", f("neg", X)), X),
    "one is a factor": (f("mul", X, 1.0), X),
    "a square has no sign": (f("square", f("neg", X)), f("square", X)),
    "relu is an extreme": (f("relu", X), f("max", X, 0.0)),
    "a narrow float widens": (f("identity", f("identity", H, dtype="f32"), dtype="f16"), H),
    "limits meet": (
        f("clip", f("clip", X, parameters=(0.0, 6.0)), parameters=(1.0, 9.0)),
        f("clip", X, parameters=(1.0, 6.0)),
    ),
    "comparisons turn": (truth("less", X, Y), truth("greater", Y, X)),
    "integers wrap": (f("sub", f("add", I, J), J), I),
    "a shift doubles": (f("shift_left", I, 1), f("mul", I, 2)),
    "bits cancel": (f("bitwise_xor", f("bitwise_xor", I, J), J), I),
    "integers distribute": (f("mul", I, f("add", I, J)), f("add", f("mul", I, I), f("mul", I, J))),
    "a product of truth values": (f("mul", TRUTH, TRUTH), TRUTH),
    "signs cancel in a product": (f("mul", f("neg", X), f("neg", Y)), f("mul", X, Y)),
    "a difference of a sign": (f("sub", X, f("neg", Y)), f("add", Y, X)),
    "a magnitude of a product": (f("abs", f("mul", X, Y)), f("mul", f("abs", Y), f("abs", X))),
    "a narrow product": (f("mul", H, f("neg", H)), f("neg", f("square", H))),
    "a byte fits": (f("identity", f("identity", BYTE, dtype="f32"), dtype="ui8"), BYTE),
}


@pytest.mark.parametrize("name", TO_THE_BIT)
def test_terms_are_equal_to_the_bit(name: str):
    found = decide(*TO_THE_BIT[name])
    assert (found.verdict, found.exactness, found.special) == ("equal", "bits", "same")
    assert str(found) == "equal to the bit"


UP_TO_ROUNDING = {
    "exponents add up": (f("mul", f("exp", X), f("exp", Y)), f("exp", f("add", X, Y))),
    "an odd function": (f("tanh", f("neg", X)), f("neg", f("tanh", X))),
    "an exponential is positive": (f("relu", f("exp", X)), f("exp", X)),
    "the root of a square": (f("sqrt", f("square", X)), f("abs", X)),
    "the definition of softplus": (f("log", f("add", 1.0, f("exp", X))), f("softplus", X)),
    "the other half of a sigmoid": (f("sigmoid", f("neg", X)), f("sub", 1.0, f("sigmoid", X))),
}


@pytest.mark.parametrize("name", UP_TO_ROUNDING)
def test_terms_are_equal_up_to_rounding_with_all_special_values(name: str):
    found = decide(*UP_TO_ROUNDING[name])
    assert (found.verdict, found.exactness, found.special) == ("equal", "rounding", "same")


ONLY_NUMBERS = {
    "nothing is left": (f("sub", X, X), Const(0.0, "f32")),
    "zero is a factor": (f("mul", X, 0.0), Const(0.0, "f32")),
    "a quotient cancels": (f("mul", f("div", X, Y), Y), X),
    "products distribute": (f("mul", X, f("add", Y, Z)), f("add", f("mul", X, Y), f("mul", X, Z))),
    "not less": (f("logical_not", truth("less", X, Y)), truth("greater_equal", X, Y)),
    "extremes absorb": (f("max", X, f("min", X, Y)), X),
    "the root of a product": (f("power", X, parameters=(0.5,)), f("sqrt", X)),
}


@pytest.mark.parametrize("name", ONLY_NUMBERS)
def test_terms_differ_in_special_values_only_and_an_example_shows_it(name: str):
    found = decide(*ONLY_NUMBERS[name])
    assert (found.verdict, found.special) == ("equal", "differ")
    assert found.special_example


@pytest.mark.parametrize("name", ["exponents add up", "the definition of softplus"])
def test_a_right_side_that_overflows_on_the_way_differs_in_infinities(name: str):
    overflows, right = UP_TO_ROUNDING[name]
    found = decide(right, overflows)
    assert (found.verdict, found.special) == ("equal", "differ")
    assert found.special_example


def as_type(term: Term, dtype: str) -> Apply:
    return f("identity", term, dtype=dtype)


COARSER = {
    "a float of fewer digits": (X, as_type(as_type(X, "bf16"), "f32"), "bf16"),
    "a float of a smaller range": (f("neg", X), as_type(f("neg", as_type(X, "f16")), "f32"), "f16"),
    "a sum of narrow floats": (
        Merge("sum", (as_type(H, "f32"), X), "f32"),
        as_type(Merge("sum", (H, as_type(X, "f16")), "f16"), "f32"),
        "f16",
    ),
    "a difference that was wide": (
        as_type(f("sub", f("add", as_type(X, "f64"), as_type(Y, "f64")), as_type(Y, "f64")), "f32"),
        f("sub", f("add", X, Y), Y),
        "f32",
    ),
    "a whole number of many bits": (
        f("mul", X, as_type(I, "f32")),
        f("mul", X, as_type(as_type(I, "f16"), "f32")),
        "f16",
    ),
}


@pytest.mark.parametrize("name", COARSER)
def test_a_right_side_that_rounds_to_a_narrower_type_is_not_equal(name: str):
    left, right, narrow = COARSER[name]
    found = decide(left, right)
    assert (found.verdict, found.reason) == ("undecided", f"only the right side rounds to {narrow}")
    assert decide(right, left).verdict == "equal"


def test_a_left_side_of_a_smaller_range_differs_where_only_it_overflows():
    found = decide(as_type(as_type(X, "f16"), "f32"), X)
    assert (found.verdict, found.special) == ("equal", "differ")
    (value,) = found.special_example.values()
    assert abs(value) > 65504


def test_the_order_of_a_merge_changes_roundings_and_signs_of_zeros():
    turned = (X, Y, Z), (Z, Y, X)
    sums = decide(*(Merge("sum", args, "f32") for args in turned))
    assert (sums.verdict, sums.exactness) == ("equal", "rounding")
    extremes = decide(*(Merge("max", args, "f32") for args in turned))
    assert (extremes.verdict, extremes.special) == ("equal", "zeros")


def test_bits_that_are_read_as_their_own_type_are_the_number():
    assert str(decide(f("bitcast", X, dtype="f32"), X)) == "equal to the bit"


def test_the_sign_of_a_zero_is_a_case_of_its_own():
    found = decide(f("add", X, 0.0), X)
    assert (found.verdict, found.exactness, found.special) == ("equal", "bits", "zeros")
    assert "signs of zeros may differ, as where x = -0" in str(found)


DIFFERENT = {
    "relu of a sign": (f("relu", f("neg", X)), f("neg", f("relu", X))),
    "limits that do not meet": (
        f("clip", f("clip", X, parameters=(0.0, 2.0)), parameters=(3.0, 9.0)),
        f("clip", X, parameters=(3.0, 2.0)),
    ),
    "equal operands": (truth("less", X, Y), truth("less_equal", X, Y)),
    "an unsigned sign": (f("abs", f("neg", BYTE)), f("abs", BYTE)),
    "a product that wraps": (f("div", f("mul", I, 2), 2), I),
    "a shift rounds down": (f("shift_right", SMALL, 1), f("div", SMALL, 2)),
    "a cast that wraps": (f("identity", f("identity", I, dtype="i8"), dtype="i32"), I),
    "zero to the power of zero": (f("pow", f("mul", X, 0.0), Y), f("mul", X, 0.0)),
    "one number in four billion": (
        truth("equal", f("mul", I, 3), Const(1111111111, "i32")),
        Const(0, "i1"),
    ),
    "one number on a line": (
        truth("equal", f("scale", X, parameters=(3.0,)), Const(111.0, "f32")),
        Const(0, "i1"),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_terms_are_different_and_the_example_shows_it(name: str):
    left, right = DIFFERENT[name]
    found = decide(left, right)
    assert found.verdict == "different"
    values: dict[Var, Term] = {
        each: Const(value, each.dtype) for each, value in found.example.items()
    }
    again = decide(replaced(left, values), replaced(right, values))
    assert again.verdict == "different"


def test_an_assumption_makes_terms_equal():
    root = f("power", X, parameters=(0.5,))
    assert decide(root, f("sqrt", X)).special == "differ"
    assert decide(f("abs", X), X).verdict == "different"
    found = decide(f("abs", X), X, [truth("greater_equal", X, 0.0)])
    assert (found.verdict, found.special) == ("equal", "zeros")


def test_a_sum_of_many_products_is_decided_by_its_normal_form():
    terms = [(Var(f"a{k}", "f32"), Var(f"w{k}", "f32")) for k in range(200)]
    left = Merge("sum", tuple(f("mul", a, f("mul", w, X)) for a, w in terms), "f32")
    right = f("mul", X, Merge("sum", tuple(f("mul", w, a) for a, w in reversed(terms)), "f32"))
    found = decide(left, right)
    assert (found.verdict, found.exactness) == ("equal", "rounding")
    assert found.seconds < 3
    wrong = Merge("sum", tuple(f("mul", a, f("mul", w, X)) for a, w in terms[1:]), "f32")
    assert decide(wrong, right).verdict == "different"


def test_a_question_that_takes_too_long_is_undecided_and_says_so():
    remainder = f("mod", f("mod", I, J), J)
    found = decide(remainder, f("mod", I, J), limit_s=0.3)
    assert found.verdict == "undecided"
    assert "the solver was not done after" in found.reason
    assert found.seconds < 1.5


def drawn(*args: Term) -> Apply:
    """Random bits, of which only congruence is known."""
    return f("random_bits", *args, parameters=(3.0,))


def test_a_function_without_a_meaning_is_named():
    found = decide(drawn(I, J, I), drawn(I, J, J))
    assert found.verdict in ("different", "undecided")
    assert missing_meanings(f("add", f("bitcast", I, dtype="f32"), X)) == ("bitcast",)
    same = decide(drawn(f("add", I, J), J, I), drawn(f("add", J, I), J, I))
    assert same.verdict == "equal"


def test_integers_without_whole_bytes_wrap_too():
    n = Var("n", "i4")
    assert str(decide(f("add", n, 3), f("sub", n, -3))) == "equal to the bit"
    assert decide(f("div", f("mul", n, 2), 2), n).verdict == "different"
    assert str(decide(f("add", f("add", n, 7), 7), f("sub", n, 2))) == "equal to the bit"
