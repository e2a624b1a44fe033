"""Only proved rules make equivalent models."""

from pathlib import Path

import pytest

from abele.ir.support.errors import InputError
from abele.tools.proving import equivalent_rules
from abele.tools.proving.equivalent_rules import problem_of, rules_for_equivalents
from abele.tools.proving.kept import file_beside, keep, kept_in
from abele.tools.proving.verdicts import Verdict
from abele.tools.testing.onnx_tools.equivalents import OWN_RULES, own_rules
from abele.tools.testing.rules import rules_of

RIGHT = "rule less: onnx.Less(a: f32[n], b: f32[n]) => onnx.Greater(b, a)\n"


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "my.rw"
    path.write_text(text)
    return str(path)


def test_abeles_own_rules_for_equivalents_are_proved_as_they_are():
    rules = own_rules()
    found = kept_in(file_beside(OWN_RULES), rules.bound, rules.vocabulary)
    assert found.keys() == set(rules.names)
    assert not [name for name, each in found.items() if each.stale], (
        f"abele prove {OWN_RULES} --keep"
    )
    assert not [name for name, each in found.items() if problem_of(each.verdict)]


def test_a_rule_that_is_proved_is_taken(tmp_path: Path):
    assert rules_for_equivalents([written(tmp_path, RIGHT)]).names == ("less",)


def test_a_kept_verdict_is_proof_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path, RIGHT)
    rules, _ = rules_of(path)
    known = Verdict("less", "listed shapes", "equal to the bit")
    keep(file_beside(Path(path)), [known], rules.bound, rules.vocabulary)
    monkeypatch.setattr(equivalent_rules, "prove", None)
    assert rules_for_equivalents([path]).names == ("less",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rule wrong: onnx.Abs(x: f32[_]) => onnx.Relu(x)", "rule wrong is not proved: refuted"),
        ("rule nn: nn.neg(nn.neg(x)) => x", "rule nn is about nn.neg; equivalents are models"),
        (
            "rule zero: onnx.Abs(x: f32[_]) => onnx.Max(x, onnx.Neg(x))",
            "does not keep all values: NaN and infinities are the same, signs of zeros may differ",
        ),
    ],
)
def test_other_rules_are_refused_with_one_message(tmp_path: Path, text: str, message: str):
    with pytest.raises(InputError, match=message):
        rules_for_equivalents([written(tmp_path, text)])


def test_a_file_without_rules_is_refused():
    with pytest.raises(InputError, match=r"guards.py: no rules; --equivalents needs a .rw file"):
        rules_for_equivalents(["guards.py"])
