"""abele doctor says what a host has, and exits with 1 if something is wrong."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from abele.backends.host import load
from abele.backends.host.proofs import Proof
from abele.backends.host.switch import choice
from abele.backends.host.tasks import NEEDS
from abele.ir.support import private_folder
from abele.tools.cli import app
from abele.tools.debug import health as room


def doctor(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ("doctor", *arguments))
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> dict[str, Proof]:
    """The proofs that are found, by task."""
    found = {task: Proof(task, 100, 0.25) for task in NEEDS}
    pytest.importorskip("numba")
    monkeypatch.setattr(room, "proof_of", lambda task, again: found[task])
    return found


def test_a_host_whose_kernels_have_passed_is_fine(proofs: dict[str, Proof], tmp_path: Path):
    output = doctor("--json", str(tmp_path / "health.json"))
    kept = json.loads((tmp_path / "health.json").read_text())
    for part in (choice().name, choice().reason, *NEEDS, kept["host"]["system"]):
        assert part in output
    for name in ("numpy", "numba", "llvmlite", "xdsl"):
        assert kept["versions"][name] in output
    assert f"{choice().name} kernels passed {100 * len(NEEDS)} cases" in output
    assert kept["fine"] is True
    assert kept["proofs"][0] == {"task": "sharing", "cases": 100, "seconds": 0.25, "problem": ""}


def test_kernels_that_have_failed_are_wrong(proofs: dict[str, Proof], tmp_path: Path):
    proofs["chains"] = Proof("chains", problem="rows: 3 of 4 elements differ")
    output = doctor("--json", str(tmp_path / "health.json"), code=1)
    assert "FAILED: rows: 3 of 4 elements differ" in output
    assert "wrong: kernels of chains: rows: 3 of 4 elements differ" in output
    assert json.loads((tmp_path / "health.json").read_text())["fine"] is False


def test_kernels_that_cannot_be_compiled_are_wrong(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("numba")

    def proof_of(task: str, again: bool) -> Proof:
        raise load.NoKernels(task, "cannot be compiled: LLVM ERROR")

    monkeypatch.setattr(room, "proof_of", proof_of)
    assert "kernels of sharing cannot be compiled: LLVM ERROR" in doctor(code=1)


def test_again_proves_what_has_been_proved(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("numba")
    asked: list[bool] = []

    def proof_of(task: str, again: bool) -> Proof:
        asked.append(again)
        return Proof(task, 1)

    monkeypatch.setattr(room, "proof_of", proof_of)
    doctor()
    doctor("--again")
    assert asked == [False] * len(NEEDS) + [True] * len(NEEDS)


def test_without_kernels_numpy_computes_everything(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ABELE_KERNELS", "plain")
    output = doctor()
    assert "plain NumPy computes everything (ABELE_KERNELS says so)" in output
    assert "self-test" not in output


def test_a_form_that_does_not_exist_is_bad_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ABELE_KERNELS", "broad")
    assert "no form of kernels is called 'broad'" in doctor(code=2)


def test_a_folder_that_others_can_write_to_is_wrong(
    proofs: dict[str, Proof], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache" / "programs").mkdir(parents=True)
    assert "fine" in doctor()
    os.chmod(tmp_path / "cache" / "programs", 0o777)
    private_folder.intrusion.cache_clear()
    assert "others can write to" in doctor(code=1)


def test_a_folder_that_is_a_file_is_wrong(
    proofs: dict[str, Proof], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "programs").touch()
    assert "Not a directory" in doctor(code=1)
