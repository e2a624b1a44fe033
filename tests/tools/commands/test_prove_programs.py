"""`abele prove --before A.mlir --after B.mlir`."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from abele.tools.cli import app
from abele.tools.proving.solver import z3

NEG = "nn.neg {0} : (tensor<2xf32>) -> tensor<2xf32>"
PROGRAM = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = {0}
  %1 = {1}
  func.return %1 : tensor<2xf32>
}}
"""
TWICE = PROGRAM.format(NEG.format("%x"), NEG.format("%0"))
SAME = (
    "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  func.return %x : tensor<2xf32>\n}\n"
)
OTHER = TWICE.replace("%1 = nn.neg", "%1 = nn.abs")


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["prove", *words])
    return result.exit_code, result.output


@pytest.fixture
def programs(tmp_path: Path) -> tuple[str, str, str]:
    """A program, one that computes the same, and another one."""
    paths = [tmp_path / name for name in ("a.mlir", "same.mlir", "other.mlir")]
    for path, text in zip(paths, (TWICE, SAME, OTHER), strict=True):
        path.write_text(text)
    first, second, third = map(str, paths)
    return first, second, third


def test_the_exit_code_says_whether_programs_differ(programs: tuple[str, str, str]):
    one, same, other = programs
    assert run("--before", one, "--after", same) == (
        0,
        "proved for all values: equal to the bit (2 elements)\n",
    )
    code, text = run("--before", one, "--after", other)
    assert code == 1
    assert text.startswith("different: out0: element [0] is ")
    assert "arg0 = [" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to prove: name a file of rules, or --before and --after"),
        (("--before", "a.mlir"), "give both, and no rules"),
        (("--before", "absent.mlir", "--after", "absent.mlir"), "absent.mlir: cannot be read"),
    ],
)
def test_a_mistake_in_the_command_is_one_message(words: tuple[str, ...], message: str):
    code, text = run(*words)
    assert code == 2
    assert message in text


def test_a_missing_solver_is_one_message(
    programs: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "z3", None)
    z3.cache_clear()
    try:
        code, text = run("--before", programs[0], "--after", programs[1])
    finally:
        z3.cache_clear()
    assert code == 2
    assert "proofs need z3; install it with: pip install 'abele[prove]'" in text
