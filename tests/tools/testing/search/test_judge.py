from pathlib import Path

import pytest
import users_dialects

from abele.dialects import nn
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.tools.extensions import load_extensions
from abele.tools.testing import Miscompiled, check_pipeline, programs


class Spoil(ModulePass):
    """Multiplies where it should add."""

    name = "spoil"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.walk()):
            if isinstance(each, nn.AddOp):
                new = nn.MulOp(*each.operands)
                each.parent.insert_op_before(new, each)
                each.results[0].replace_all_uses_with(new.results[0])
                each.detach()
                each.erase()


def test_programs_that_only_a_pass_makes_runnable_are_compared_after_it(tmp_path: Path):
    with users_dialects.written(tmp_path) as (_, load):
        extensions = load_extensions(load)
        ((twice,),) = (each.operations for each in extensions.dialects)
        lower = extensions.passes["to-nn"]()
        below = "nn,partition,tile,exchange"
        generated = programs(operators=[twice, nn.ExpOp])
        report = check_pipeline((lower, below), programs=generated, examples=10, seed=1)
        assert report.examples == 10
        assert report.began_after["to-nn"] >= 5
        assert f"{report.began_after['to-nn']} compared with the program after to-nn" in str(report)
        with pytest.raises(Miscompiled, match="after pass 'spoil'") as caught:
            check_pipeline((lower, Spoil(), below), programs=generated, examples=10, seed=1)
        assert "nn.add" in str(caught.value)
        assert "mine.twice" not in str(caught.value).partition("The program before it")[2]
