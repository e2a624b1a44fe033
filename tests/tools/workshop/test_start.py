import sys
from contextlib import nullcontext
from pathlib import Path

import onnx
import pytest
from kept_kernels import copy_kernels
from some_models import products

from abele.ir.errors import InputError
from abele.tools.bench.named import names_in
from abele.tools.importers.light_networks import light_names
from abele.tools.workshop import start
from abele.tools.workshop.start import COMMANDS, cold_and_warm, lines, measured


@pytest.mark.large
def test_a_warm_start_reads_what_a_cold_one_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = tmp_path / "cache"
    copy_kernels(cache)
    monkeypatch.setattr(start.tempfile, "TemporaryDirectory", lambda: nullcontext(str(cache)))
    monkeypatch.setattr(start, "WARM", 1)
    onnx.save(products(), tmp_path / "net.onnx")
    cold, warm = cold_and_warm(lines("net.onnx", "tiny")["to the run"], tmp_path)
    assert 0 < warm.cpu
    assert 0 < cold.cpu
    assert len(list(cache.rglob("*.abele"))) == 1


def test_ten_commands_are_measured_with_their_target():
    found = lines("net.onnx", "tiny:8")
    assert len(COMMANDS) == 10
    assert found["memory"][-4:] == ["memory", "net.onnx", "--target", "tiny:8"]
    assert found["--version"][-1] == "--version"


def test_a_command_that_fails_and_an_unknown_network_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="there is no 'resnet'"):
        names_in("--networks", "resnet50,resnet", light_names())
    with pytest.raises(InputError, match="ZeroDivisionError"):
        measured(["-c", "1 / 0"], tmp_path, tmp_path)
    assert sys.executable
