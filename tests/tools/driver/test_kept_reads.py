from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from abele.tools.driver import compile_anew
from abele.tools.driver.compile import compile_model
from abele.tools.driver.kept_reads import MOST, KeptReads

EXAMPLES = Path(__file__).parents[3] / "examples"
DIGITS = EXAMPLES / "digits.onnx"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models that are read."""
    found: list[str] = []
    own = compile_anew.read_program

    def read(model: Any, *given: Any) -> Any:
        found.append(Path(model).name)
        return own(model, *given)

    monkeypatch.setattr(compile_anew, "read_program", read)
    return found


def compiled(path: Path, target: str = "tiny:4", **options: Any) -> Any:
    return compile_model(path, target, cache=False, **options)


@pytest.mark.parametrize("name", ["digits.onnx", "recurrent.mlir"])
def test_a_model_is_read_once_for_many_targets_and_programs_are_the_same(
    name: str, reads: list[str]
):
    path, options = EXAMPLES / name, {"batch": 2} if name == "digits.onnx" else {}
    with KeptReads().used():
        kept = [compiled(path, f"tiny:{tiles}", **options) for tiles in (4, 8)]
    assert reads == [name]
    for exe, tiles in zip(kept, (4, 8), strict=True):
        fresh = compiled(path, f"tiny:{tiles}", **options)
        assert str(exe.module_at("exchange")) == str(fresh.module_at("exchange"))
        inputs = {each.name: np.ones(each.shape, each.dtype) for each in fresh.inputs}
        found = exe.run(inputs)
        for key, value in fresh.run(inputs).items():
            np.testing.assert_array_equal(found[key], value)


def test_what_decides_the_program_reads_again(reads: list[str], tmp_path: Path):
    path = tmp_path / "m.onnx"
    path.write_bytes(DIGITS.read_bytes())
    with KeptReads().used():
        for batch in (1, 2, 1):
            compiled(path, batch=batch)
        assert len(reads) == 2
        path.write_bytes((EXAMPLES / "attention.onnx").read_bytes())
        compiled(path, batch=1)
        assert len(reads) == 3


def test_a_file_of_weights_that_has_changed_is_read_again(reads: list[str], tmp_path: Path):
    path, data = tmp_path / "far.onnx", tmp_path / "far.bin"
    onnx.save_model(
        onnx.load(DIGITS), path, save_as_external_data=True, location=data.name, size_threshold=1024
    )
    with KeptReads().used():
        before, _ = (compiled(path, batch=1) for _ in range(2))
        data.write_bytes(bytes(data.stat().st_size))
        after = compiled(path, batch=1)
    assert len(reads) == 2
    assert str(after.module_at("exchange")) != str(before.module_at("exchange"))


def test_few_models_are_kept(reads: list[str]):
    with KeptReads().used():
        for batch in (*range(1, MOST + 2), 1):
            compiled(DIGITS, batch=batch)
    assert len(reads) == MOST + 2


def test_nothing_is_kept_outside_a_block(reads: list[str]):
    for _ in range(2):
        compiled(DIGITS, batch=1)
    assert len(reads) == 2
