"""Modules that are programs of their own report users' errors as commands do."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from abele.tools.views.script import script

TOOLS = Path(__file__).parents[3] / "tools"
RUN = re.compile(r'^if __name__ == "__main__":\n    run_script\((\w+)\)$', re.M)
SERVING = (
    "executors/worker.py",
    "testing/onnx_graphs/worker.py",
    "testing/onnx_tools/worker.py",
    "testing/onnx_tools/script.py",
    "importers/stablehlo/print_generic.py",
)
"""The ends of pipes, which have no user, and the script of a finding, which knows no abele."""

SCRIPTS = {
    f"abele.tools.{'.'.join(path.relative_to(TOOLS).with_suffix('').parts)}": found[1]
    for path in sorted(TOOLS.rglob("*.py"))
    if (found := RUN.search(path.read_text()))
}
"""The function of each script, by module."""

MISTAKES = (
    ("bench.__main__", "--networks resnt50", "did you mean resnet50"),
    ("bench.__main__", "--networks ,", "names nothing"),
    ("bench.__main__", "--target mk9", "'mk9' is not a preset"),
    ("bench.__main__", "--json absent/out.json", "absent does not exist"),
    ("workshop.blame", "--mutants 0", "greater than or equal to 1"),
    ("workshop.comparator.bench", "--shapes 1x2", "need ROWSxDEPTHxCOLUMNS"),
    (
        "workshop.comparator.bench",
        "--shapes 99999999999999999999x1x1",
        "need sizes from 1 to 1,048,576",
    ),
    ("workshop.comparator.bench", "--json absent/out.json", "absent does not exist"),
    ("workshop.conformance", "--operator (", "no regular expression"),
    ("workshop.conformance", "--json absent/out.json", "absent does not exist"),
    ("workshop.exchanges", "--target mk9", "'mk9' is not a preset"),
    ("workshop.exports", "absent", "absent"),
    ("workshop.fusion", "--networks typo", "there is no 'typo'"),
    ("workshop.fusion", "--target mk9", "'mk9' is not a preset"),
    ("workshop.graphs", "--networks alexnet:0", "need NAME[:BATCH[:VERTICES]]"),
    ("workshop.guided", "--examples many", "valid integer"),
    ("workshop.kernel_faults", "--forms broad", "there is no 'broad'"),
    ("workshop.kit", "--clean many", "valid integer"),
    ("workshop.learning.bench", "--networks digts", "did you mean digits"),
    ("workshop.learning.bench", "--json absent/out.json", "absent does not exist"),
    ("workshop.learning.arithmetics", "--rates 7", "7"),
    ("workshop.lookups", "--target mk9", "'mk9' is not a preset"),
    ("workshop.planning", "--layers 7", "there are 101, 152, 50"),
    ("workshop.planning", "--target mk9", "'mk9' is not a preset"),
    ("workshop.pods", "--targets mk9", "'mk9' is not a preset"),
    ("workshop.pods", "--networks alexnet:0:float32", "need NAME:IMAGES:PRECISION"),
    ("workshop.stablehlo.bench", "--jobs 0", "greater than or equal to 1"),
    ("workshop.planted", "--only typo", "there is no 'typo'"),
    ("workshop.planted", "--json absent/out.json", "absent does not exist"),
    ("workshop.proofs", "--mutants many", "valid integer"),
    ("workshop.recomputation", "--networks alexnet", "need NAME:BATCH"),
    ("workshop.recurrent", "--target mk9", "'mk9' is not a preset"),
    ("workshop.start", "--networks typo", "there is no 'typo'"),
    ("workshop.start", "--target mk9", "'mk9' is not a preset"),
    ("workshop.images", "--batches 0", "'0' is no number of images"),
    ("workshop.transformers.training", "--models typo", "typo"),
    ("workshop.steps", "--networks alexnet:x", "need NAME:BATCH"),
    ("workshop.switching", "--network typo", "there is no 'typo'"),
    ("workshop.switching", "--runs many", "valid number"),
    ("workshop.trace", "--networks typo", "there is no 'typo'"),
    ("workshop.training", "--networks absent.onnx", "there is no file absent.onnx"),
    ("workshop.training", "--networks alexnet --folder absent", "absent does not exist"),
    ("workshop.changing_patterns", "--target mk9", "'mk9' is not a preset"),
    ("workshop.changing_patterns", "--columns 0", "greater than or equal to 1"),
    ("workshop.sparse_products", "--target mk9", "'mk9' is not a preset"),
    ("workshop.utilisation", "--target mk9", "'mk9' is not a preset"),
    ("manual.__main__", "", "Missing argument"),
    ("manual.__main__", "file", "file"),
    ("manual.way_down.__main__", "file way_down.svg", "no example: the page needs a block"),
    ("release.__main__", "absent", "absent"),
    ("testing.__main__", "absent", "absent/program.mlir: cannot be read"),
    ("testing.all_floats", "relu", "no function 'relu' has a sequence"),
    ("testing.all_floats", "--seconds soon", "valid number"),
    ("views.report.__main__", "absent", "absent: cannot be read"),
    ("views.report.__main__", "file", "file: has no line that begins with <!-- tables:"),
    ("views.scan.__main__", "squezenet", "did you mean squeezenet"),
    ("views.scan.__main__", "--folder absent", "absent does not exist"),
    ("views.scan.__main__", "--folder . --color typo", "--color typo: need one of"),
    ("views.scan.__main__", "--folder . --size 0", "--size 0: need 256 to"),
    ("views.syntax.textmate", "absent", "absent does not exist"),
)


def test_every_module_with_a_main_is_a_script_with_a_mistake_here():
    mains = {
        path for path in TOOLS.rglob("*.py") if '\nif __name__ == "__main__":' in path.read_text()
    }
    assert len(mains - {TOOLS / each for each in SERVING}) == len(SCRIPTS)
    assert {f"abele.tools.{module}" for module, _, _ in MISTAKES} == {*SCRIPTS}


@pytest.mark.parametrize(("module", "words", "says"), MISTAKES)
def test_a_mistake_is_one_message(
    module: str, words: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    name = f"abele.tools.{module}"
    function = getattr(import_module(name), SCRIPTS[name])
    result = CliRunner().invoke(script(function), words.split())
    assert result.exit_code == 2, result.output
    assert says in " ".join(re.sub(r"[│\s]+", " ", result.stderr).split())
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_script_ends_with_one_line_and_exit_code_2():
    words = [sys.executable, "-m", "abele.tools.workshop.switching", "--network", "typo"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: --network: there is no 'typo'.*\n", done.stderr)
    words[-2:] = ["--tagret", "mk2"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert "error: No such option: --tagret" in done.stderr
