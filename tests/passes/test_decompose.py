import numpy as np
import pytest
from some_tensors import context, module_of, small_integers

from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.dialects.structured import Composite
from abele.ir.instruments.record_ir import RecordIR
from abele.ir.pass_manager import PassManager
from abele.ir.provenance import origin
from abele.ir.text import print_module
from abele.ir.verify import verify
from abele.passes.decompose import Decompose

SOFTMAX = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = nn.softmax %x axis 1 : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("prob")
  func.return %0 : tensor<2x3xf32>
}
"""


def test_a_composite_becomes_its_parts():
    ctx = context()
    module = module_of(SOFTMAX, ctx)
    Decompose().apply(ctx, module)
    verify(module)
    after = module_of(
        """
        func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
          %0 = nn.reduce "max" %x axes [1] keep_dims : (tensor<2x3xf32>) -> tensor<2x1xf32>
          %1 = nn.sub %x, %0 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
          %2 = nn.exp %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
          %3 = nn.reduce "sum" %2 axes [1] keep_dims : (tensor<2x3xf32>) -> tensor<2x1xf32>
          %4 = nn.div %2, %3 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
          func.return %4 : tensor<2x3xf32>
        }""",
        ctx,
    )
    assert print_module(module, locations=False) == print_module(after, locations=False)


def test_parts_are_called_after_their_whole():
    module = module_of(SOFTMAX, context())
    Decompose().apply(context(), module)
    names = [origin(op) for op in module.walk() if op.name.startswith("nn.")]
    assert names[0] == "prob/largest"
    assert all(name == "prob" or name.startswith("prob/") for name in names if name)
    assert None not in names


PROGRAMS = {
    "nested in a loop": """
        func.func @main(%x: tensor<1x4x5x5xf32>) -> tensor<1x4x5x5xf32> {
          %0 = control.repeat 2 (%x) : (tensor<1x4x5x5xf32>) -> (tensor<1x4x5x5xf32>) {
          ^bb0(%y: tensor<1x4x5x5xf32>):
            %z = nn.lrn %y size 3 alpha 0.1 beta 0.75 bias 1.0
              : (tensor<1x4x5x5xf32>) -> tensor<1x4x5x5xf32>
            control.yield %z : tensor<1x4x5x5xf32>
          }
          func.return %0 : tensor<1x4x5x5xf32>
        }""",
    "one value twice": """
        func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
          %0 = nn.gemm %x, %x, %x transpose_rhs alpha 2.0 beta 0.5
            : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
          %1 = nn.log_softmax %0 axis 0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
          func.return %1 : tensor<4x4xf32>
        }""",
    "an average whose windows differ": """
        func.func @main(%x: tensor<1x2x5x4xf16>) -> tensor<1x2x3x3xf16> {
          %0 = nn.average_pool %x window [3, 3] stride [2, 2] dilation [1, 1] pad [1, 1] to [1, 1]
            ceil_mode : (tensor<1x2x5x4xf16>) -> tensor<1x2x3x3xf16>
          func.return %0 : tensor<1x2x3x3xf16>
        }""",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_no_bit_changes(text: str):
    ctx = context()
    module = module_of(text, ctx)
    main = next(op for op in module.walk() if op.name == "func.func")
    type_ = main.regions[0].block.args[0].type
    dtype = "float16" if "f16" in text else "float32"
    inputs = {"arg0": small_integers(1, type_.get_shape(), dtype)}
    before = run_reference(module, inputs).outputs["out0"]
    Decompose().apply(ctx, module)
    verify(module)
    assert not any(isinstance(op, Composite) for op in module.walk())
    np.testing.assert_array_equal(run_reference(module, inputs).outputs["out0"], before)
    once = print_module(module)
    Decompose().apply(ctx, module)
    assert print_module(module) == once


def test_every_rewrite_is_reported():
    module, record = module_of(SOFTMAX, context()), RecordIR()
    PassManager((Decompose(),), (record,)).run(context(), module)
    names = [each.source.name for each in record.stages[-1].changes]
    assert names == ["decompose nn.softmax"]
    assert record.stages[-1].changes[0].source.file == "composite.py"


def test_a_sum_over_more_channels_than_there_are_reads_no_more():
    inputs = {"arg0": small_integers(1, (1, 4, 5, 5), "float32")}
    windows: list[int] = []
    outputs: list[np.ndarray] = []
    for size in (8, 1 << 40):
        text = PROGRAMS["nested in a loop"].replace(
            "size 3 alpha 0.1", f"size {size} alpha {size}.0"
        )
        ctx = context()
        module = module_of(text, ctx)
        Decompose().apply(ctx, module)
        windows += [op.window.get_values()[0] for op in module.walk() if isinstance(op, nn.PoolOp)]
        outputs.append(run_reference(module, inputs).outputs["out0"])
    assert windows == [7, 7]
    np.testing.assert_array_equal(*outputs)


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("nn.lrn %x size 3 alpha 0.5 beta 0.75 bias 1.0", "2x3x0x2"),
        (
            "nn.average_pool %x window [1] stride [2] dilation [1] pad [0] to [1] ceil_mode",
            "2x3x0",
        ),
    ],
)
def test_composites_on_empty_tensors_are_decomposed_too(body: str, shape: str):
    ctx = context()
    module = module_of(
        f"""
        func.func @main(%x: tensor<{shape}xf32>) -> tensor<{shape}xf32> {{
          %0 = {body} : (tensor<{shape}xf32>) -> tensor<{shape}xf32>
          func.return %0 : tensor<{shape}xf32>
        }}""",
        ctx,
    )
    verify(module)
    Decompose().apply(ctx, module)
    verify(module)
    sizes = [int(n) for n in shape.split("x")]
    outputs = run_reference(module, {"arg0": np.zeros(sizes, np.float32)}).outputs
    assert outputs["out0"].shape == tuple(sizes)
