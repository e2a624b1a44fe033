from pathlib import Path

import pytest
from some_extensions import BODY, HEAD, SOFT

from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.driver.request import Request
from abele.tools.extensions import load_extensions
from abele.tools.views.planning.plan import plan_model


def test_two_files_with_one_name_are_both_named(soft: Path, tmp_path: Path):
    (tmp_path / "other.py").write_text(SOFT)
    with pytest.raises(InputError, match=r"other.py: scalar function 'softsign' .* by .*soft.py"):
        load_extensions([soft, tmp_path / "other.py"])


def test_two_files_with_one_pass_are_both_named(tmp_path: Path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"{HEAD}    name = 'mine'\n{BODY}")
    with pytest.raises(InputError, match=r"^b.py: pass 'mine' is already defined by a.py"):
        load_extensions(["a.py", "b.py"])


def test_a_pipeline_may_name_passes_of_xdsl_but_they_are_not_among_all_passes():
    extensions = load_extensions()
    names = [each.name for each in extensions.pipeline("cse,xdsl-cse,abele-decompose,tile", "")]
    assert names == ["cse", "xdsl-cse", "decompose", "convert-partition-to-tile"]
    assert "cse" not in extensions.passes
    with pytest.raises(InputError, match="no pass 'csee'; did you mean cse"):
        extensions.pipeline("csee", "")


@pytest.mark.parametrize("spec", ["subtract", "nn,subtract,tile"])
def test_a_rule_in_the_place_of_a_pass_gets_the_name_of_the_pass_that_runs_it(
    spec: str, tmp_path: Path
):
    path = tmp_path / "my_rules.rw"
    path.write_text("rule subtract: nn.add(x, nn.neg(y)) => nn.sub(x, y)\n")
    extensions = load_extensions([path])
    says = r"^no pass 'subtract', but a rule; run it with '(my-rules\{only=subtract\})'$"
    with pytest.raises(InputError, match=says) as raised:
        extensions.pipeline(spec, "")
    written = str(raised.value).split("'")[3]
    assert [each.name for each in extensions.pipeline(written, "")] == ["my-rules"]


REPEATED = """
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = nn.exp %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = nn.exp %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = nn.sub %0, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %2 : tensor<4x6xf32>
}
"""


@pytest.mark.parametrize("name", ["cse", "xdsl-cse"])
def test_passes_of_xdsl_run_in_every_pipeline(name: str, tmp_path: Path):
    path = tmp_path / "repeated.mlir"
    path.write_text(REPEATED)
    passes = f"{name},nn,partition,tile,exchange"
    assert name in compile_model(path, "tiny", passes=passes).stages.passes
    assert bisect(Request(path, "tiny", passes=passes)).passed
    planned = plan_model(Request(path, "tiny", passes=name))
    assert [each.op for each in planned.plan.operators] == ["nn.exp", "nn.sub"]
