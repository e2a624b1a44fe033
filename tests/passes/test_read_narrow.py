from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from abele.tools.debug.run_check import check_run
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable

TEXT = """
func.func @main(%x: tensor<5x96xTYPE>) -> (tensor<5x96xf32>, tensor<5x1xKIND>) {
  %0 = nn.cast %x : (tensor<5x96xTYPE>) -> tensor<5x96xf32>
  %1, %2 = nn.summarize "COMBINER" %0 axes [1] keep_dims
      : (tensor<5x96xf32>) -> (tensor<5x1xf32>, tensor<5x1xKIND>)
  %3 = nn.sub %0, %1 : (tensor<5x96xf32>, tensor<5x1xf32>) -> tensor<5x96xf32>
  func.return %3, %2 : tensor<5x96xf32>, tensor<5x1xKIND>
}
"""


def compiled(folder: Path, combiner: str, dtype: str, *before: str) -> Executable:
    path = folder / "net.mlir"
    kind = "i32" if combiner == "argmax" else "f32"
    text = TEXT.replace("TYPE", dtype).replace("KIND", kind).replace("COMBINER", combiner)
    path.write_text(text)
    passes = ",".join((*before, "nn,partition,tile,exchange"))
    return compile_model(path, "mk2:64", passes=passes, cache=False)


@pytest.mark.parametrize("combiner", ["moments", "exp_sum", "argmax"])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_summaries_of_narrow_tensors_are_the_same_on_the_machine(
    combiner: str, dtype: str, tmp_path: Path
):
    own = compiled(tmp_path, combiner, dtype, "read-narrow")
    other = compiled(tmp_path, combiner, dtype)
    kind = np.dtype(np.float16 if dtype == "f16" else ml_dtypes.bfloat16)
    x = np.random.default_rng(0).normal(3, 2, (5, 96)).astype(kind)
    (name,) = (each.name for each in own.inputs)
    found, expected = own.run({name: x}), other.run({name: x})
    for each in expected:
        np.testing.assert_allclose(found[each], expected[each], rtol=2e-6, atol=2e-6)
    assert own.profile["exchange_bytes"] < other.profile["exchange_bytes"]
    assert not check_run(own, {name: x}, found, "machine").problem


def test_a_tensor_that_is_wide_already_stays(tmp_path: Path):
    exe = compiled(tmp_path, "moments", "f32", "read-narrow")
    assert exe.profile["ops"]["nn"] == compiled(tmp_path, "moments", "f32").profile["ops"]["nn"]
