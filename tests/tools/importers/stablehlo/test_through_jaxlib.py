"""Other forms of StableHLO than the generic one, which jaxlib prints in that form."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from abele.ir.support.errors import InputError
from abele.tools import compile_model
from abele.tools.importers.errors import UnsupportedError
from abele.tools.importers.stablehlo import through_jaxlib
from abele.tools.importers.stablehlo.forms import generic_text, is_bytecode, is_stablehlo
from abele.tools.importers.stablehlo.print_generic import BYTECODE, bytecode_of

HAS_JAXLIB = importlib.util.find_spec("jaxlib") is not None
with_jaxlib = pytest.mark.skipif(not HAS_JAXLIB, reason="jaxlib is not installed")

PRETTY = """
#loc1 = loc("x")
module @jit_f {
  func.func public @main(%arg0: tensor<3xf32> loc("x")) -> (tensor<3xf32> {jax.result_info = "y"}) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<3xf32> loc("jit(f)/add"("net.py":4:2 to :9))
    return %0 : tensor<3xf32>
  }
}
"""

LIMITED = (
    Path(through_jaxlib.__file__).with_name("print_generic.py").read_text().partition("if __")[0]
    + "limit(1)\n"
)
"""The script that lets jaxlib print, with its limit."""

FLAT = bytes(8) + (9).to_bytes(4, "little") + BYTECODE + b"codes" + bytes(3)
"""Bytes around bytecode, as those of jax.export."""


def test_bytecode_is_found_in_what_jax_exports():
    assert bytecode_of(FLAT) == BYTECODE + b"codes"
    assert is_bytecode(FLAT)
    assert is_stablehlo(FLAT)
    assert not is_bytecode(PRETTY.encode())


@pytest.mark.parametrize(
    ("data", "form"),
    [(PRETTY.encode(), "StableHLO in MLIR's pretty form"), (FLAT, "bytecode of MLIR")],
)
def test_without_jaxlib_the_error_has_the_command_that_prints_the_generic_form(
    data: bytes, form: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(through_jaxlib, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedError) as caught:
        generic_text(data, "net.mlir", Path("a folder/net.mlir"))
    message = str(caught.value)
    assert message.startswith(f"net.mlir: {form}, which abele reads through jaxlib, and jaxlib is")
    assert "pip install 'abele[jax]'" in message
    assert "open('a folder/net.mlir', 'rb')" in message


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import os; os.abort()", "jaxlib ends with code -6; it may be damaged"),
        ("while True: pass", "jaxlib takes longer than 1 s"),
        (LIMITED + "while True: pass", "jaxlib takes longer than 1 s"),
        ("import sys; sys.exit('said' if sys.stderr.write('why') else 1)", "ends with code 1"),
        (
            "import sys; sys.stderr.write('I1 no\\nline 3: a reason\\n'); sys.exit(4)",
            "line 3: a re",
        ),
        ("import sys; sys.exit(3)", "jaxlib is not installed"),
    ],
)
def test_the_end_of_the_process_that_reads_is_one_message(
    script: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "print_generic.py").write_text(script)
    monkeypatch.setattr(through_jaxlib, "__file__", str(tmp_path / "through_jaxlib.py"))
    monkeypatch.setattr(through_jaxlib, "find_spec", lambda name: object())
    monkeypatch.setattr(through_jaxlib, "SECONDS", 1)
    monkeypatch.setattr(through_jaxlib, "PATIENCE", 30 if script.startswith(LIMITED) else 1)
    with pytest.raises(InputError, match=re.escape(message)):
        generic_text(PRETTY.encode(), "net.mlir")


def test_nothing_is_imported_from_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "jaxlib.py").write_text("open('imported', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(through_jaxlib, "find_spec", lambda name: object())
    monkeypatch.setattr(sys, "path", ["", ".", *sys.path])
    try:
        generic_text(PRETTY.encode(), "net.mlir")
    except UnsupportedError:
        assert not HAS_JAXLIB
    assert not (tmp_path / "imported").exists()


@with_jaxlib
def test_pretty_text_keeps_its_locations(tmp_path: Path):
    path = tmp_path / "net.mlir"
    path.write_text(PRETTY)
    exe = compile_model(path, target="tiny:4", cache=False)
    assert [each.name for each in exe.inputs] == ["x"]
    assert [each.name for each in exe.outputs] == ["y"]
    assert 'loc("add"("net.py":4:2))' in [str(op.location) for op in exe.module_at("nn").walk()]


@with_jaxlib
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("stablehlo.add", "stablehlo.other", "custom op 'stablehlo.other' is unknown"),
        ("%arg0, %arg0 :", "%arg0, %arg1 :", "use of undeclared SSA value name"),
    ],
)
def test_what_jaxlib_does_not_read_has_its_reason_and_line(old: str, new: str, message: str):
    with pytest.raises(InputError, match=rf"net.mlir: jaxlib cannot read it: .*:5:.*{message}"):
        generic_text(PRETTY.replace(old, new).encode(), "net.mlir")
