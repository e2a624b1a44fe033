from pathlib import Path

import onnx
import pytest
from some_models import relu

from abele.ir.errors import InputError
from abele.ir.rules import Vocabulary, parse_rule_set
from abele.tools.explain import explain_rule
from abele.tools.program import new_context

RULES = "rule fuse: nn.relu(nn.add(x, y)) => nn.max(x, y)"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "my.rw"
    path.write_text(RULES)
    return path


def test_a_model_is_explained_by_its_nodes(rules: Path, tmp_path: Path):
    onnx.save(relu(), tmp_path / "relu.onnx")
    found = explain_rule(rules, "fuse", tmp_path / "relu.onnx")
    assert found.fits == 0
    assert "fuse (" in found.text
    assert "the operand is an argument, and no nn.add makes it" in found.text


def test_a_piece_of_text_is_explained_by_its_lines(rules: Path, tmp_path: Path):
    path = tmp_path / "x.mlir"
    path.write_text(
        "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = nn.relu %a : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  func.return %0 : tensor<4xf32>\n"
        "}\n"
    )
    assert explain_rule(rules, "fuse", path).attempts[0].place == f"{path}:2:3"


def test_a_program_may_go_through_passes_first(tmp_path: Path):
    path = tmp_path / "x.mlir"
    path.write_text(
        "func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
        "  %0 = nn.softmax %a axis 1 : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
        "  func.return %0 : tensor<4x4xf32>\n"
        "}\n"
    )
    given = parse_rule_set(
        "rule e: nn.exp(nn.neg(x)) => nn.reciprocal(nn.exp(x))", Vocabulary(new_context())
    )
    assert not explain_rule(given, "e", path).attempts
    assert explain_rule([given], "e", path, after="decompose").attempts


def test_bad_text_is_one_error(rules: Path, tmp_path: Path):
    path = tmp_path / "x.mlir"
    path.write_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { func.return }\n")
    with pytest.raises(InputError, match=r"^func.return at .*x.mlir:1:55: "):
        explain_rule(rules, "fuse", path)
    with pytest.raises(InputError, match=r"none.rw: cannot be read"):
        explain_rule(tmp_path / "none.rw", "fuse", path)
