"""Where rounding to integers moves an output, the bounds of all steps decide, and no tolerance."""

from pathlib import Path

import numpy as np
import pytest

from abele.backends.reference import run_reference
from abele.tools import compile_model
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.debug.run_check import check_run
from abele.tools.driver.request import Request

TARGET = "tiny:4"

SUMS = """
func.func @main(%x: tensor<64x96xf32>, %c: tensor<64xf32>) -> tensor<64xf32>
    attributes {arg_names = ["x", "c"], result_names = ["y"]} {
  %s = nn.reduce "sum" %x axes [1] : (tensor<64x96xf32>) -> tensor<64xf32> loc("sum")
  func.return %s : tensor<64xf32>
}
"""

QUANTISED = """
func.func @main(%x: tensor<64x96xf32>, %c: tensor<64xf32>) -> tensor<64xf32>
    attributes {arg_names = ["x", "c"], result_names = ["y"]} {
  %s = nn.reduce "sum" %x axes [1] : (tensor<64x96xf32>) -> tensor<64xf32> loc("sum")
  %t = nn.sub %s, %c : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> loc("centre")
  %u = nn.scale %t by 4.0 : (tensor<64xf32>) -> tensor<64xf32> loc("scale")
  %r = nn.round %u : (tensor<64xf32>) -> tensor<64xf32> loc("round")
  %z = nn.shift %r by 3.0 : (tensor<64xf32>) -> tensor<64xf32> loc("zero")
  %q = nn.cast %z : (tensor<64xf32>) -> tensor<64xi8> loc("quantised")
  %f = nn.cast %q : (tensor<64xi8>) -> tensor<64xf32> loc("wide")
  %d = nn.shift %f by -3.0 : (tensor<64xf32>) -> tensor<64xf32> loc("less")
  %y = nn.scale %d by 0.25 : (tensor<64xf32>) -> tensor<64xf32> loc("back")
  func.return %y : tensor<64xf32>
}
"""

FAULT = '''
from dataclasses import dataclass
from xdsl.passes import ModulePass
from abele.dialects import nn
from abele.ir.provenance import origin


@dataclass(frozen=True)
class Fault(ModulePass):
    """Scale or shift the result of a node."""

    name = "fault"
    node: str
    kind: str
    amount: float

    def apply(self, ctx, op):
        found = next(each for each in op.walk() if each.results and origin(each) == self.node)
        make = {"scale": nn.ScaleOp, "shift": nn.ShiftOp}[self.kind]
        new = make(found.results[0], self.amount)
        new.location = found.location
        found.parent.insert_op_after(new, found)
        for use in list(found.results[0].uses):
            if use.operation is not new:
                use.operation.operands[use.index] = new.results[0]
'''


def compiled(text: str, folder: Path, passes: str = ""):
    path = folder / "model.mlir"
    path.write_text(text)
    extension = folder / "fault.py"
    extension.write_text(FAULT)
    way = f"{passes},nn,partition,tile,exchange" if passes else ""
    return compile_model(path, TARGET, passes=way, load=[extension], cache=False)


def exe_sums(inputs: dict[str, np.ndarray], folder: Path) -> np.ndarray:
    return compiled(SUMS, folder).run(inputs)["y"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> dict[str, np.ndarray]:
    """Inputs for which the machine's sums are a hair below half a step, and those of both
    references above it. Other rows are far from a step."""
    x = np.random.default_rng(0).normal(size=(64, 96)).astype(np.float32)
    given = {"x": x, "c": np.zeros(64, np.float32)}
    exe = compiled(SUMS, tmp_path_factory.mktemp("sums"))
    sums = exe.run(given)["y"]
    rounded = run_reference(exe.module_at("nn"), given).outputs["y"]
    near = np.flatnonzero(sums < rounded)[:3]
    assert len(near) == 3
    steps = 2 * np.arange(64) - 63 + 0.2
    c = (rounded - steps / 4).astype(np.float32)
    c[near] = sums[near] - np.float32(0.125)
    return {"x": x, "c": c}


def test_numbers_on_the_other_side_of_a_step_are_right(inputs, tmp_path):
    exe = compiled(QUANTISED, tmp_path)
    verdict = check_run(exe, inputs, exe.run(inputs), "exchange")
    assert verdict.error is not None
    assert verdict.rounded is not None
    assert min(verdict.error, verdict.rounded) > 0.01
    assert verdict.passed, verdict.problem
    assert "right by a reference that follows the run over steps" in verdict.rows[0][1]
    found = bisect(Request(tmp_path / "model.mlir", TARGET), inputs=inputs)
    assert found.passed, found.text
    assert found.worst == min(verdict.error, verdict.rounded)


FAULTS = {
    "a scale that is off by 1 %": ("scale", "scale", 1.01),
    "the way back that is off by 1 %": ("back", "scale", 1.01),
    "a zero point that is off by one": ("zero", "shift", 1.0),
    "a hair that is not rounding": ("centre", "shift", 0.01),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_quantised_program_is_found(name: str, inputs, tmp_path):
    node, kind, amount = FAULTS[name]
    given = dict(inputs)
    if name.startswith("a hair"):
        # Rows that are a fiftieth from a step: further than rounding moves them.
        given["c"] = given["c"].copy()
        given["c"][10:20] += np.float32((0.2 - 0.48) / 4)
    fault = f'decompose,fault{{node="{node}" kind="{kind}" amount={amount}}}'
    exe = compiled(QUANTISED, tmp_path, fault)
    verdict = check_run(exe, given, exe.run(given), "exchange")
    assert not verdict.passed
    assert "is allowed" in verdict.problem
    passes, load = f"{fault},nn,partition,tile,exchange", [tmp_path / "fault.py"]
    found = bisect(Request(tmp_path / "model.mlir", TARGET, passes=passes, load=load), inputs=given)
    assert found.name == "fault"
    exe = compiled(QUANTISED, tmp_path)
    assert check_run(exe, given, exe.run(given), "exchange").passed


def test_integers_that_are_all_one_step_off_are_wrong(inputs, tmp_path):
    head, _, _ = QUANTISED.partition("  %f =")
    text = head.replace(" -> tensor<64xf32>\n", " -> tensor<64xi8>\n")
    text += "  func.return %q : tensor<64xi8>\n}\n"
    exe = compiled(text, tmp_path)
    assert check_run(exe, inputs, exe.run(inputs), "exchange").passed
    exe = compiled(text, tmp_path, 'decompose,fault{node="zero" kind="shift" amount=1.0}')
    problem = check_run(exe, inputs, exe.run(inputs), "exchange").problem
    assert problem == "output 'y': 61 of 64 integers are one step off"
    # All rows are alike, and near a step: then all of them may be on its other side.
    near = int(np.flatnonzero(np.isclose(inputs["c"], exe_sums(inputs, tmp_path) - 0.125))[0])
    alike = {name: np.repeat(array[near : near + 1], 64, 0) for name, array in inputs.items()}
    exe = compiled(text, tmp_path)
    verdict = check_run(exe, alike, exe.run(alike), "exchange")
    assert verdict.passed, verdict.problem
    assert verdict.followed


def test_another_output_of_a_right_run_is_wrong(inputs, tmp_path):
    exe = compiled(QUANTISED, tmp_path)
    outputs = exe.run(inputs)
    wrong = outputs["y"].copy()
    wrong[30] += np.float32(0.25)
    assert not check_run(exe, inputs, {"y": wrong}, "exchange").passed
