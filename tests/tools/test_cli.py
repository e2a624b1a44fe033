import gc
import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
import pytest
from kept_kernels import copy_kernels
from some_models import SMALL, model, node, random, relu
from typer.testing import CliRunner, Result
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.rewriter import Rewriter

from abele.backends.executable import save
from abele.dialects.exchange import VariableOp
from abele.dialects.steps import Input, Output
from abele.ir.support.whole_folder import MANIFEST
from abele.ir.text import write_module
from abele.tools import Session, cli, compile_model
from abele.tools.cli import COMMANDS, app, command_app

ROOT = Path(__file__).parent.parent.parent
BLOBS = ROOT / "examples" / "blobs"

NEGATE = """
builtin.module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {arg_names = ["x"], \
result_names = ["y"]} {
    %0 = nn.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
}
"""


def abele(*arguments: str | Path) -> Result:
    """Run the command; anything but an exit is a bug, and is raised."""
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def opt(*arguments: str | Path, text: str | None = None) -> Result:
    result = CliRunner().invoke(command_app("opt"), [str(each) for each in arguments], input=text)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, where commands leave reproducers: not that of the checkout."""
    folder = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.onnx"
    onnx.save(relu(), path)
    return path


@pytest.fixture
def negate(tmp_path: Path) -> Path:
    path = tmp_path / "negate.mlir"
    path.write_text(NEGATE)
    return path


def refused(folder: Path, *arguments: str | Path, says: str = "") -> str:
    """The one message of a command that must exit with 2 and leave the folder as it was."""
    before = sorted(folder.rglob("*"))
    result = abele(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("error: ") or "Usage" in result.stderr
    assert result.stderr.count("error:") == 1 or "Usage" in result.stderr
    assert says in result.stderr
    assert sorted(folder.rglob("*")) == before
    return result.stderr


# What works


def test_run_prints_a_table(small: Path):
    result = abele("run", small, "--target", "tiny", "--check")
    assert result.exit_code == 0, result.stderr
    for word in ("vertices", "edges", "supersteps", "cycles", "fullest tile", "largest error"):
        assert word in result.stdout
    assert result.stderr == ""


def test_run_reads_inputs_and_writes_outputs_and_profile(small: Path, tmp_path: Path):
    x = random((2, 3))
    np.savez(tmp_path / "x.npz", x=x)
    out = tmp_path / "new folder"
    out.mkdir()
    files = (
        "--inputs",
        tmp_path / "x.npz",
        "--outputs",
        out / "y.npz",
        "--profile",
        out / "p.json",
    )
    result = abele("run", small, "--target", "tiny", *files)
    assert result.exit_code == 0, result.stderr
    with np.load(out / "y.npz") as stored:
        assert stored.files == ["y"]
        np.testing.assert_array_equal(stored["y"], np.maximum(x, 0))
    profile = json.loads((out / "p.json").read_text())
    assert profile["vertices"] > 0
    exchanged = [each["times"] * each["exchange_bytes"] for each in profile["operations"]]
    assert sum(exchanged) == profile["exchange_bytes"]
    assert {each["node"] for each in profile["operations"]} >= {"the_y"}
    assert {each.name for each in out.iterdir()} == {"y.npz", "p.json"}


@pytest.mark.parametrize("level", ["nn", "partition", "tile", "exchange"])
def test_run_at_each_level(small: Path, tmp_path: Path, level: str):
    out = tmp_path / f"{level}.npz"
    result = abele("run", small, "--target", "tiny", "--at", level, "--outputs", out, "--check")
    assert result.exit_code == 0, result.stderr
    assert out.exists()


def test_missing_inputs_are_seeded_and_reported(tmp_path: Path):
    path = tmp_path / "sum.onnx"
    proto = model([node("Add", "a b", "y")], {"a": [3], "b": [3]}, ["y"])
    onnx.save(proto, path)
    np.savez(tmp_path / "a.npz", a=np.zeros(3, np.float32))
    result = abele(
        "run",
        path,
        "--target",
        "tiny",
        "--inputs",
        tmp_path / "a.npz",
        "--outputs",
        tmp_path / "y.npz",
    )
    assert result.exit_code == 0, result.stderr
    assert "missing inputs get seeded values: 'b' (float32[3])" in result.stderr
    with np.load(tmp_path / "y.npz") as stored:
        assert np.abs(stored["y"]).min() > 0


def test_compile_then_run(small: Path, tmp_path: Path):
    program = tmp_path / "small.abele"
    result = abele("compile", small, "-o", program, "--target", "tiny:5")
    assert result.exit_code == 0, result.stderr
    result = abele("run", program, "--strict", "--check")
    assert result.exit_code == 0, result.stderr
    assert "tiny:5" in result.stdout


def test_dims_are_bound(tmp_path: Path):
    path = tmp_path / "batch.onnx"
    onnx.save(model([node("Relu", "x", "y")], {"x": ["N", 3]}, ["y"]), path)
    result = abele("run", path, "--target", "tiny", "--dim", "N=2")
    assert result.exit_code == 0, result.stderr


def test_a_dimension_with_two_sizes(small: Path, tmp_path: Path):
    dims = ("--dim", "N=2", "--dim", "N=3")
    refused(tmp_path, "run", small, *dims, says="--dim N=3: N is 2 already")


def test_a_failed_check_exits_with_1(small: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("abele.tools.debug.run_check.tolerance", lambda module: -1.0)
    result = abele("run", small, "--target", "tiny", "--check")
    assert result.exit_code == 1
    assert "check failed: output 'y'" in result.stderr


def test_a_program_that_does_not_fit_exits_with_3(tmp_path: Path):
    path = tmp_path / "large.onnx"
    proto = model([node("Gemm", "x w", "y")], {"x": [1, 700]}, ["y"], {"w": random((700, 700))})
    onnx.save(proto, path)
    result = abele("run", path, "--target", "tiny", "--outputs", tmp_path / "y.npz")
    assert result.exit_code == 3
    lines = result.stderr.splitlines()
    assert lines[0].startswith("error: does not fit: tile 0: the program needs ")
    assert [line.split()[0] for line in lines[1:]][-1] == "`abele"
    assert f"abele memory {path} --advise" in result.stderr
    assert all(len(line) <= 100 or " " not in line.strip() for line in lines[:-1])
    assert not (tmp_path / "y.npz").exists()


def test_a_tensor_larger_than_the_machine_is_refused_at_once(tmp_path: Path):
    path = tmp_path / "huge.onnx"
    onnx.save(model([node("Relu", "x", "y")], {"x": [10**12]}, ["y"]), path)
    result = abele("run", path)
    assert result.exit_code == 3
    assert "float32[1000000000000]" in result.stderr


def test_an_argument_larger_than_the_machine_is_refused_at_once(tmp_path: Path):
    path = tmp_path / "huge.mlir"
    path.write_text(NEGATE.replace("4xf32", "100000000xf32"))
    result = abele("run", path, "--target", "mk1")
    assert result.exit_code == 3
    assert "float32[100000000] of func.func" in result.stderr


def test_a_program_that_makes_the_machine_fail_is_refused(
    negate: Path, monkeypatch: pytest.MonkeyPatch
):
    def stumble(*_: object, **__: object) -> None:
        raise ValueError("cannot reshape")

    monkeypatch.setattr("abele.tools.commands.run.compiled", stumble)
    assert "cannot reshape" in refused(negate.parent, "run", negate)
    monkeypatch.setenv("ABELE_TRACEBACK", "1")
    with pytest.raises(ValueError, match="cannot reshape"):
        abele("run", negate)


def test_a_check_tells_the_infinities_of_a_model_and_of_its_inputs_from_faults(tmp_path: Path):
    path = tmp_path / "exp.onnx"
    onnx.save(model([node("Exp", "x", "y")], {"x": [3]}, ["y"]), path)
    for x, made in (([0, 1, 1000], True), ([0, 1, np.inf], False)):
        np.savez(tmp_path / "x.npz", x=np.array(x, np.float32))
        files = ("--inputs", tmp_path / "x.npz")
        result = abele("run", path, "--target", "tiny", "--check", *files)
        assert result.exit_code == 0, result.output
        assert "1 of 3 elements are not finite" in result.output
        assert ("your model" in result.output) == made


def test_demo_refuses_an_unknown_target_before_all_work(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("abele.tools.commands.demo_network.demo_model", None)
    result = abele("demo", "--target", "nonsense")
    assert result.exit_code == 2


# Bad models


def test_an_empty_model(tmp_path: Path):
    (tmp_path / "empty.onnx").write_bytes(b"")
    refused(tmp_path, "run", tmp_path / "empty.onnx", says="empty.onnx: empty")


def test_a_missing_file(tmp_path: Path):
    refused(tmp_path, "run", tmp_path / "none.onnx", says="none.onnx: cannot be read")
    refused(tmp_path, "run", tmp_path / "none.mlir", says="none.mlir: cannot be read")
    refused(tmp_path, "run", tmp_path / "none.abele", says="none.abele: cannot be read")


def test_an_unknown_kind_of_file(tmp_path: Path):
    refused(tmp_path, "run", tmp_path / "model.txt", says="need .onnx, .pt2, ")


@pytest.mark.parametrize("suffix", [".onnx", ".mlir", ".abele"])
@pytest.mark.parametrize("seed", range(4))
def test_random_bytes(tmp_path: Path, suffix: str, seed: int):
    path = tmp_path / f"random{suffix}"
    path.write_bytes(np.random.default_rng(seed).bytes(seed * 400))
    stderr = refused(tmp_path, "run", path, "--outputs", tmp_path / "y.npz")
    assert path.name in stderr


def cuts(size: int) -> list[int]:
    return [0, 1, size // 7, size // 3, size // 2, size * 3 // 4, size - 9, size - 1]


@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("suffix", [".onnx", ".mlir", ".abele"])
def test_truncated_files(tmp_path: Path, suffix: str, part: int):
    whole = tmp_path / f"whole{suffix}"
    if suffix == ".onnx":
        onnx.save(SMALL["classifier"](), whole)
    elif suffix == ".mlir":
        whole.write_text(NEGATE.rstrip())
    else:
        compile_model(relu(), "tiny").save(whole)
    data = whole.read_bytes()
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(data[: cuts(len(data))[part]])
    stderr = refused(tmp_path, "run", path, "--target", "tiny", "--outputs", tmp_path / "y.npz")
    assert path.name in stderr


@pytest.mark.parametrize("suffix", [".onnx", ".mlir", ".abele"])
def test_flipped_bytes_never_end_in_a_traceback(tmp_path: Path, suffix: str):
    whole = tmp_path / f"whole{suffix}"
    if suffix == ".onnx":
        onnx.save(SMALL["shuffle"](), whole)
    elif suffix == ".mlir":
        whole.write_text(NEGATE)
    else:
        compile_model(relu(), "tiny").save(whole)
    data = bytearray(whole.read_bytes())
    path = tmp_path / f"flipped{suffix}"
    generator = np.random.default_rng(0)
    for position in generator.integers(0, len(data), 40):
        damaged = data.copy()
        damaged[position] ^= 1 << int(generator.integers(8))
        path.write_bytes(damaged)
        result = abele("run", path, "--target", "tiny", "--at", "exchange")
        assert result.exit_code in (0, 2, 3), (position, result.output)
        assert result.stderr.count("error:") == (result.exit_code != 0)
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("proto", "says"),
    [
        (model([node("Bogus", "x", "y")], {"x": [2]}, ["y"]), "Bogus"),
        (model([node("Relu", "x", "y", domain="com.example")], {"x": [2]}, ["y"]), "com.example"),
        (model([node("Relu", "x", "y")], {"x": [2]}, ["y"], opset=99), "99"),
        (model([node("Relu", "x", "y")], {"x": [2]}, ["y"], opset=1), "1"),
        (model([node("Relu", "x", "y")], {"x": ["N", 2]}, ["y"]), "N"),
        (model([node("Relu", "nowhere", "y")], {"x": [2]}, ["y"]), "nowhere"),
        (model([node("Relu", "x", "z")], {"x": [2]}, ["y"]), "y"),
        (
            model([node("Add", "x w", "y")], {"x": [2]}, ["y"], {"w": random((3,))}),
            "the_y",
        ),
        (
            model(
                [node("Conv", "x w", "y")], {"x": [1, 3, 5, 5]}, ["y"], {"w": random((2, 4, 3, 3))}
            ),
            "the_y",
        ),
    ],
    ids=[
        "operator",
        "domain",
        "opset",
        "old opset",
        "dim",
        "value",
        "output",
        "shapes",
        "channels",
    ],
)
def test_models_that_cannot_be_compiled(tmp_path: Path, proto: onnx.ModelProto, says: str):
    path = tmp_path / "bad.onnx"
    path.write_bytes(proto.SerializeToString())
    stderr = refused(tmp_path, "run", path, "--outputs", tmp_path / "y.npz", says=says)
    assert "bad.onnx" in stderr


def external(folder: Path, location: str, **entries: int) -> Path:
    """A model whose weight lies in another file, or is said to."""
    proto = model([node("Add", "x w", "y")], {"x": [4]}, ["y"], {"w": random((4,))})
    weight = proto.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.ClearField("float_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        entry = weight.external_data.add()
        entry.key, entry.value = key, str(value)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_external_data_that_is_missing(tmp_path: Path):
    refused(tmp_path, "run", external(tmp_path, "weights.bin"), says="weights.bin")


def test_external_data_that_is_too_short(tmp_path: Path):
    (tmp_path / "weights.bin").write_bytes(bytes(7))
    refused(tmp_path, "run", external(tmp_path, "weights.bin", length=16), says="weights.bin")


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "a/../../weights.bin"])
def test_external_data_outside_the_folder(tmp_path: Path, location: str):
    (tmp_path / "weights.bin").write_bytes(bytes(16))
    inner = tmp_path / "inner"
    inner.mkdir()
    refused(tmp_path, "run", external(inner, location), says=location)


def test_external_data_behind_a_link_that_leads_outside(tmp_path: Path):
    (tmp_path / "weights.bin").write_bytes(bytes(16))
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "link.bin").symlink_to(tmp_path / "weights.bin")
    refused(tmp_path, "run", external(inner, "link.bin"), says="link.bin")


def test_external_data_is_read(tmp_path: Path):
    (tmp_path / "weights.bin").write_bytes(random((4,)).tobytes())
    assert abele("run", external(tmp_path, "weights.bin"), "--target", "tiny").exit_code == 0


def test_a_dimension_that_is_not_a_number(small: Path, tmp_path: Path):
    refused(tmp_path, "run", small, "--dim", "N=many", says="--dim N=many: need NAME=SIZE")
    refused(tmp_path, "run", small, "--dim", "N", says="--dim N: need NAME=SIZE")


# Bad .mlir


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("nn.neg", "nn.negate", "negate.mlir:4:20: "),
        ("func.return %0", "func.return %9", "not defined: [%9]"),
        (
            "-> tensor<4xf32>\n    func.return %0 : tensor<4xf32>",
            "-> tensor<5xf32>\n    func.return %0 : tensor<5xf32>",
            "negate.mlir:4:5: ",
        ),
        ("func.return %0 : tensor<4xf32>", "", "negate.mlir"),
        ("@main", "@start", "no function @main"),
        ("nn.neg %x", "nn.neg %0", "negate.mlir:4:5: "),
        ('["x"]', '["x", "z"]', "arg_names"),
        ("tensor<4xf32>", "tensor<?xf32>", "negate.mlir"),
        ("tensor<4xf32>", "memref<4xf32>", "negate.mlir"),
        ("tensor<4xf32>", "tensor<4x!nn.what>", "negate.mlir"),
        ("{\n  func", "attributes {abele.target = 3 : i64} {\n  func", "abele.target"),
        ("{\n  func", 'attributes {abele.target = "mk9"} {\n  func', "mk9"),
    ],
)
def test_modules_that_do_not_verify(negate: Path, tmp_path: Path, old: str, new: str, says: str):
    text = NEGATE.replace(old, new)
    assert text != NEGATE
    negate.write_text(text)
    refused(tmp_path, "run", negate, "--outputs", tmp_path / "y.npz", says=says)


def test_blobs_that_are_missing_or_damaged(tmp_path: Path):
    path = tmp_path / "recurrent.mlir"
    shutil.copy(ROOT / "examples" / "recurrent.mlir", path)
    refused(tmp_path, "run", path, says="unknown blob")
    shutil.copytree(BLOBS, tmp_path / "blobs")
    first = min((tmp_path / "blobs").iterdir())
    first.write_bytes(first.read_bytes()[:-1] + b"\0\0")
    refused(tmp_path, "run", path, says=first.name)


def test_deeply_nested_text(tmp_path: Path):
    path = tmp_path / "deep.mlir"
    path.write_text("builtin.module {" * 20_000)
    refused(tmp_path, "run", path, says="nested")


def test_another_target_than_the_program_was_planned_for(small: Path, tmp_path: Path):
    program = tmp_path / "small.abele"
    assert abele("compile", small, "-o", program, "--target", "tiny").exit_code == 0
    refused(tmp_path, "run", program, "--target", "mk2", says="planned for target tiny")


@pytest.mark.parametrize("target", ["mk9", "mk2:0", "mk2:many", "mk2,tile.sync=1", "none.toml"])
def test_unknown_targets(small: Path, tmp_path: Path, target: str):
    refused(tmp_path, "run", small, "--target", target, says=target.partition(":")[0])


def test_unknown_levels(small: Path, tmp_path: Path):
    refused(tmp_path, "run", small, "--target", "tiny", "--at", "vertex", says="no level 'vertex'")
    refused(
        tmp_path, "run", small, "--target", "tiny", "--at", "nn", "--strict", says="strict at nn"
    )


# Bad inputs


def savez(path: Path, **arrays: np.ndarray) -> bytes:
    np.savez(path, **arrays)
    return path.read_bytes()


def pickled(path: Path) -> None:
    np.savez(path, x=np.array([[{}, [], 1]] * 2, dtype=object))


def npy(path: Path) -> None:
    with path.open("wb") as stream:
        np.save(stream, random((2, 3)))


BAD_INPUTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "name": (lambda p: savez(p, image=random((2, 3))), "no input 'image'; the program takes 'x'"),
    "shape": (
        lambda p: savez(p, x=random((3, 2))),
        "'x' has the shape [3, 2], but the model declares [2, 3]",
    ),
    "rank": (
        lambda p: savez(p, x=random((6,))),
        "'x' has the shape [6], but the model declares [2, 3]",
    ),
    "dtype": (lambda p: savez(p, x=np.zeros((2, 3))), "got float64[2, 3]"),
    "objects": (pickled, "got object[2, 3]"),
    "empty file": (lambda p: p.write_bytes(b""), "damaged"),
    "random bytes": (lambda p: p.write_bytes(np.random.default_rng(0).bytes(500)), "damaged"),
    "half": (lambda p: p.write_bytes(savez(p, x=random((2, 3)))[:100]), "damaged"),
    "text": (lambda p: p.write_text("x = 1"), "damaged"),
    ".npy": (lambda p: npy(p), "need np.savez(path, name=array)"),
    "a folder": (lambda p: p.mkdir(), "cannot be read"),
    "nothing": (lambda p: None, "cannot be read"),
}


@pytest.mark.parametrize("kind", BAD_INPUTS)
def test_bad_inputs(small: Path, tmp_path: Path, kind: str):
    make, says = BAD_INPUTS[kind]
    path = tmp_path / "x.npz"
    make(path)
    files = ("--inputs", path, "--outputs", tmp_path / "y.npz", "--profile", tmp_path / "p.json")
    stderr = refused(tmp_path, "run", small, "--target", "tiny", *files, says=says)
    assert "x.npz" in stderr


def test_an_input_that_claims_to_be_huge(small: Path, tmp_path: Path):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive, archive.open("x.npy", "w") as entry:
        head = {"descr": "<f4", "fortran_order": False, "shape": (10**9, 10**9)}
        np.lib.format.write_array_header_1_0(entry, head)
    refused(
        tmp_path,
        "run",
        small,
        "--target",
        "tiny",
        "--inputs",
        path,
        says="shape [1000000000, 1000000000]",
    )


def test_flipped_bytes_of_an_input(small: Path, tmp_path: Path):
    path = tmp_path / "x.npz"
    data = savez(path, x=random((2, 3)))
    for position in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 0x15
        path.write_bytes(damaged)
        result = abele("run", small, "--target", "tiny", "--at", "nn", "--inputs", path)
        assert result.exit_code in (0, 2), (position, result.output)
        assert result.stderr.count("error:") == (result.exit_code != 0)


def test_files_that_cannot_be_written(small: Path, tmp_path: Path):
    (tmp_path / "file").write_text("")
    for option in ("--outputs", "--profile"):
        refused(
            tmp_path,
            "run",
            small,
            "--target",
            "tiny",
            option,
            tmp_path / "file" / "y",
            says="cannot be written",
        )
    program = tmp_path / "file" / "p.abele"
    refused(tmp_path, "compile", small, "-o", program, "--target", "tiny", says="be written")
    refused(tmp_path, "compile", small, "-o", tmp_path / "p.zip", says="ends in .abele")


def test_a_file_is_not_written_over_another(small: Path, tmp_path: Path):
    link = tmp_path / "link.json"
    link.symlink_to(small)
    both = ("--outputs", tmp_path / "y", "--profile", tmp_path / "." / "y")
    refused(tmp_path, "run", small, *both, says="both --outputs and --profile")
    refused(tmp_path, "run", small, "--profile", link, says="both the model and --profile")
    nowhere = ("--outputs", "/dev/null", "--profile", "/dev/null")
    assert abele("run", small, "--target", "tiny", *nowhere).exit_code == 0
    assert Path("/dev/null").is_char_device()


def test_a_dump_that_cannot_be_written(small: Path, tmp_path: Path):
    dump = ("--dump-ir", small)
    refused(tmp_path, "run", small, *dump, says=f"{small}: cannot be written")
    program = tmp_path / "p.abele"
    refused(tmp_path, "compile", small, "-o", program, *dump, says="is not a folder")


def test_a_program_has_no_passes_to_dump(small: Path, tmp_path: Path):
    program = tmp_path / "p.abele"
    assert abele("compile", small, "-o", program, "--target", "tiny").exit_code == 0
    refused(tmp_path, "run", program, "--dump-ir", tmp_path / "d", says="compiled already")


def test_a_program_is_compiled_beside_others(tmp_path: Path):
    weights = {"w": np.ones((64, 32), np.float32)}
    network = model([node("MatMul", "x w", "y")], {"x": ["N", 64]}, ["y"], weights)
    path, first, second = tmp_path / "net.onnx", tmp_path / "1.abele", tmp_path / "3.abele"
    onnx.save(network, path)
    assert abele("compile", path, "-o", first, "--batch", "1", "--target", "tiny").exit_code == 0
    beside = ("compile", path, "-o", second, "--batch", "3", "--beside")
    assert abele(*beside, first, "--runs", "1e-9").exit_code == 0
    session = Session({"1": compile_model(first), "3": compile_model(second)})
    assert {(each.stay, each.moved) for each in session.costs()} == {(1, 0)}
    refused(tmp_path, *beside, tmp_path / "a.mlir", says="a.mlir: need a program file that ends in")
    refused(tmp_path, *beside, second, says=f"both --beside {second} and -o")
    refused(tmp_path, *beside, tmp_path / "no.abele", says="cannot be read")
    for runs in ("0", "-1", "nan"):
        refused(tmp_path, *beside, first, "--runs", runs, says="need more than 0")
    refused(tmp_path, *beside, first, "--target", "tiny:3", says="need a program for tiny:3")
    refused(tmp_path, *beside[:-1], "--runs", "3", says="--runs is given; need --beside too")


# abele opt


def test_opt_prints_the_result_of_the_passes(negate: Path):
    result = opt(negate, "-p", "decompose,plan-splits{target=tiny}")
    assert result.exit_code == 0, result.stderr
    assert "#abele.plan<" in result.stdout
    assert "loc(" not in result.stdout
    assert "loc(" in opt(negate, "--print-debuginfo").stdout


def test_opt_reads_standard_input():
    result = opt("-p", "decompose", text=NEGATE)
    assert result.exit_code == 0, result.stderr
    assert "nn.neg" in result.stdout


def test_opt_lowers_to_exchange_and_abele_runs_the_result(negate: Path, tmp_path: Path):
    down = (
        "plan-splits{target=tiny},convert-nn-to-partition,convert-partition-to-tile,"
        "schedule-supersteps,allocate,group-supersteps,convert-tile-to-exchange"
    )
    out = tmp_path / "out.mlir"
    assert opt(negate, "-p", f"builtin.module({down})", "-o", out).exit_code == 0
    result = abele("run", out, "--check")
    assert result.exit_code == 0, result.stderr


def test_opt_splits_its_input_and_keeps_line_numbers():
    text = f"{NEGATE}\n// -----\n{NEGATE}"
    result = opt("--split-input-file", text=text)
    assert result.stdout.count("builtin.module") == 2
    assert result.stdout.count("// -----") == 1
    broken = opt("--split-input-file", text=f"{NEGATE}\n// -----\nbroken")
    assert broken.exit_code == 2
    line = f"{NEGATE}\n// -----\nbroken".count("\n") + 1
    assert f"<stdin>:{line}:7: " in broken.stderr


def test_opt_reports_the_error_of_each_split_part_and_prints_the_others(tmp_path: Path):
    unplanned = NEGATE
    planned = opt("-p", "plan-splits{target=tiny:8}", text=NEGATE).stdout
    text = "\n// -----\n".join(["broken", planned, unplanned, planned, "broken too"])
    down = ("--split-input-file", "-p", "convert-nn-to-partition")
    result = opt(*down, text=text)
    assert result.exit_code == 2
    assert result.stderr.count("error: ") == 3
    assert "<stdin>:1:7: " in result.stderr
    assert "no target" in result.stderr
    first, second, third, fourth, fifth = result.stdout.split("// -----")
    assert first.strip() == third.strip() == fifth.strip() == ""
    assert "partition." in second
    assert "partition." in fourth
    out = tmp_path / "out.mlir"
    assert opt(*down, "-o", out, text=text).exit_code == 2
    assert not out.exists()


@pytest.mark.parametrize("name", ["schedule-supersteps", "allocate", "group-supersteps"])
def test_opt_refuses_a_pass_of_tile_on_another_level(name: str):
    down = "plan-splits,partition,tile,exchange"
    for text in (NEGATE, opt("-p", down, text=NEGATE).stdout):
        result = opt("-p", name, text=text)
        assert result.exit_code == 2
        assert f"{name} takes modules of tile" in result.stderr


def test_opt_says_that_a_level_is_not_the_one_above():
    result = opt("-p", "exchange", text=NEGATE)
    assert result.exit_code == 2
    assert "nn.neg at <stdin>:" in result.stderr
    assert "schedule-supersteps takes modules of tile" in result.stderr


def test_opt_prints_around_passes(negate: Path):
    passes = ("-p", "decompose,plan-splits{target=tiny}")
    after = opt(negate, *passes, "--print-ir-after-all")
    assert after.stderr.count("IR Dump After") == 2
    change = opt(negate, *passes, "--mlir-print-ir-after-change")
    assert change.stderr.count("IR Dump After plan-splits") == 1
    assert "IR Dump After decompose" not in change.stderr
    assert opt(negate, *passes, "--print-ir-before-all").stderr.count("IR Dump Before") == 2
    assert "plan-splits" in opt(negate, *passes, "--timing").stderr


MLIR_FLAGS = ("--mlir-timing", "--mlir-pass-statistics", "--mlir-print-ir-after-all")


def test_opt_takes_the_names_of_mlir_opt(negate: Path):
    result = opt(negate, "-p", "decompose", *MLIR_FLAGS, "--mlir-print-op-generic")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith('"builtin.module"() ({')
    assert "decompose: 4 -> 4 operations" in result.stderr
    assert "IR Dump After decompose" in result.stderr
    assert "loc(" in opt(negate, "--mlir-print-debuginfo").stdout
    unknown = opt("--mlir-allow-unregistered-dialect", text='"a.b"() : () -> ()')
    assert unknown.stdout == 'builtin.module {\n  "a.b"() : () -> ()\n}\n'


def test_opt_prints_around_chosen_passes(negate: Path):
    passes = ("-p", "decompose,eliminate-dead,decompose")
    result = opt(negate, *passes, "--print-ir-before", "decompose", "--print-ir-after", "decompose")
    assert result.stderr.count("IR Dump Before decompose") == 2
    assert result.stderr.count("IR Dump After decompose") == 2
    assert "eliminate-dead" not in result.stderr
    bad = opt(negate, "--print-ir-after", "decompos")
    assert bad.exit_code == 2
    assert "did you mean decompose" in bad.stderr


def test_opt_prints_a_tree(negate: Path, tmp_path: Path):
    tree = tmp_path / "tree"
    result = opt(negate, "-p", "decompose,eliminate-dead", "--print-ir-tree-dir", tree)
    assert result.exit_code == 0, result.stderr
    names = [each.name for each in sorted(tree.rglob("*.mlir"))]
    assert names == ["0_decompose.mlir", "1_eliminate-dead.mlir"]
    refused(tmp_path, "opt", negate, "--print-ir-tree-dir", negate, says="cannot be written")


ADDED = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %1 = SUM : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}"""


def test_opt_begins_at_the_level_of_each_part():
    sums = (
        "arith.addf %x, %x :",
        '"stablehlo.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) ->',
        "nn.add %x, %x : (tensor<4xf32>, tensor<4xf32>) ->",
    )
    text = "\n// -----\n".join(ADDED.replace("SUM :", each) for each in sums)
    result = opt("--split-input-file", "-p", "nn", text=text)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("= nn.add %x, %x") == 3


def test_opt_dumps_each_part_into_a_folder_of_its_own(tmp_path: Path):
    text = f"{NEGATE}\n// -----\n{NEGATE}"
    dump = tmp_path / "dump"
    opt("--split-input-file", "-p", "decompose", "--dump-ir", dump, text=text)
    assert sorted(each.name for each in dump.iterdir()) == [MANIFEST, "part-1", "part-2"]
    assert (dump / "part-2" / "00-input.mlir").exists()


def test_opt_plans_the_shorthand_for_its_target(negate: Path):
    result = opt(negate, "-p", "nn,partition", "--target", "tiny:3")
    assert result.exit_code == 0, result.stderr
    assert 'abele.target = "tiny:3"' in result.stdout
    assert opt(negate, "-p", "partition", "--target", "mk9").exit_code == 2


def test_opt_goes_on_from_a_dump_on_the_machine_it_was_made_for(small: Path, tmp_path: Path):
    stages = tmp_path / "stages"
    run = abele(
        "compile", small, "-o", tmp_path / "x.abele", "--target", "tiny:6", "--dump-ir", stages
    )
    assert run.exit_code == 0, run.stderr
    fused = next(stages.glob("*-eliminate-dead.mlir"), stages / "00-input.mlir")
    result = abele("opt", fused, "-p", "nn,partition")
    assert result.exit_code == 0, result.stderr
    assert 'abele.target = "tiny:6"' in result.stdout


DIAGNOSED = """
builtin.module {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{need tensor<4xf32>}}
    %0 = nn.neg %x : (tensor<4xf32>) -> tensor<5xf32>
    func.return %x : tensor<4xf32>
  }
}
// -----
%0 = "nn.nonsense"() : () -> i32 // expected-error {{nn.nonsense}}
// -----
builtin.module attributes {abele.target = "tiny"} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@below {{no plan; run plan-splits}}
    %0 = nn.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
}
"""


def test_opt_compares_errors_of_parser_verifier_and_passes_with_expected_ones(tmp_path: Path):
    path = tmp_path / "diagnosed.mlir"
    path.write_text(DIAGNOSED)
    options = ("--split-input-file", "--verify-diagnostics", "-p", "convert-nn-to-partition")
    result = opt(path, *options)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == result.stderr == ""
    path.write_text(DIAGNOSED.replace("@below", "@above").replace("nn.nonsense}", "sense, none}"))
    result = opt(path, *options)
    assert result.exit_code == 1
    assert f"{path}:10: unexpected error: {path}:10:" in result.stderr
    assert f"{path}:10: expected error 'sense, none' did not occur" in result.stderr
    assert f"{path}:15: unexpected error: nn.neg at {path}:15:5: " in result.stderr
    assert f"{path}:14: expected error 'no plan; run plan-splits' did not occur" in result.stderr


def test_opt_prints_the_result_if_the_expected_error_does_not_occur():
    result = opt("--verify-diagnostics", text=NEGATE)
    assert result.exit_code == 0, result.stderr
    assert "nn.neg" in result.stdout


RESHAPES = NEGATE.replace(
    "    %0 = nn.neg %x : (tensor<4xf32>) -> tensor<4xf32>\n",
    "    %1 = nn.reshape %x to [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>\n"
    "    %0 = nn.reshape %1 to [4] : (tensor<2x2xf32>) -> tensor<4xf32>\n",
)

PDL = (
    NEGATE.rstrip().removesuffix("}")
    + """
  pdl.pattern : benefit(1) {
    %t = pdl.type
    %v = pdl.operand
    %op = pdl.operation "nn.neg" (%v : !pdl.value) -> (%t : !pdl.type)
    pdl.rewrite %op {
      %new = pdl.operation "nn.abs" (%v : !pdl.value) -> (%t : !pdl.type)
      pdl.replace %op with %new
    }
  }
}"""
)


@pytest.mark.parametrize(
    ("name", "left"), [("canonicalize", 0), ("abele-canonicalize", 0), ("xdsl-canonicalize", 2)]
)
def test_opt_prefers_abeles_pass_and_accepts_full_names(name: str, left: int):
    result = opt("-p", name, text=RESHAPES)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("nn.reshape") == left


@pytest.mark.parametrize("name", ["apply-pdl", "xdsl-apply-pdl"])
def test_opt_runs_xdsls_passes_on_its_dialects_too(name: str):
    result = opt("-p", name, text=PDL)
    assert result.exit_code == 0, result.stderr
    assert "= nn.abs" in result.stdout
    assert "= nn.neg" not in result.stdout


def test_opt_lists_xdsls_passes_by_name_and_describes_them():
    listed = opt("--list-passes").stdout
    assert "apply-pdl" in listed
    assert "abele-NAME is always abele's pass, and xdsl-NAME always xDSL's." in listed
    assert "pdl-file: text or none" in opt("--help-pass", "apply-pdl").stdout


def test_opt_helps_with_a_pass():
    result = opt("--help-pass", "plan-splits")
    assert result.exit_code == 0
    assert 'target: text, default ""' in result.stdout
    assert opt("--help-pass", "plan-split").exit_code == 2


def test_a_crash_writes_a_reproducer(small: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch):
    def stumble(*_: object) -> None:
        raise OverflowError("too large to convert")

    monkeypatch.setattr("abele.passes.decompose.Decompose.apply", stumble)
    with pytest.raises(OverflowError) as caught:
        abele("run", small, "--target", "tiny")
    path = elsewhere / "abele-reproducer-decompose" / "reproducer-01-decompose.mlir"
    assert path.exists()
    note = caught.value.__notes__[-1]
    assert note.startswith(
        f"reproduce with: abele-opt {path.relative_to(elsewhere)} -p 'decompose,"
    )


def test_a_crash_on_standard_input_writes_a_reproducer(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
):
    def stumble(*_: object) -> None:
        raise OverflowError("too large to convert")

    monkeypatch.setattr("abele.passes.decompose.Decompose.apply", stumble)
    result = opt("-p", "decompose", text=NEGATE)
    assert result.exit_code == 2
    problem, command = result.stderr.splitlines()
    assert problem.startswith("error: <stdin>: cannot be compiled or run: OverflowError: too large")
    path = "abele-reproducer-decompose/reproducer-01-decompose.mlir"
    assert command == f"reproduce with: abele-opt {path} -p decompose"
    assert (elsewhere / path).exists()


# A pipeline of one's own


def test_a_pipeline_in_shorthand_goes_all_the_way(small: Path):
    result = abele(
        "run", small, "--target", "tiny", "-p", "nn,eliminate-dead,partition,tile,exchange"
    )
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("nn", "pipeline 'nn' ends at nn; the machine runs exchange: add partition,tile,exchange"),
        ("nn,partition,tile", "ends at tile; the machine runs exchange: add exchange"),
        ("nn,partitoin", "no pass 'partitoin'; did you mean partition?"),
        ("partition{x=1},tile,exchange", "partition stands for plan-splits"),
    ],
)
def test_pipelines_that_lead_nowhere(small: Path, tmp_path: Path, spec: str, says: str):
    refused(tmp_path, "run", small, "--target", "tiny", "-p", spec, says=says)
    program = tmp_path / "p.abele"
    refused(tmp_path, "compile", small, "-o", program, "--target", "tiny", "-p", spec, says=says)


def test_a_level_that_a_program_is_past(negate: Path, tmp_path: Path):
    out = tmp_path / "out.mlir"
    assert opt(negate, "-p", "nn,partition", "--target", "tiny", "-o", out).exit_code == 0
    says = "the program is at partition already; leave out nn"
    refused(tmp_path, "run", out, "-p", "nn,partition,tile,exchange", says=says)
    assert abele("run", out, "-p", "tile,exchange").exit_code == 0


def test_a_program_has_no_passes_to_run(small: Path, tmp_path: Path):
    program = tmp_path / "p.abele"
    assert abele("compile", small, "-o", program, "--target", "tiny").exit_code == 0
    refused(
        tmp_path, "run", program, "-p", "nn", says="compiled already, so no pass is left to run"
    )


def test_opt_lists_its_passes():
    result = opt("--list-passes")
    assert result.exit_code == 0
    assert "convert-tile-to-exchange" in result.stdout


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("decompos", "did you mean decompose"),
        ("plan-splits{target=", "pipeline"),
        ("plan-splits{tiles=3}", "no option 'tiles'"),
        ("plan-splits{target=mk9}", "mk9"),
        ("convert-nn-to-partition", "run plan-splits"),
        ("convert-tile-to-exchange", "convert-tile-to-exchange takes modules of tile"),
    ],
)
def test_opt_refuses_bad_pipelines(negate: Path, spec: str, says: str):
    result = opt(negate, "-p", spec)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert says in result.stderr


def test_opt_checks_where_it_writes(negate: Path):
    for option in ("--dump-ir", "--reproducer", "-o"):
        path = negate / "x"
        refused(negate.parent, "opt", negate, option, path, says=f"{path}: cannot be written")
    refused(negate.parent, "opt", negate, "-o", negate, says="both the input and -o")


def test_opt_takes_text_and_files_of_onnx(small: Path):
    other = small.rename(small.with_suffix(".pt2"))
    refused(small.parent, "opt", other, says="opt takes .mlir and .onnx")


def test_opt_refuses_a_program_that_makes_a_pass_fail(
    negate: Path, monkeypatch: pytest.MonkeyPatch
):
    def stumble(*_: object) -> None:
        raise OverflowError("too large to convert")

    monkeypatch.setattr("abele.passes.decompose.Decompose.apply", stumble)
    says = f"{negate}: cannot be compiled or run: OverflowError: too large to convert; in pass"
    refused(negate.parent, "opt", negate, "-p", "decompose", says=says)
    monkeypatch.setenv("ABELE_TRACEBACK", "1")
    with pytest.raises(OverflowError):
        opt(negate, "-p", "decompose")


def test_opt_verifies_names(tmp_path: Path):
    path = tmp_path / "load.mlir"
    path.write_text(NEGATE.replace("nn.neg %x : (tensor<4xf32>) ->", "nn.load @w :"))
    says = refused(tmp_path, "opt", path)
    assert "@w" in says


def test_opt_refuses_a_module_that_does_not_verify(negate: Path):
    negate.write_text(NEGATE.replace("nn.neg %x", "nn.neg %0"))
    result = opt(negate)
    assert result.exit_code == 2
    assert "negate.mlir:4:5: " in result.stderr


# What a start imports

MODULES = """
import atexit, sys
from abele.tools.cli import main
atexit.register(lambda: sys.stderr.write("\\n".join(["modules:", *sorted(sys.modules)])))
main()
"""


def imported(*arguments: str | Path) -> set[str]:
    """The modules that a process of the command has imported when it ends with 0."""
    command = [sys.executable, "-c", MODULES, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.partition("modules:\n")[2].splitlines())


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_imports_no_command(option: str):
    found = imported(option)
    assert {each for each in found if each.startswith("abele.")} == {
        "abele.ir",
        "abele.ir.support",
        "abele.ir.support.errors",
        "abele.ir.support.garbage",
        "abele.ir.xdsl",
        "abele.ir.xdsl.irdl_imports",
        "abele.tools",
        "abele.tools.cli",
        "abele.tools.commands",
        "abele.tools.commands.signals",
        "abele.tools.commands.wall",
        "abele.tools.driver",
        "abele.tools.driver.report_view",
        "abele.tools.driver.stages",
        "abele.tools.views",
        "abele.tools.views.application",
    }
    assert not found & {"numpy", "xdsl", "rich.console", "onnx"}


def test_opt_imports_only_the_packages_that_its_passes_need(negate: Path):
    found = imported("opt", negate, "-p", "decompose")
    assert not found & {"rich.console", "onnx", "numba", "lark"}
    rooms = ("abele.passes.planner", "abele.passes.plans", "abele.ir.rules", "abele.backends.host")
    assert not [each for each in found if each.startswith(rooms)]
    # 312 when every command was imported. A target brings its parts, thirteen modules. The dialects
    # tile and exchange share the six of dialects.steps.
    assert len([each for each in found if each.startswith("abele.")]) <= 208
    assert "abele.dialects.onnx" not in found


def test_a_warm_start_imports_no_compiler(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("numba")
    copy_kernels(tmp_path / "cache")
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100000000")
    command = "run", small, "--target", "tiny:2", "--outputs", tmp_path / "y.npz"
    assert "xdsl" in imported(*command)
    # The first process had to load kernels by numba if they had not been kept.
    found = imported(*command)
    assert not found & {"xdsl", "onnx", "numba", "lark", "scipy"}
    own = [each for each in found if each.startswith("abele.")]
    rooms = ("abele.dialects", "abele.passes", "abele.backends.reference", "abele.tools.importers")
    # Names of losses are for help; front ends say which files are part of a model's digest.
    assert {each for each in own if each.startswith(rooms)} == {
        "abele.passes",
        "abele.passes.gradients",
        "abele.passes.gradients.choices",
        "abele.tools.importers",
        "abele.tools.importers.bounds",
        "abele.tools.importers.errors",
        "abele.tools.importers.front_end",
        "abele.tools.importers.caffe",
        "abele.tools.importers.caffe.front_end",
        "abele.tools.importers.front_ends",
        "abele.tools.importers.mxnet",
        "abele.tools.importers.mxnet.front_end",
        "abele.tools.importers.onnx",
        "abele.tools.importers.onnx.front_end",
        "abele.tools.importers.pt2",
        "abele.tools.importers.pt2.front_end",
        "abele.tools.importers.stablehlo",
        "abele.tools.importers.stablehlo.front_end",
    }
    # 350 before such programs were kept ready to run. A target brings its parts, thirteen modules.
    assert len(own) <= 140


def test_the_version_is_that_of_the_package():
    result = abele("--version")
    assert result.exit_code == 0
    assert result.stdout == f"abele {version('abele')}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_one_whole_line_for_each_command(name: str):
    lines = abele("--help").stdout.splitlines()
    (line,) = [each for each in lines if each.startswith(f"  {name} ")]
    assert line.endswith(f"  {COMMANDS[name].summary}")
    assert len(line) <= 78
    assert COMMANDS[name].load().__doc__


def test_an_unknown_command_gets_a_suggestion(tmp_path: Path):
    result = abele("comple")
    assert result.exit_code == 2
    assert "Did you mean 'compile'?" in result.stderr


def test_an_output_in_a_folder_that_does_not_exist_is_refused_before_compiling(tmp_path: Path):
    model = tmp_path / "no_such.mlir"
    for command, option in (("compile", "-o"), ("run", "--outputs"), ("run", "--profile")):
        output = tmp_path / "new" / "folder" / "out.abele"
        result = abele(command, model, option, output)
        assert result.exit_code == 2
        assert f"the folder {output.parent} does not exist; create it first" in result.stderr
        assert not (tmp_path / "new").exists()


def test_inputs_are_read_before_any_pass_runs(small: Path, monkeypatch: pytest.MonkeyPatch):
    def never(*_: object) -> None:
        raise AssertionError("a pass ran")

    monkeypatch.setattr("abele.ir.pass_manager.PassManager.run", never)
    result = abele("run", small, "--target", "tiny", "--inputs", small.with_name("none.npz"))
    assert result.exit_code == 2
    assert "none.npz: cannot be read: No such file" in result.stderr


def test_a_target_of_a_file_is_reported_by_name_and_file(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    target = Path("chip.toml")
    target.write_text('base = "tiny"\ntiles = 6\n')
    assert f"{target} (from tiny), 6 tiles" in abele("run", small, "--target", target).stdout
    target.write_text('base = "tiny"\nname = "mine"\ntiles = 6\n')
    shown = f"mine ({target}), 6 tiles"
    assert shown in abele("run", small, "--target", target).stdout
    planned = abele("plan", small, "--target", target).stdout
    assert "planned for mine" in planned
    assert "chip.toml)" in planned
    assert shown in abele("graph", small, "--target", target).stdout
    program = tmp_path / "p.abele"
    assert shown in abele("compile", small, "--target", target, "-o", program).stdout


def test_wrong_usage_is_reported_as_other_errors_are(monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, word in ((Terminal(), "\x1b[1;31merror:\x1b[0m"), (io.StringIO(), "error:")):
        monkeypatch.setattr(sys, "argv", ["abele", "run", "x.mlir", "--chek"])
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("TERM", "xterm")
        try:
            with pytest.raises(SystemExit) as ended:
                cli.main()
        finally:
            # main freezes the heap for its process. Left frozen, a million objects would be counted
            # at every pause of the collector, in all tests after this one.
            gc.unfreeze()
        assert ended.value.code == 2
        lines = stream.getvalue().splitlines()
        assert lines[0].startswith("Usage: ")
        assert lines[-1].startswith(f"{word} No such option: --chek")


# True processes


def process(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from abele.tools.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        **options,
    )


def test_the_command_in_a_process(small: Path, tmp_path: Path):
    good = process("run", small, "--target", "tiny", "--check")
    assert good.returncode == 0, good.stderr
    assert good.stderr == ""
    assert "vertices" in good.stdout
    bad = process("run", tmp_path / "none.onnx")
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr.startswith("error: ")
    assert "Traceback" not in bad.stderr


def test_a_pipe_that_closes_early_is_no_error(small: Path):
    script = "from abele.tools.cli import main; main()"
    done = subprocess.run(
        f"{sys.executable} -c '{script}' opt --list-passes | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("decompose")


def test_both_commands_are_installed():
    for command in ("abele", "abele-opt"):
        path = Path(sys.executable).with_name(command)
        done = subprocess.run([path, "--help"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "Usage" in done.stdout


# Programs whose addresses are wrong


def without_input(module: ModuleOp) -> None:
    (step,) = (op.parent_op() for op in module.walk() if isinstance(op, Input))
    Rewriter.erase_op(step)


def two_states_overlap(module: ModuleOp) -> None:
    first, second = (v for v in module.ops if isinstance(v, VariableOp) and v.initial is not None)
    second.address = first.address


def result_on_a_state(module: ModuleOp) -> None:
    (output,) = (op for op in module.walk() if isinstance(op, Output))
    variables = {v.symbol: v for v in module.ops if isinstance(v, VariableOp)}
    held = next(v for v in variables.values() if v.initial is not None)
    variables[output.reads.string_value()].address = held.address


WRONG_ADDRESSES = [
    (without_input, r"reads bytes .* of tile 0 \(@x\), never written"),
    (two_states_overlap, r"bytes .* of tile 0 hold @w too"),
    (result_on_a_state, r"the bytes of @w; a state must hold after every run"),
]


@pytest.mark.parametrize(("spoil", "says"), WRONG_ADDRESSES)
def test_a_program_with_wrong_addresses_never_runs(
    tmp_path: Path, spoil: Callable[[ModuleOp], None], says: str
):
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "t"), node("MatMul", "t v", "y")]
    weights = {"w": random((16, 12), 1), "v": random((12, 4), 2)}
    exe = compile_model(model(nodes, {"x": [8, 16]}, ["y"], weights), "tiny")
    module = exe.module_at("exchange").clone()
    module.attributes["abele.target"] = StringAttr("tiny")
    text, program = tmp_path / "p.mlir", tmp_path / "p.abele"
    write_module(module, text)
    assert abele("run", text).exit_code == 0
    spoil(module)
    write_module(module, text)
    save(program, module, exe.target)
    for path in (text, program):
        for options in ((), ("--check",), ("--strict",)):
            result = abele("run", path, *options)
            assert result.exit_code == 1
            assert re.search(says, result.stderr), result.stderr
    assert abele("compile", text, "-o", tmp_path / "q.abele").exit_code == 1
    assert not (tmp_path / "q.abele").exists()
