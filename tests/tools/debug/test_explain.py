from pathlib import Path

import onnx
import pytest
from some_models import relu
from training import training_step

from abele.ir.errors import InputError
from abele.tools.debug.explain import explain_rule
from abele.tools.driver.request import Request

RULES = "rule fuse: nn.relu(nn.add(x, y)) => nn.max(x, y)"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "my.rw"
    path.write_text(RULES)
    return path


def test_a_model_is_explained_by_its_nodes(rules: Path, tmp_path: Path):
    onnx.save(relu(), tmp_path / "relu.onnx")
    found = explain_rule("fuse", Request(tmp_path / "relu.onnx", load=[rules]))
    assert found.fits == 0
    assert "fuse (" in found.text
    assert "the operand is an argument, not a result of nn.add" in found.text


def test_a_piece_of_text_is_explained_by_its_lines(rules: Path, tmp_path: Path):
    path = tmp_path / "x.mlir"
    path.write_text(
        "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = nn.relu %a : (tensor<4xf32>) -> tensor<4xf32>\n"
        "  func.return %0 : tensor<4xf32>\n"
        "}\n"
    )
    assert explain_rule("fuse", Request(path, load=[rules])).attempts[0].place == f"{path}:2:3"


def test_a_program_may_go_through_passes_first(tmp_path: Path):
    path = tmp_path / "x.mlir"
    path.write_text(
        "func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
        "  %0 = nn.softmax %a axis 1 : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
        "  func.return %0 : tensor<4x4xf32>\n"
        "}\n"
    )
    given = tmp_path / "e.rw"
    given.write_text("rule e: nn.exp(nn.neg(x)) => nn.reciprocal(nn.exp(x))")
    assert not explain_rule("e", Request(path, load=[given])).attempts
    assert explain_rule("e", Request(path, load=[given], passes="decompose")).attempts


def test_abeles_own_rules_are_explained_too(tmp_path: Path):
    onnx.save(relu(), tmp_path / "relu.onnx")
    found = explain_rule("canonicalize.rw:relu_of_relu", Request(tmp_path / "relu.onnx"))
    assert "is an argument" in found.text


def test_bad_text_is_one_error(rules: Path, tmp_path: Path):
    path = tmp_path / "x.mlir"
    path.write_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { func.return }\n")
    with pytest.raises(InputError, match=r"^func.return at .*x.mlir:1:55: "):
        explain_rule("fuse", Request(path, load=[rules]))
    with pytest.raises(InputError, match=r"none.rw: cannot be read"):
        explain_rule("fuse", Request(path, load=[tmp_path / "none.rw"]))


def test_an_unknown_rule_is_answered_with_similar_names_or_with_the_pass_of_that_name(
    rules: Path, tmp_path: Path
):
    onnx.save(relu(), tmp_path / "relu.onnx")
    for name, message in {
        "fusee": r"no rule fusee; did you mean fuse",
        "fold-scales": r"fold-scales is a pass, not a rule; its rules: .*scale_of_conv",
        "allocate": r"allocate is a pass, not a rule; abele opt --help-pass allocate describes",
    }.items():
        with pytest.raises(InputError, match=message):
            explain_rule(name, Request(tmp_path / "relu.onnx", load=[rules]))


def test_a_rule_is_explained_in_the_program_that_recomputes(tmp_path: Path):
    path, given = tmp_path / "step.mlir", tmp_path / "e.rw"
    path.write_text(training_step(3, 4, 8))
    given.write_text("rule e: nn.tanh(nn.neg(x)) => nn.neg(nn.tanh(x))")
    for recompute, count in (("", 3), ("tanh2", 4), ("auto:1_000_000", 3)):
        request = Request(path, "tiny:8", load=[given], passes="nn", recompute=recompute)
        assert len(explain_rule("e", request).attempts) == count
