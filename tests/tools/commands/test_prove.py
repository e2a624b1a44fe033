"""abele prove on files of rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from abele.tools.cli import app
from abele.tools.proving import solver

RIGHT = "rule twice: nn.neg(nn.neg(x)) => x\n"
WRONG = "rule wrong: nn.relu(nn.neg(x)) => nn.relu(x) where is_float(x)\n"


def prove(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["prove", *words, "--seconds", "2"])
    return done.exit_code, done.output


def test_a_refuted_rule_ends_with_status_1_and_a_proved_one_with_0(tmp_path: Path):
    file = tmp_path / "my.rw"
    file.write_text(RIGHT + WRONG)
    assert prove(str(file), "--rule", "twice")[0] == 0
    status, text = prove(str(file))
    assert status == 1
    assert "2 rules: 1 all ranks, 1 refuted" in text
    assert "func.func @main" in text


def test_verdicts_are_data_and_are_kept_beside_the_rules(tmp_path: Path):
    file = tmp_path / "my.rw"
    file.write_text(RIGHT)
    status, text = prove(str(file), "--json", "--keep")
    (verdict,) = json.loads(text)
    assert (status, verdict["rule"], verdict["kind"]) == (0, "twice", "all ranks")
    assert verdict["grid"]["operators"] == ["nn.neg"]
    assert (tmp_path / "my.proofs.json").exists()


def test_a_rule_that_does_not_exist_is_named(tmp_path: Path):
    file = tmp_path / "my.rw"
    file.write_text(RIGHT)
    status, text = prove(str(file), "--rule", "thrice")
    assert status == 2
    assert "no rule thrice; there is twice" in text


def test_a_file_without_rules_is_refused(tmp_path: Path):
    file = tmp_path / "my.rw"
    file.write_text("// Nothing yet.\n")
    status, text = prove(str(file))
    assert status == 2
    assert "no rules to prove" in text


def test_without_the_solver_one_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def missing(name: str) -> None:
        raise ImportError(name)

    file = tmp_path / "my.rw"
    file.write_text(RIGHT)
    solver.z3.cache_clear()
    monkeypatch.setattr(solver, "import_module", missing)
    status, text = prove(str(file))
    monkeypatch.undo()
    assert status == 2
    assert "proofs need z3; install it with: pip install 'abele[prove]'" in text
