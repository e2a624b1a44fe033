import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from some_extensions import BODY, HEAD, RELU, abele
from some_models import model, node

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.dialects.levels import LEVELS
from abele.tools import compile_model


def softsign(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) / (1 + np.abs(x.astype(np.float64)))


def test_a_file_with_pass_dialect_function_and_target_runs_on_the_machine(soft: Path, relu: Path):
    down = ("-p", "nn,smooth-relu,partition,tile,exchange")
    files = ("--outputs", "y.npz", "--inputs", "x.npz", "--profile", "p.json")
    x = np.linspace(-4, 4, 64, dtype=np.float32)
    np.savez("x.npz", x=x)
    result = abele("run", relu, "--load", soft, "--target", "small", *down, *files, "--strict")
    assert result.exit_code == 0, result.stderr
    assert "mk2:8,name=small" in result.stdout
    with np.load("y.npz") as stored:
        np.testing.assert_allclose(stored["y"], softsign(x), rtol=1e-5)


def test_a_users_operation_is_printed_parsed_priced_and_checked(soft: Path, relu: Path):
    made = abele("opt", relu, "--load", soft, "-p", "smooth-relu", "-o", "out.mlir")
    assert made.exit_code == 0, made.stderr
    assert "mine.softsign" in Path("out.mlir").read_text()
    result = abele("run", "out.mlir", "--load", soft, "--target", "tiny", "--check")
    assert result.exit_code == 0, result.stderr
    assert re.search(r"operations checked\W+1;", result.stdout)
    assert SCALAR_FUNCTIONS["softsign"].priced_as == "exp"
    exp = Path("exp.mlir")
    exp.write_text(RELU.replace("nn.relu", "nn.exp"))
    mine, plain = compile_model("out.mlir", "tiny", load=[soft]), compile_model(exp, "tiny")
    assert mine.profile["cycles"] == plain.profile["cycles"] > 0


@pytest.mark.parametrize("level", [level.name for level in LEVELS])
def test_a_users_operation_runs_at_every_level(soft: Path, relu: Path, level: str):
    relu.write_text(RELU.replace("nn.relu", "mine.softsign"))
    exe = compile_model(relu, "tiny", load=[soft])
    x = np.linspace(-2, 2, 64, dtype=np.float32)
    np.testing.assert_allclose(exe.run({"x": x}, at=level)["y"], softsign(x), rtol=1e-5)


def test_a_saved_program_needs_its_extension_where_its_levels_are_read(soft: Path, relu: Path):
    relu.write_text(RELU.replace("nn.relu", "mine.softsign"))
    made = abele("compile", relu, "--load", soft, "--target", "tiny", "-o", "p.abele")
    assert made.exit_code == 0, made.stderr
    result = abele("run", "p.abele", "--load", soft, "--check")
    assert result.exit_code == 0, result.stderr


def test_a_users_function_imports_an_operator(soft: Path):
    proto = model([node("Softsign", "x", "y", domain="com.example")], {"x": [3]}, ["y"])
    proto.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    exe = compile_model(proto, "tiny", load=[soft])
    x = np.array([-1, 0, 1], np.float32)
    np.testing.assert_allclose(exe.run({"x": x})["y"], softsign(x), rtol=1e-5)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("none.py", "none.py: cannot be read: No such file"),
        ("none.rw", "none.rw: cannot be read: No such file"),
        ("none.toml", "none.toml: cannot be read: No such file"),
        ("notes.txt", "notes.txt: unknown kind of extension; need .py, .toml, .rw"),
        (".", "unknown kind of extension"),
        ("folder.py", "folder.py: cannot be read: Is a directory"),
        ("empty.rw", "empty.rw: no definitions for abele; looked for rules"),
        ("bad.rw", "bad.rw:1:"),
        ("bad.toml", "bad.toml"),
    ],
)
def test_bad_paths(tmp_path: Path, relu: Path, path: str, says: str):
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "empty.rw").write_text("// none\n")
    (tmp_path / "bad.rw").write_text("rule\n")
    (tmp_path / "bad.toml").write_text("base = 'mk9'\n")
    for command in (("run", relu), ("compile", relu, "-o", "p.abele"), ("opt", relu)):
        result = abele(*command, "--load", path)
        assert result.exit_code == 2, result.output
        assert says in result.stderr
        assert "Traceback" not in result.stderr


def test_a_users_pass_shows_its_options(soft: Path):
    listing = abele("opt", "--list-passes", "--load", soft).stdout
    assert "smooth-relu" in listing
    assert "limit: an integer, default 3; how many at most" in listing
    help_text = abele("opt", "--help-pass", "smooth-relu", "--load", soft).stdout
    assert "share: a number or none, default none; of what" in help_text


def test_an_option_of_a_wrong_type_is_refused(soft: Path, relu: Path):
    result = abele("opt", relu, "--load", soft, "-p", "smooth-relu{limit=many}")
    assert result.exit_code == 2
    says = "pass 'smooth-relu': option 'limit': many; need an integer"
    assert result.stderr == f"error: {says}\n"


DECLARES = f"""
from abele.dialects.levels import EXCHANGE, TILE
{HEAD}
    name = "mine"
    takes = TILE
    leaves = EXCHANGE
{BODY}
"""


def test_a_users_pass_is_held_to_the_levels_that_it_declares(tmp_path: Path, relu: Path):
    (tmp_path / "mine.py").write_text(DECLARES)
    refused = abele("opt", relu, "--load", "mine.py", "-p", "mine")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("error: nn.relu at ")
    assert "mine takes modules of tile" in refused.stderr
    broken = abele(
        "opt", relu, "--target", "tiny", "--load", "mine.py", "-p", "nn,partition,tile,mine"
    )
    assert broken.exit_code == 2
    assert "is not legal here; legal: builtin.module, control, exchange, func" in broken.stderr
    text = abele("opt", "--help-pass", "mine", "--load", "mine.py").stdout
    assert "levels: takes tile, leaves exchange" in text


def test_a_file_of_rules_is_held_to_the_levels_that_it_declares(tmp_path: Path, relu: Path):
    (tmp_path / "mine.rw").write_text("takes tile\nrounds\n\nrule r: nn.relu(x) => nn.abs(x)\n")
    refused = abele("opt", relu, "--load", "mine.rw", "-p", "mine")
    assert refused.exit_code == 2
    assert "mine takes modules of tile" in refused.stderr
    text = abele("opt", "--help-pass", "mine", "--load", "mine.rw").stdout
    assert "levels: takes tile, may give up precision" in text
