"""Verdicts on the cases of conformance suites of StableHLO."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from abele.tools.workshop.stablehlo.cases import OPEN, Case, Tolerance, Verdict, judge


def text(operation: str, kind: str = "tensor<3xf32>") -> str:
    return f"""
"builtin.module"() ({{
  "func.func"() <{{function_type = ({kind}) -> {kind}, sym_name = "main"}}> ({{
  ^bb0(%arg0: {kind} loc("x")):
    %0 = "{operation}"(%arg0) : ({kind}) -> {kind}
    "func.return"(%0) : ({kind}) -> ()
  }}) : () -> ()
}}) : () -> ()
"""


X = np.array([1, -2, 4], np.float32)
NEGATED = Case("case", "group", text("stablehlo.negate"), [X], [-X], [Tolerance(1e-6, 1e-6)])


def apart(by: float) -> Case:
    return replace(NEGATED, expected=[-X + np.array([0, by, 0], np.float32)])


@pytest.mark.parametrize(
    ("case", "verdict", "why"),
    [
        (NEGATED, "passed", ""),
        (apart(2e-6), "passed", ""),
        # A step of the largest element, 4, is 4.8e-7.
        (replace(apart(4e-7), tolerances=[Tolerance()]), "near", "1 of 3 elements differ"),
        (apart(1e-5), "wrong", "1 of 3 elements differ"),
        (replace(NEGATED, expected=[np.full(3, np.nan, np.float32)]), "wrong", "3 of 3 elements"),
        (replace(NEGATED, expected=[X[:2]]), "wrong", "output 0: float32[3]; need float32[2]"),
        (replace(NEGATED, expected=[-X.astype(np.float64)]), "wrong", "output 0: float32[3]; need"),
        (replace(NEGATED, expected=[], tolerances=[]), "wrong", "1 outputs; need 0"),
        (replace(NEGATED, text=text("stablehlo.own")), "refused", "stablehlo.own is not supported"),
        (replace(NEGATED, inputs=[]), "crashed", "ValueError: zip()"),
    ],
)
def test_a_case_is_judged_by_its_outputs(case: Case, verdict: str, why: str):
    found = judge(case)
    assert found.verdict == verdict
    assert why in found.why


@pytest.mark.parametrize(("steps", "verdict"), [(1, "near"), (2, "near"), (3, "wrong")])
def test_floats_of_16_bits_may_be_two_steps_apart(steps: int, verdict: str):
    x = np.array([1, -2, 4], ml_dtypes.bfloat16)
    expected = (-x.astype(np.float32)).astype(ml_dtypes.bfloat16)
    expected.view(np.int16)[1] += steps
    name = text("stablehlo.negate", "tensor<3xbf16>")
    assert judge(Case("case", "group", name, [x], [expected], [Tolerance()])).verdict == verdict


def test_a_refused_case_may_pass_with_constants():
    refused = replace(NEGATED, text=text("stablehlo.own"), bound=NEGATED)
    assert judge(refused).verdict == "bound"
    assert judge(replace(refused, bound=apart(1))).verdict == "wrong"
    assert judge(replace(refused, bound=replace(refused, bound=None))).verdict == "refused"


@pytest.mark.parametrize(
    ("why", "operation"),
    [
        ("stablehlo.sort at sort (f.py:1): more than one key is not supported", "stablehlo.sort"),
        (
            "stablehlo.custom_call at svd: @lapack_sgesdd is not",
            "stablehlo.custom_call @lapack_sgesdd",
        ),
        ("node 'x': chlo.lgamma is not supported", "chlo.lgamma"),
        ("it does not fit", "other"),
    ],
)
def test_a_refusal_names_an_operation(why: str, operation: str):
    assert Verdict("case", "group", "refused", why).operation == operation


def test_an_open_output_has_any_elements_but_its_own_type():
    other = replace(NEGATED, expected=[NEGATED.expected[0] + 5])
    assert judge(other).verdict == "wrong"
    assert judge(replace(other, tolerances=[OPEN])).verdict == "passed"
    longer = [np.concatenate([NEGATED.expected[0]] * 2)]
    assert judge(replace(other, expected=longer, tolerances=[OPEN])).verdict == "wrong"


Z = np.array([3 + 4j, 1e-3 + 1j, np.inf + 1j], np.complex64)
CONJUGATED = replace(
    NEGATED, text=text("stablehlo.negate", "tensor<3xcomplex<f32>>"), inputs=[Z], expected=[-Z]
)


@pytest.mark.parametrize(
    ("by", "verdict"),
    [
        # 1.5e-6 is much for the real part, 1e-3, and little for a number of magnitude 1.
        ([0, 1.5e-6, 0], "passed"),
        ([4e-6j, 4e-6, 0], "wrong"),
        ([0, 0, 1e-3j], "wrong"),
        ([0, np.inf, 0], "wrong"),
    ],
)
def test_complex_numbers_are_compared_by_their_distance(by: list[complex], verdict: str):
    expected = [(-Z + np.array(by)).astype(np.complex64)]
    assert judge(replace(CONJUGATED, expected=expected)).verdict == verdict


@pytest.mark.parametrize(("by", "verdict"), [(1e-4, "near"), (-1e-4, "wrong")])
def test_complex_numbers_may_be_nearer_to_exact_ones_than_the_expected_are(by: float, verdict: str):
    """The expected number is off by 1e-4, and ours by nothing, or by three times as much."""
    case = replace(CONJUGATED, inputs=[Z[:2]], text=CONJUGATED.text.replace("3x", "2x"))
    expected = [(-Z[:2] + np.array([1e-4, 0])).astype(np.complex64)]
    exact = -Z[:2].astype(np.complex128) + np.array([0 if by > 0 else 1.6e-4, 0])
    assert judge(replace(case, expected=expected, exact=lambda _: [exact])).verdict == verdict


NEARLY_SINGULAR = [[1, 1], [1, 1 + 1e-5]]
REGULAR = [[2, 1], [1, 2]]


@pytest.mark.parametrize(
    ("matrix", "at", "by", "verdict"),
    [
        # The rounding of the matrix moves the last element, 0.003, by 2e-5, and the first by 6e-8.
        (NEARLY_SINGULAR, (1, 1), 1e-5, "near"),
        (NEARLY_SINGULAR, (1, 1), 1e-3, "wrong"),
        (NEARLY_SINGULAR, (0, 0), 1e-5, "wrong"),
        (NEARLY_SINGULAR, (0, 0), np.nan, "wrong"),
        (REGULAR, (1, 1), 1e-5, "wrong"),
    ],
)
def test_a_factor_may_be_as_far_from_the_exact_one_as_the_rounding_of_its_matrix_moves_it(
    matrix: list[list[float]], at: tuple[int, int], by: float, verdict: str
):
    def exact(inputs):
        factor = np.linalg.cholesky(inputs[0].astype(np.float64)).T
        factor[at] += by
        return [factor]

    given = np.array(matrix, np.float32)
    case = Case(
        "case",
        "group",
        text("stablehlo.cholesky", "tensor<2x2xf32>"),
        [given],
        [np.linalg.cholesky(given).T + np.float32(1e-2)],
        [Tolerance(1e-6, 1e-6)],
        exact=exact,
    )
    assert judge(case).verdict == verdict
    assert judge(replace(case, exact=None)).verdict == "wrong"
