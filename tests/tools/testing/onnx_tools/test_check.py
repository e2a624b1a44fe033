"""Planted mistakes are found, told apart, reduced, and shown by scripts that need no abele."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import onnx
import planted_transforms as planted
import pytest

from abele.ir.errors import InputError
from abele.tools.testing import (
    ToolFailed,
    Untested,
    check_onnx_runner,
    check_onnx_transform,
    check_tool,
)
from abele.tools.testing.onnx_tools.check import replayed
from abele.tools.testing.onnx_tools.known import tool_of
from abele.tools.testing.onnx_tools.worker import Limits

FEW = ["Sub", "Neg", "Relu", "Add", "Mul"]
"""Operators of small models, which abele and onnx evaluate fast."""

OPTIONS = {"seed": 0, "examples": 60, "operators": FEW, "reduce_seconds": 2}


def failure_of(function, folder: Path, check=check_onnx_transform, **options) -> ToolFailed:
    with pytest.raises(ToolFailed) as caught:
        check(function, **{**OPTIONS, "folder": folder / "found", **options})
    return caught.value


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (planted.drop_relu, "value"),
        (planted.swap_operands_of_sub, "value"),
        (planted.drop_a_node, "invalid"),
        (planted.crash_on_neg, "crash"),
        (planted.refuse_neg, "refused"),
        (planted.declare_double, "type"),
        (planted.return_text, "refused"),
        (planted.import_a_new_opset, "invalid"),
    ],
)
def test_a_planted_mistake_of_a_transform_is_found_and_told_apart(function, kind, tmp_path: Path):
    failure = failure_of(function, tmp_path)
    assert failure.kind == kind
    model = onnx.load(failure.folder / "model.onnx")
    assert len(model.graph.node) <= 2


def test_a_hang_ends_after_its_processor_time(tmp_path: Path):
    limits = Limits(seconds=0.3)
    failure = failure_of(planted.hang_on_neg, tmp_path, limits=limits, reduce_seconds=0)
    assert failure.kind == "hang"


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (planted.print_much, "printed"),
        (planted.take_memory, "memory"),
        (planted.write_elsewhere, "elsewhere"),
    ],
)
def test_a_tool_is_held_to_its_limits(function, kind, tmp_path: Path):
    limits = Limits(seconds=10, memory=1 << 29, printed=1 << 20)
    assert failure_of(function, tmp_path, limits=limits, reduce_seconds=0).kind == kind
    assert not Path("/var/tmp/abele_planted_file").exists()


def test_a_runner_that_gives_another_type_is_found(tmp_path: Path):
    failure = failure_of(planted.run_in_float16, tmp_path, check_onnx_runner)
    assert failure.kind == "type", str(failure)


def test_right_functions_pass():
    report = check_onnx_transform(planted.drop_identities, **{**OPTIONS, "expect_changes": False})
    assert report.examples > 40
    assert check_onnx_runner(planted.run_rightly, **{**OPTIONS, "examples": 20}).examples > 10


def test_a_transform_that_changes_nothing_is_untested(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("abele.tools.testing.onnx_tools.check.UNCHANGED", 10)
    with pytest.raises(Untested, match="changed none of"):
        check_onnx_transform(planted.keep, **{**OPTIONS, "examples": 15, "operators": ["Neg"]})


# The folder of a finding


@pytest.fixture(scope="module")
def finding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a wrong value."""
    place = tmp_path_factory.mktemp("finding")
    return failure_of(planted.swap_operands_of_sub, place).folder


def run_without_abele(folder: Path) -> subprocess.CompletedProcess[str]:
    """The finding's script in a Python that cannot import abele."""
    blocked = "import sys; sys.modules['abele'] = None; sys.argv = sys.argv[1:]; import runpy"
    script = str(folder / "reproduce.py")
    code = f"{blocked}; runpy.run_path({script!r}, run_name='__main__')"
    words = [sys.executable, "-c", code, script]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_a_script_shows_a_finding_without_abele(finding: Path):
    done = run_without_abele(finding)
    assert done.returncode == 1, done.stderr
    assert "shown" in done.stdout


def test_a_script_says_when_nothing_is_wrong_any_more(finding: Path, tmp_path: Path):
    script = (finding / "reproduce.py").read_text()
    for each in finding.iterdir():
        if each.is_dir():
            (tmp_path / each.name).symlink_to(each)
        else:
            (tmp_path / each.name).write_bytes(each.read_bytes())
    mended = script.replace("mine = own.swap_operands_of_sub", "mine = own.keep")
    assert mended != script
    (tmp_path / "reproduce.py").write_text(mended)
    done = run_without_abele(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not shown" in done.stdout


def test_a_finding_records_versions_and_data(finding: Path):
    about = json.loads((finding / "finding.json").read_text())
    assert about["kind"] == "value"
    assert about["with"].keys() >= {"python", "numpy", "onnx"}
    assert (finding / "test_data_set_0" / "output_0.pb").exists()
    assert (finding / "after.onnx").exists()


def test_the_message_shows_the_models_before_and_after(tmp_path: Path):
    text = str(failure_of(planted.drop_relu, tmp_path))
    assert "The transformed model:" in text
    assert "Identity" in text
    assert "reproduce.py" in text


# Functions and commands by name


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working folder with the planted functions in a module `mine`."""
    source = Path(planted.__file__).read_text()
    (tmp_path / "mine.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_function_is_tested_by_its_name_and_its_finding_replayed(here: Path):
    with pytest.raises(ToolFailed) as caught:
        check_tool("mine:drop_relu", **OPTIONS, folder=here / "found")
    assert "wrong value" in replayed(caught.value.folder)
    (here / "mine.py").write_text("def drop_relu(model):\n    return model\n")
    assert replayed(caught.value.folder) == ""


def test_a_function_is_found_though_another_module_of_its_name_is_loaded(
    here: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "mine", ModuleType("mine"))
    assert tool_of("mine:drop_relu").option == "mine:drop_relu"


def test_a_replay_names_both_versions(here: Path):
    with pytest.raises(ToolFailed) as caught:
        check_tool("mine:drop_relu", **OPTIONS, folder=here / "found")
    file = caught.value.folder / "finding.json"
    file.write_text(file.read_text().replace('"version": ""', '"version": "0.1"'))
    assert "found with version 0.1; this is version " in replayed(caught.value.folder)


def test_a_command_is_tested(here: Path):
    (here / "tool.py").write_text(
        "import sys, onnx, mine\nonnx.save(mine.drop_relu(onnx.load(sys.argv[1])), sys.argv[2])\n"
    )
    with pytest.raises(ToolFailed) as caught:
        options = {**OPTIONS, "operators": ["Relu"], "reduce_seconds": 2}
        command = f"{sys.executable} tool.py {{in}} {{out}}"
        check_tool(command, **options, folder=here / "found")
    assert caught.value.kind == "value"


def test_a_command_that_crashes_is_a_crash(here: Path):
    (here / "tool.py").write_text("import os\nos.abort()\n")
    with pytest.raises(ToolFailed) as caught:
        check_tool(
            f"{sys.executable} tool.py {{in}} {{out}}",
            **{**OPTIONS, "reduce_seconds": 0},
            folder=here / "found",
        )
    assert caught.value.kind == "crash"


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("true", "malformed", "ended with status 0 and wrote no out.onnx"),
        ("echo text > $2", "malformed", "wrote out.onnx, which is not of ONNX"),
        ("echo no such operator; exit 3", "refused", "status 3; it printed: no such operator"),
        ("echo MemoryError; exit 1", "memory", "status 1; it printed: MemoryError"),
    ],
)
def test_what_a_command_does_wrong_is_told(script: str, kind: str, message: str, here: Path):
    (here / "tool.sh").write_text(script)
    with pytest.raises(ToolFailed, match=message) as caught:
        options = {**OPTIONS, "reduce_seconds": 0, "folder": here / "found"}
        check_tool("sh tool.sh {in} {out}", **options)
    assert caught.value.kind == kind


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: it looks for processes in /proc")
def test_no_process_of_a_tool_is_left_running(tmp_path: Path):
    failure = failure_of(planted.leave_a_process, tmp_path, reduce_seconds=0)
    found = re.search(r"process (\d+)", str(failure))
    assert found is not None
    status = Path(f"/proc/{found[1]}/stat")
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "no such tool; need one of onnxruntime"),
        ("no.such:thing", "there is no module no.such"),
        ("no-such-command {in} {out}", "there is no command"),
        ("cat {in}", "need {out}"),
        ("onnxruntime:all:x:y", "neither an option nor a part"),
        ("tvm", "its package is not installed: pip install apache-tvm"),
    ],
)
def test_a_bad_name_gets_one_message(text: str, message: str):
    if text == "tvm":
        pytest.importorskip("onnxruntime")
        if tool_is_there("tvm"):
            pytest.skip("tvm is installed")
    with pytest.raises(InputError) as caught:
        check_tool(text, examples=1, seed=0, operators=FEW)
    assert message in str(caught.value)


def tool_is_there(name: str) -> bool:
    try:
        tool_of(name)
    except InputError:
        return False
    return True


def test_the_tool_of_a_local_function_is_written_into_the_script(tmp_path: Path):
    def mine(model):
        for node in model.graph.node:
            node.op_type = "Neg" if node.op_type == "Relu" else node.op_type
        return model

    failure = failure_of(mine, tmp_path)
    assert "def mine(model):" in (failure.folder / "reproduce.py").read_text()
    assert run_without_abele(failure.folder).returncode == 1


def test_a_process_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    check_onnx_transform(
        planted.keep, **{**OPTIONS, "examples": 3, "expect_changes": False, "folder": tmp_path}
    )
    assert os.listdir(tmp_path) == []
