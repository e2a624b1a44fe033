"""`pytest --rules FILE.rw --prove` in a project of its own."""

import pytest

pytest_plugins = ["pytester"]

RIGHT = "rule there_and_back: nn.cast(nn.cast(x: f16[...]): f32[...]): f16[...] => x\n"
WRONG = "rule integers_and_back: nn.cast(nn.cast(x: f32[...]): i32[...]): f32[...] => x\n"


def test_a_rule_that_is_proved_needs_fewer_programs_and_a_wrong_one_is_refuted(
    pytester: pytest.Pytester,
):
    pytester.makefile(".rw", mine=f"takes nn\n\n{RIGHT}{WRONG}")
    chosen = "is_proved or (there_and_back and keeps_the_meaning)"
    options = ("--rules", "mine.rw", "--prove", "-k", chosen, "-p", "no:cacheprovider")
    result = pytester.runpytest_subprocess(*options)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*rule integers_and_back: is_proved*",
            "refuted: out*",
            "*nn.cast*",
            "abele: 1 check changed 12 of 12 programs in *",
            "abele: proofs of 1 rule spared 48 programs",
        ]
    )


def test_a_budget_on_the_command_line_stays_as_it_is(pytester: pytest.Pytester):
    pytester.makefile(".rw", mine=f"takes nn\n\n{RIGHT}")
    options = ("--rules", "mine.rw", "--prove", "--abele-examples", "15")
    result = pytester.runpytest_subprocess(*options, "-k", "not only", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["abele: 1 check changed 15 of 15 programs in *"])
    result.stdout.no_fnmatch_line("*spared*")


def test_prove_needs_a_file_of_rules(pytester: pytest.Pytester):
    result = pytester.runpytest_subprocess("--prove", "-p", "no:cacheprovider")
    result.stderr.fnmatch_lines(["*--prove: no rules; name a file of rules with --rules*"])
