from pathlib import Path

import pytest
from training import training_step

from abele.backends.target import resolve_target
from abele.tools.advice.combined import combinations
from abele.tools.advice.memory_map import memory_map
from abele.tools.advice.room import CompileSettings
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable
from abele.tools.extensions import Extensions


@pytest.mark.large
def test_changes_that_free_memory_are_combined(tmp_path: Path):
    path = tmp_path / "step.mlir"
    path.write_text(training_step(4, 8, 8))
    own = CompileSettings(resolve_target("tiny:4,memory.bytes_per_tile=19000"))
    compiled: dict[CompileSettings, Executable] = {}

    def compile_with(how: CompileSettings) -> Executable:
        if how not in compiled:
            compiled[how] = compile_model(
                path, how.target, passes=how.passes, recompute=how.recompute, unbounded=True
            )
        return compiled[how]

    exe = compile_with(own)
    found = memory_map(exe)
    assert not found.fits
    tried = list(combinations(found, exe, own, None, compile_with, Extensions()))
    narrow = next(how for how in compiled if "narrow-floats" in how.passes)
    (both,) = (how for how in compiled if how.recompute and how.passes == narrow.passes)
    assert tried[0].change == "--precision float16 --recompute auto"
    assert tried[0].bytes == compiled[both].memory.max_tile_bytes
    assert tried[0].bytes <= compiled[narrow].memory.max_tile_bytes < exe.memory.max_tile_bytes
    assert not any("micro-batches" in each.change for each in tried)
