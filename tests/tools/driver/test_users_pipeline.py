from pathlib import Path

import pytest
from some_models import relu
from users_passes import LOWER

from abele.ir.errors import InputError
from abele.tools import compile_model


def test_a_pipeline_of_ones_own_must_reach_the_machine(tmp_path: Path):
    path = tmp_path / "lower.py"
    path.write_text(LOWER)
    with pytest.raises(InputError, match="ends at partition; the machine runs exchange: add tile"):
        spec = "nn,plan-splits{target=tiny},lower-my-way"
        compile_model(relu(), "tiny", passes=spec, load=[path])


def test_a_pipeline_does_not_lead_up_again(tmp_path: Path):
    path = tmp_path / "relu.mlir"
    compile_model(relu(), "tiny", dump_ir=tmp_path / "ir")
    (planned,) = (tmp_path / "ir").glob("*-convert-nn-to-partition.mlir")
    planned.rename(path)
    with pytest.raises(InputError, match="the program is at partition already; leave out nn"):
        compile_model(path, passes="nn,partition,tile,exchange")


def test_only_a_pipeline_that_plans_takes_a_share_of_memory(tmp_path: Path):
    path = tmp_path / "lower.py"
    path.write_text(LOWER)
    spec = "nn,lower-my-way,tile,exchange"
    with pytest.raises(InputError, match="memory_proportion: no pass of the pipeline plans"):
        compile_model(relu(), "tiny", passes=spec, load=[path], memory_proportion=0.5)
