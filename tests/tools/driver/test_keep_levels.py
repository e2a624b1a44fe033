from pathlib import Path

import numpy as np
import users_dialects
from some_models import SMALL, relu
from users_passes import LOWER

from abele.dialects.levels import level_named
from abele.tools import compile_model
from abele.tools.driver.arrays import seeded
from abele.tools.driver.keep_levels import kept_after

LEVELS = ("nn", "partition", "tile", "exchange")


def test_modules_are_kept_as_each_level_left_them():
    exe = compile_model(SMALL["classifier"](), "tiny")
    for level in LEVELS:
        names = {op.name for op in exe.module_at(level).walk()}
        assert level in {name.partition(".")[0] for name in names}
        assert [name for name in names if not level_named(level).is_legal(name)] == []
    assert any(op.name == "nn.softmax" for op in exe.module_at("nn").walk())


def test_levels_are_kept_with_any_passes_between_the_conversions(tmp_path: Path):
    path = tmp_path / "lower.py"
    path.write_text(LOWER)
    plan = "plan-splits{target=tiny}"
    spec = f"nn,{plan},lower-my-way,mark,tile,exchange"
    exe = compile_model(relu(), "tiny", passes=spec, load=[path])
    plain = compile_model(relu(), "tiny")
    assert exe.levels == LEVELS
    marked = {op.name for op in exe.module_at("partition").walk() if "marked" in op.attributes}
    assert any(name.startswith("partition.") for name in marked)
    assert exe.profile["cycles"] == plain.profile["cycles"]
    assert exe.stages.passes["mark"] > 0
    assert set(exe.stages.seconds) == set(plain.stages.seconds)


def test_the_first_module_is_the_one_after_the_pass_that_makes_the_program_runnable(tmp_path):
    with users_dialects.written(tmp_path) as (program, load):
        exe = compile_model(program, "tiny", passes=users_dialects.PASSES, load=load)
        names = [op.name for op in exe.module_at("nn").walk()]
        assert "nn.add" in names
        assert "mine.twice" not in names
        assert kept_after(exe.module_at("nn")) == "to-nn"
        one, other = (exe.run(seeded(exe.inputs), at=level)["out0"] for level in LEVELS[:2])
        np.testing.assert_allclose(one, other, rtol=1e-6)
        exe.save(tmp_path / "program.abele")
        assert kept_after(compile_model(tmp_path / "program.abele").module_at("nn")) == "to-nn"
