"""A host with too little memory for a program's tiles says so."""

import resource
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError
from typer.testing import CliRunner

from abele.ir.support import host_memory
from abele.tools.cli import app

NEGATE = """
builtin.module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
}
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host whose files about its memory are absent, and the folder where they would be."""
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "cgroup" / "memory").mkdir(parents=True)
    monkeypatch.setattr(host_memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(host_memory, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(host_memory.os, "sysconf_names", {})
    monkeypatch.chdir(tmp_path)
    Path("net.mlir").write_text(NEGATE)
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(app, ["run", "net.mlir", *arguments])


def test_a_host_that_does_not_report_its_memory_is_trusted(host: Path):
    assert run("--target", "tiny").exit_code == 0


@pytest.mark.parametrize(
    "files",
    [
        {"proc/meminfo": "MemTotal: 9000000 kB\nMemAvailable:  102400 kB\n"},
        {"cgroup/memory.max": "314572800", "cgroup/memory.current": "209715200"},
        {
            "cgroup/memory/memory.limit_in_bytes": "314572800",
            "cgroup/memory/memory.usage_in_bytes": "209715200",
        },
    ],
    ids=lambda files: next(iter(files)),
)
def test_a_host_with_little_free_memory_says_how_much_is_needed(host: Path, files: dict[str, str]):
    for name, text in files.items():
        (host / name).write_text(text)
    result = run("--target", "mk2")
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: mk2: a run needs ")
    assert "for 1,472 tiles; 100 MiB are free: need fewer tiles (--target mk2:N)" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_program_file_is_to_be_compiled_for_fewer_tiles(host: Path):
    compiled = ["compile", "net.mlir", "-o", "net.abele", "--target", "mk2"]
    assert CliRunner().invoke(app, compiled).exit_code == 0
    (host / "proc/meminfo").write_text("MemAvailable: 102400 kB\n")
    result = CliRunner().invoke(app, ["run", "net.abele"])
    assert "need the model compiled for fewer tiles (--target mk2:N)" in result.stderr


def test_a_sound_model_that_memory_ends_for_is_not_called_damaged(
    host: Path, monkeypatch: pytest.MonkeyPatch
):
    class Full:
        @staticmethod
        def FromString(_: bytes):
            raise DecodeError("Error parsing message: Arena alloc failed")

    monkeypatch.setattr(onnx, "ModelProto", Full)
    Path("net.onnx").write_bytes(b"sound")
    result = CliRunner().invoke(app, ["run", "net.onnx"])
    assert result.exit_code == 2
    assert result.stderr == "error: this host has not enough memory for reading net.onnx\n"


def test_a_size_that_is_too_large_is_refused_with_its_bound(host: Path):
    result = run("--dim", "N=1000000000000")
    assert "--dim N=1000000000000: need a size below 10^9" in result.stderr


def test_without_a_limit_of_its_group_the_free_memory_of_the_host_counts(host: Path):
    (host / "cgroup/memory.max").write_text("max\n")
    (host / "cgroup/memory.current").write_text("1\n")
    (host / "proc/meminfo").write_text("MemAvailable: 90000000 kB\n")
    assert run("--target", "mk2:64").exit_code == 0


@pytest.mark.parametrize("target", ["mk2", "mk2:5888"], ids=["one chip", "four chips"])
def test_a_process_that_may_map_little_ends_with_a_message(tmp_path: Path, target: str):
    model = tmp_path / "net.mlir"
    model.write_text(NEGATE)
    command = "from abele.tools.cli import app; app()"
    limit = 1_400 << 20
    done = subprocess.run(
        [sys.executable, "-c", command, "run", str(model), "--target", target],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert f"error: {target}: a run needs" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_arena_that_cannot_be_mapped_is_refused_before_compiling(
    host: Path, monkeypatch: pytest.MonkeyPatch
):
    def compiled(*_: object, **__: object) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr("abele.tools.commands.run.compiled", compiled)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 30, 8 << 30))
    (host / "proc/self/status").write_text("VmSize: 1048576 kB\n")
    result = run("--target", "mk2:100000")
    assert result.exit_code == 2, result.output
    assert "for 100,000 tiles; 7,168 MiB are free" in result.stderr
