"""The plug-in in a project of its own."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

MINE = """
    from dataclasses import dataclass
    from abele.dialects import nn
    from abele.ir.upstream import ModulePass

    @dataclass(frozen=True)
    class SwapSub(ModulePass):
        name = "swap-sub"
        def apply(self, ctx, op):
            for each in op.walk():
                if isinstance(each, nn.SubOp):
                    each.operands[0], each.operands[1] = each.operands[1], each.operands[0]

    def test_mine(check_pass):
        check_pass(SwapSub(), level="nn", examples=300)
"""


def test_five_lines_find_a_wrong_pass_and_replay_it(pytester: pytest.Pytester):
    pytester.makepyfile(MINE)
    result = pytester.runpytest_subprocess("--abele-seed=1", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*after pass 'swap-sub'*", "*nn.sub*", "*replay: pytest *"])
    folder = next(
        line.split("--abele-replay ")[1].strip()
        for line in result.stdout.lines
        if "--abele-replay " in line
    )
    again = pytester.runpytest_subprocess(f"--abele-replay={folder}", "-p", "no:cacheprovider")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["*after pass 'swap-sub'*"])


def test_a_right_pass_passes_and_the_summary_says_what_was_exercised(pytester: pytest.Pytester):
    pytester.makepyfile("""
        def test_one(check_pass):
            check_pass("eliminate-dead", examples=100)

        def test_two(check_pipeline):
            check_pipeline("nn", examples=100)
    """)
    budget = ("--abele-examples=4", "--abele-seed=1")
    result = pytester.runpytest_subprocess(*budget)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["abele: 2 checks changed * of 8 programs in *"])
    result.stdout.no_fnmatch_line("*abele: programs*")
    result.stdout.no_fnmatch_line("*fired*")
    result = pytester.runpytest_subprocess(*budget, "-v")
    result.stdout.fnmatch_lines(
        [
            "*abele: programs*",
            "*::test_one: changed * of 4 programs of nn in *",
            "nn: * operations; *",
            "*abele: rules*",
        ]
    )


def test_a_crash_shows_the_frames_of_the_pass_first(pytester: pytest.Pytester):
    crash = MINE.replace("each.operands[0], each.operands[1] =", "raise KeyError(each.name)  #")
    pytester.makepyfile(crash)
    result = pytester.runpytest_subprocess("--abele-seed=1", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*raise KeyError(each.name)*", "*raised KeyError: 'nn.sub'*"])
    result.stdout.no_fnmatch_line("*tools/testing/search*")


def test_projects_without_checks_hear_and_load_nothing(pytester: pytest.Pytester):
    pytester.makepyfile("""
        import sys

        def test_nothing_is_loaded():
            assert not [name for name in sys.modules if name.split(".")[0] in ("xdsl", "numpy")]
    """)
    result = pytester.runpytest_subprocess("-p", "no:hypothesispytest", "-p", "no:xdist")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*abele: programs*")


def test_importing_abeles_tools_needs_no_hypothesis():
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import abele.tools.testing as t\n"
        "from abele.tools.testing import check_pass, Miscompiled\n"
        "print(check_pass('canonicalize', examples=2, seed=1).examples)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "2", done.stderr
