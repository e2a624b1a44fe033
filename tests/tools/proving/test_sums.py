"""Normal forms of sums over dimensions of any size."""

from __future__ import annotations

from abele.tools.proving.facts import Facts
from abele.tools.proving.indices import Poly
from abele.tools.proving.sums import Sums
from abele.tools.proving.terms import Const
from abele.tools.proving.trees import Call, Case, Element, Reduce, Tree, shown

N, M, A, B = (Poly.of(name) for name in "nmij")
X, Y = Element("x", (A,), "f32"), Element("y", (B,), "f32")
ZERO = Const(0.0, "f32")


def over_i(body: Tree, combiner: str = "sum") -> Reduce:
    return Reduce(combiner, (("i", N),), body, "f32")


def normal(tree: Tree) -> str:
    facts = Facts({"n": 1, "m": 1}, {"i": N, "j": M})
    return shown(Sums(facts).normal(tree, facts))


def test_a_factor_that_is_the_same_at_all_points_is_taken_out():
    assert normal(over_i(Call("mul", (X, Y), "f32"))) == "mul(sum(x[i] for i < n), y[j])"


def test_a_factor_that_depends_on_the_points_stays():
    inner = Element("y", (A,), "f32")
    assert normal(over_i(Call("mul", (X, inner), "f32"))) == "sum(mul(x[i], y[i]) for i < n)"


def test_a_sum_of_sums_is_a_sum_over_both():
    outer = Reduce("sum", (("j", M),), over_i(X), "f32")
    assert normal(outer) == "sum(x[i] for j < m, i < n)"


def test_a_sum_of_differences_is_a_difference_of_sums():
    found = normal(over_i(Call("sub", (X, Element("z", (A,), "f32")), "f32")))
    assert found == "sub(sum(x[i] for i < n), sum(z[i] for i < n))"


def test_a_condition_on_a_dimension_cuts_the_sum():
    first = Case((A - 1,), X, ZERO)
    assert normal(over_i(first)) == "sum(x[1 + k1] for k1 < - 1 + n)"


def test_an_extreme_leaves_out_dimensions_that_it_does_not_read():
    assert normal(over_i(Y, "max")) == "y[j]"
    assert normal(over_i(Y)) == "sum(y[j] for i < n)"


def test_a_choice_that_the_ranges_decide_is_no_choice():
    assert normal(Case((A,), X, ZERO)) == "x[i]"
    assert normal(Case((A - N,), X, ZERO)) == "0.0"
