import subprocess
import sys
from pathlib import Path

import pytest
from some_extensions import SOFT, abele

from abele.ir import rules
from abele.ir.errors import InputError
from abele.tools.extensions import load_extensions

NEVER = "rule never: nn.relu(x) => nn.abs(x) where rank(x) < 0\n"


def test_rules_are_a_pass_named_after_their_file(soft: Path, relu: Path, tmp_path: Path):
    (tmp_path / "flat_only.rw").write_text(
        "rule softer: nn.relu(x) => mine.softsign(x) where flat(x)\n"
    )
    (tmp_path / "guards.py").write_text(
        "from abele.ir.rules import guard\nfrom xdsl.ir import SSAValue\n"
        "@guard\ndef flat(value: SSAValue) -> bool:\n    return len(value.type.get_shape()) == 1\n"
    )
    load = ("--load", "flat_only.rw", "--load", "guards.py", "--load", soft)
    result = abele("opt", relu, *load, "-p", "flat-only", "--statistics")
    assert result.exit_code == 0, result.stderr
    assert "mine.softsign" in result.stdout
    assert "1 rewrite by softer (flat_only.rw:1)" in result.stderr


@pytest.mark.parametrize(
    ("name", "like"),
    [("my rules", "my-rules"), ("Rules", "rules"), ("2x", "x"), ("_", "my-rules")],
)
def test_a_file_of_rules_that_cannot_name_a_pass_is_to_be_renamed(
    tmp_path: Path, name: str, like: str
):
    path = tmp_path / f"{name}.rw"
    path.write_text("rule r: nn.relu(x) => nn.abs(x)\n")
    with pytest.raises(InputError) as refused:
        load_extensions([path])
    message = str(refused.value)
    assert message.startswith(f"{path}: its rules become a pass named after it")
    assert message.endswith(f"rename it to lower-case letters, digits and dashes, such as '{like}'")


def test_warnings_about_rules_are_shown_once(relu: Path, tmp_path: Path):
    (tmp_path / "odd.rw").write_text(NEVER)
    result = abele("opt", relu, "--load", "odd.rw", "--load", "./odd.rw", "-p", "odd")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == (
        "odd.rw:1:6: warning: rule never: no sample program matches it; its types are "
        f"checked at each rewrite\n{NEVER}     ^~~~~\n"
    )


def test_checks_of_rules_are_loaded_with_the_first_rules_only():
    loaded = "import sys, abele.tools.driver.compile; print('abele.ir.rules.lint' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_rules_are_checked_again_only_when_they_are_others(tmp_path: Path):
    path, guards = tmp_path / "one.rw", tmp_path / "guards.py"
    source = (
        "from abele.ir.rules import guard\nfrom xdsl.ir import SSAValue\n"
        "@guard\ndef fine(value: SSAValue) -> bool:\n    return {}\n"
    )

    def loaded() -> tuple[object, tuple[str, ...]]:
        found = load_extensions([path, guards])
        return found.passes["one"], found.warnings

    path.write_text(NEVER)
    guards.write_text(source.format("True"))
    first = loaded()
    assert loaded() == first
    assert len(first[1]) == 1
    path.write_text("rule off: nn.relu(x) => nn.max(x, x) where fine(x)")
    second = loaded()
    assert second[0] is not first[0]
    assert second[1] == ()
    guards.write_text(source.format("False"))
    third = loaded()
    assert third[0] is not second[0]
    assert "no sample program matches it" in third[1][0]


def test_rules_in_python_are_a_pass_named_after_their_file(tmp_path: Path, relu: Path):
    (tmp_path / "soft_rules.py").write_text(f"""{SOFT}
from abele.ir.rules import rewrite

@rewrite("nn.relu(x)")
def softer(x):
    return SoftsignOp(x)
""")
    load = ("--load", "soft_rules.py", "--load", "./soft_rules.py")
    result = abele("opt", relu, *load, "-p", "soft-rules", "--statistics")
    assert result.exit_code == 0, result.stderr
    assert "mine.softsign" in result.stdout
    assert "1 rewrite by softer (soft_rules.py:" in result.stderr
    (tmp_path / "bad_rules.py").write_text(
        "from abele.ir.rules import rewrite\n\n@rewrite('nn.rule(x)')\ndef f(x):\n    return x\n"
    )
    bad = abele("opt", relu, "--load", "bad_rules.py")
    assert bad.exit_code == 2
    assert bad.stderr.startswith("error: bad_rules.py:3:")


def test_users_rules_may_call_abeles_own_guards(tmp_path: Path, relu: Path):
    (tmp_path / "floats.rw").write_text("rule e: nn.relu(x) => nn.exp(x) where is_float(x)\n")
    result = abele("opt", relu, "--load", "floats.rw", "-p", "floats")
    assert result.exit_code == 0, result.stderr
    assert "nn.exp" in result.stdout


TURNED = """
func.func @main(%x: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %0 = nn.transpose %x [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  func.return %0 : tensor<6x4xf32>
}
"""


def test_an_operation_left_on_its_level_is_refused(tmp_path: Path):
    own = Path(rules.__file__).parents[2] / "passes" / "rules" / "tile_to_exchange.rw"
    rule = own.read_text().replace('"address" = a', '"address" = 0').replace("= a}", "= 0}")
    (tmp_path / "first.rw").write_text(rule)
    spec = "nn,partition,tile,schedule-supersteps,allocate,group-supersteps,first"
    turned = Path("turned.mlir")
    turned.write_text(TURNED)
    result = abele("run", turned, "--target", "tiny:4", "--load", "first.rw", "-p", spec)
    assert result.exit_code == 2
    assert "tile.variable" in result.stderr
