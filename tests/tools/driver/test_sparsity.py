from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from abele.dialects import nn
from abele.ir.support.errors import InputError
from abele.tools import Training, compile_model
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.driver.request import Request
from abele.tools.driver.sparsity import Sparsity, read_sparsity
from abele.tools.views.planning.plan import plan_model
from abele.tools.views.planning.tables import sparse_table

BATCH, INPUTS, HIDDEN, OUTPUTS = 32, 128, 256, 64


def network(folder: Path, *, zeros: bool = False) -> Path:
    """Two dense layers with a relu between: one weight is stored by terms, one by outputs."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(INPUTS, HIDDEN)), rng.normal(size=(OUTPUTS, HIDDEN))
    if zeros:
        first[:, 16:] = 0
    weights = {"w1": first, "b1": rng.normal(size=HIDDEN), "w2": second}
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], name="fc1"),
            helper.make_node("Relu", ["h"], ["r"], name="relu"),
            helper.make_node("Gemm", ["r", "w2"], ["y"], name="fc2", transB=1),
        ],
        "network",
        [tensor("x", onnx.TensorProto.FLOAT, [BATCH, INPUTS])],
        [tensor("y", onnx.TensorProto.FLOAT, [BATCH, OUTPUTS])],
        [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()],
    )
    path = folder / "network.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    return path


def sparse_products(exe) -> int:
    """The products at related points, which nothing else of these networks makes."""
    found = (op for op in exe.module_at("partition").walk() if op.name == "partition.compute")
    return sum(bool(op.structure().space.relations) for op in found)


def test_pruned_weights_are_multiplied_without_their_zeros(tmp_path):
    path, notes = network(tmp_path), []
    dense = compile_model(path, "mk2:256", cache=False)
    exe = compile_model(path, "mk2:256", sparsity="16x16:0.9", cache=False, on_note=notes.append)
    assert notes == [
        "90 % of the blocks of 16x16 are 0 now in w1, w2",
        "2 of 2 products with a known matrix leave zeros out (fc1/product, fc2); abele plan shows "
        "both prices of each",
    ]
    assert exe.notes == tuple(notes[1:])
    assert sparse_products(exe)
    assert exe.profile["cycles"] < dense.profile["cycles"]
    kept = {
        op.sym_name.data: op.value.array
        for op in exe.module_at("nn").walk()
        if isinstance(op, nn.StateOp)
    }
    blocks = kept["w1"].reshape(INPUTS // 16, 16, HIDDEN // 16, 16)
    held = (blocks != 0).any(axis=(1, 3))
    assert held.sum() == held.size - int(0.9 * held.size)
    x = np.random.default_rng(1).normal(size=(BATCH, INPUTS)).astype(np.float32)
    hidden = np.maximum(x @ kept["w1"] + kept["b1"], 0)
    np.testing.assert_allclose(exe.run({"x": x})["y"], hidden @ kept["w2"].T, rtol=2e-4, atol=1e-3)


def test_weights_are_pruned_through_transposes(tmp_path):
    weight = np.random.default_rng(0).normal(size=(16, 32)).astype(np.float32)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Transpose", ["w"], ["turned"], perm=[1, 0]),
            helper.make_node("MatMul", ["x", "turned"], ["y"]),
        ],
        "turned",
        [info("x", onnx.TensorProto.FLOAT, [4, 32])],
        [info("y", onnx.TensorProto.FLOAT, [4, 16])],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    exe = compile_model(model, "tiny:4", sparsity="8x16:0.5", cache=False)
    x = np.eye(4, 32, dtype=np.float32)
    found = [exe.run({"x": np.roll(x, 4 * i, axis=1)})["y"] for i in range(8)]
    # Blocks are outputs by terms: 16 x 32 in 2 x 2 blocks.
    matrix = np.concatenate(found).T
    blocks = matrix.reshape(2, 8, 2, 16)
    held = (blocks != 0).any(axis=(1, 3))
    assert held.sum() == 2
    wanted = np.where(held[:, None, :, None], weight.reshape(2, 8, 2, 16), 0)
    np.testing.assert_allclose(blocks, wanted, rtol=1e-6)


@pytest.mark.parametrize("steps", ["", "reshape", "cast", "reshape cast turn"])
def test_constants_are_pruned_through_what_moves_their_elements(steps, tmp_path):
    weight = np.random.default_rng(0).integers(1, 9, (32, 16))
    held, shape, kind = weight, "32x16", "f32"
    text: list[str] = []
    if "turn" in steps:
        held, shape = held.T, "16x32"
        text.insert(0, "%t = nn.transpose %{} [1, 0] : (tensor<16x32xf16>) -> tensor<32x16xf16>")
    if "cast" in steps:
        kind = "f16"
        text.insert(0, f"%c = nn.cast %{{}} : (tensor<{shape}xf32>) -> tensor<{shape}xf16>")
    if "reshape" in steps:
        sizes = shape.replace("x", ", ")
        text.insert(
            0, f"%s = nn.reshape %{{}} to [{sizes}] : (tensor<512xf32>) -> tensor<{shape}xf32>"
        )
    lines, last = [], "w"
    for line in text:
        lines.append(line.format(last))
        last = line[1]
    numbers = ", ".join(f"{n}.0" for n in held.ravel())
    first = "512" if "reshape" in steps else shape
    path = tmp_path / "net.mlir"
    path.write_text(f"""func.func @main(%x: tensor<4x32x{kind}>) -> tensor<4x16x{kind}> {{
      %w = nn.constant <[{numbers}] : tensor<{first}xf32>> : tensor<{first}xf32>
      {chr(10).join(lines)}
      %0 = nn.matmul %x, %{last}
          : (tensor<4x32x{kind}>, tensor<32x16x{kind}>) -> tensor<4x16x{kind}>
      func.return %0 : tensor<4x16x{kind}>
    }}""")
    exe = compile_model(path, "tiny:4", sparsity="8x16:0.75", cache=False)
    x = np.eye(4, 32).astype(np.float16 if kind == "f16" else np.float32)
    found = [exe.run({"arg0": np.roll(x, 4 * i, axis=1)})["out0"] for i in range(8)]
    # Blocks are outputs by terms: 16 x 32 in 2 x 2 blocks, of which the largest stays.
    blocks = weight.T.reshape(2, 8, 2, 16)
    largest = (blocks**2).sum(axis=(1, 3)) == (blocks**2).sum(axis=(1, 3)).max()
    wanted = np.where(largest[:, None, :, None], blocks, 0).reshape(16, 32)
    np.testing.assert_array_equal(np.concatenate(found).T, wanted)


def test_zeros_that_a_model_has_are_found(tmp_path):
    path = network(tmp_path, zeros=True)
    exe = compile_model(path, "mk2:256", sparsity="zeros", cache=False)
    assert sparse_products(exe) == 1
    x = np.random.default_rng(1).normal(size=(BATCH, INPUTS)).astype(np.float32)
    dense = compile_model(path, "mk2:256", cache=False)
    found, wanted = (each.run({"x": x})["y"] for each in (exe, dense))
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-3)


def test_plans_and_bisection_are_of_the_pruned_program(tmp_path):
    path = network(tmp_path)
    asked = Request(path, "mk2:256", sparsity="16x16:0.9", passes="nn")
    sparse = plan_model(asked).plan.operators
    dense = plan_model(replace(asked, sparsity="")).plan.operators
    assert [each.node for each in dense] == ["fc1/product+fc1+relu", "fc2"]
    # Rows of a product that are dealt to bands are put back in their order.
    assert [each.node for each in sparse] == [
        *("fc1/product/dealt", "fc1/product/order", "fc1+relu", "fc2/dealt", "fc2/order")
    ]
    assert sum(each.cycles for each in sparse) < sum(each.cycles for each in dense)
    both = plan_model(asked).plan
    assert [each.node for each in both.sparse] == ["fc1/product", "fc2"]
    for each, row in zip(both.sparse, both.to_dict()["sparse_products"], strict=True):
        assert each.sparse < each.dense
        assert (row["dense"], row["sparse"], row["kept"]) == (each.dense, each.sparse, "")
    table = sparse_table(both, 120)
    assert table is not None
    assert table.row_count == 2
    assert sparse_table(plan_model(replace(asked, sparsity="")).plan) is None
    verdict = bisect(Request(path, "tiny:16", sparsity="16x16:0.9"))
    assert verdict.passed
    assert "multiply-sparse" in verdict.passes


def test_plans_are_of_the_buckets_of_a_constant_pattern(tmp_path):
    """As compiled programs are."""
    path, types = tmp_path / "product.mlir", "tensor<2x2x2xf32>, tensor<4x8xf32>"
    path.write_text(f"""func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {{
      %i = nn.constant <[0, 1] : tensor<2xi32>> : tensor<2xi32>
      %v = nn.constant <[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0] : tensor<2x2x2xf32>>
          : tensor<2x2x2xf32>
      %0 = nn.block_matmul %v, %x at %i, %i size 4
          : ({types}, tensor<2xi32>, tensor<2xi32>) -> tensor<4x8xf32>
      func.return %0 : tensor<4x8xf32>
    }}""")
    planned = plan_model(Request(path, "tiny:4", passes="nn")).plan.operators
    assert [each.op for each in planned] == ["nn.compute"]


def test_the_option_is_a_pass_before_those_of_nn():
    settled = Request("x.onnx", "tiny:8", sparsity="8x16", precision="float16").settled()
    assert settled.passes == (
        'narrow-floats{to=f16 states=unseen},decompose,multiply-sparse{block=8x16 target="tiny:8"},'
        "nn,partition,tile,exchange"
    )
    assert settled.settled().passes == settled.passes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("zeros", Sparsity(None, 0.0)),
        ("16x8", Sparsity((16, 8), 0.0)),
        ("4x4:0.75", Sparsity((4, 4), 0.75)),
    ],
)
def test_the_option_is_read(text, found):
    assert read_sparsity(text) == found


@pytest.mark.parametrize("text", ["16", "16x", "0x4", "x4:0.5", "4x4:", "4x4:x", "-4x4", "zeros:1"])
def test_an_option_of_another_form_is_refused(text):
    with pytest.raises(InputError, match=f"--sparsity {text}; need zeros, HEIGHTxWIDTH, or"):
        read_sparsity(text)


@pytest.mark.parametrize("share", ["1", "-0.1", "nan", "inf"])
def test_a_share_outside_0_to_1_is_refused(share):
    with pytest.raises(InputError, match=f"share {share}; need at least 0 and less than 1"):
        read_sparsity(f"4x4:{share}")


def test_blocks_that_no_weight_has_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"no weight of a product has such blocks: those of w1"):
        compile_model(network(tmp_path), "tiny:4", sparsity="7x7:0.5", cache=False)


def test_training_and_pipelines_without_nn_are_refused(tmp_path):
    path = network(tmp_path)
    with pytest.raises(InputError, match="need a pipeline with nn"):
        compile_model(path, "tiny:4", sparsity="zeros", passes="partition", cache=False)
    with pytest.raises(InputError, match="and training, which changes the weights"):
        compile_model(path, "tiny:4", sparsity="zeros", train=Training(), cache=False)
