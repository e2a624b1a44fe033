from pathlib import Path

import numpy as np
import pytest
from some_extensions import RELU, SOFT

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.backends.target import USERS_TARGETS
from abele.dialects.levels import NN, NN_CORE, USERS_DIALECTS
from abele.dialects.scalar_functions import FUNCTIONS
from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.driver.extensions import registration
from abele.tools.extensions import load_extensions


def test_composites_are_legal_before_decompose_only(tmp_path: Path, relu: Path):
    path = tmp_path / "twice.py"
    path.write_text("""
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def
from abele.dialects import nn
from abele.dialects.nn import CompositeOp

@irdl_op_definition
class TwiceOp(CompositeOp):
    name = "twofold.twice"
    operand = operand_def(TensorType)
    assembly_format = "$operand attr-dict `:` functional-type(operands, results)"

    def infer(self):
        return nn.tensor_of(self.operand)

    def parts(self, made):
        return made("twice", nn.AddOp(self.operand, self.operand))

Twofold = Dialect("twofold", [TwiceOp], [])
""")
    relu.write_text(RELU.replace("nn.relu", "twofold.twice"))
    exe = compile_model(relu, "tiny", load=[path])
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(exe.run({"x": x})["y"], 2 * x)
    assert "twofold" in NN.legal
    assert not {"twofold", "twofold.twice"} & NN_CORE.legal


def test_a_refused_file_leaves_nothing_behind(soft: Path):
    soft.write_text(SOFT.replace('name="small"', 'name="mk1"'))
    with pytest.raises(InputError, match="target 'mk1' is already defined by abele"):
        load_extensions([soft])
    for table in (FUNCTIONS, SCALAR_FUNCTIONS, USERS_DIALECTS, USERS_TARGETS):
        assert not {"softsign", "mine", "small", "mk1"} & set(table)


def test_a_part_that_cannot_be_added_leaves_nothing_behind(
    soft: Path, monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(registration, "check_pass", fails)
    with pytest.raises(RuntimeError):
        load_extensions([soft])
    assert "softsign" not in {*FUNCTIONS, *SCALAR_FUNCTIONS}
