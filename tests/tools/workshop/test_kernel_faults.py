"""Faults of kernels can be planted, and each task has one."""

from pathlib import Path

import pytest

from abele.backends.host.kernel_sources import KERNELS
from abele.backends.host.tasks import NEEDS
from abele.ir.errors import InputError
from abele.tools.workshop import kernel_faults
from abele.tools.workshop.kernel_faults import FAULTS, Fault
from abele.tools.workshop.kernel_faults import kernel_faults as bench


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_one_place_of_a_kernel(name: str):
    fault = FAULTS[name]
    text = (KERNELS / fault.file).read_text()
    assert text.count(fault.old) == 1
    assert text.replace(fault.old, fault.new) != text


def test_every_task_has_a_fault():
    assert {fault.task for fault in FAULTS.values()} == {*NEEDS}
    assert len(FAULTS) >= 10


def test_a_fault_is_planted_in_a_copy(tmp_path: Path):
    fault = FAULTS["panel"]
    kernel_faults.planted(fault, tmp_path)
    path = tmp_path / "abele" / "backends" / "host" / "kernels" / fault.file
    assert fault.new in path.read_text()
    assert fault.old in (KERNELS / fault.file).read_text()


def test_a_fault_in_a_line_that_has_changed_is_one_message(tmp_path: Path):
    fault = Fault("copies", "another line", "copies.py", "no such line", "")
    with pytest.raises(InputError, match=r"copies.py: has changed; need once: no such line"):
        kernel_faults.planted(fault, tmp_path)


def test_a_fault_that_is_not_found_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(kernel_faults, "finding", lambda fault, form: "")
    with pytest.raises(InputError, match="1 planted faults are not found"):
        bench(forms="narrow", faults="tile")
    assert "NOTHING" in capsys.readouterr().out
