"""Random numbers are drawn alike by every plan, and by no two runs or nodes."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.driver.load_program import load_executable

from .one_node import computed, one_node

X = np.zeros((30, 150), np.float32)


def drawing(*nodes: onnx.NodeProto, **weights: np.ndarray) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", 1, X.shape)],
        [helper.make_empty_tensor_value_info(name) for n in nodes for name in n.output],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])


UNIFORM = helper.make_node("RandomUniformLike", ["x"], ["y"], low=2.0, high=4.0)


def test_bits_do_not_depend_on_the_plan_or_the_level():
    model = drawing(UNIFORM)
    (expected,) = compile_model(model, "tiny:1").run({"x": X}, at="nn").values()
    assert 2 <= expected.min() < 2.01
    assert 3.99 < expected.max() <= 4
    for target in ("tiny:1", "tiny:16"):
        (found,) = compile_model(model, target).run({"x": X}).values()
        np.testing.assert_array_equal(found, expected)


def test_each_run_and_each_node_draws_numbers_of_its_own_until_the_program_is_reset():
    again = helper.make_node("RandomUniformLike", ["x"], ["z"], low=2.0, high=4.0)
    exe = compile_model(drawing(UNIFORM, again), "tiny:4")
    first, second = exe.run({"x": X}), exe.run({"x": X})
    drawn = [first["y"], first["z"], second["y"], second["z"]]
    assert all((a != b).mean() > 0.99 for i, a in enumerate(drawn) for b in drawn[:i])
    exe.reset()
    np.testing.assert_array_equal(exe.run({"x": X})["y"], first["y"])


def test_a_seed_chooses_the_numbers_of_a_saved_program(tmp_path):
    own = helper.make_node("RandomUniformLike", ["x"], ["z"], seed=3.0)
    compile_model(drawing(UNIFORM, own), "tiny:4").save(tmp_path / "p.abele")
    exe = load_executable(str(tmp_path / "p.abele"))
    first = exe.run({"x": X})
    exe.seed_random(5)
    other = exe.run({"x": X})
    assert (first["y"] != other["y"]).mean() > 0.99
    np.testing.assert_array_equal(first["z"], other["z"])
    exe.seed_random(0)
    np.testing.assert_array_equal(exe.run({"x": X})["y"], first["y"])
    with pytest.raises(InputError, match="seed -1; need 0 to 4294967295"):
        exe.seed_random(-1)


def drawn(operator: str, *operands: Any, **attributes: Any) -> list[np.ndarray]:
    return computed(*one_node(operator, *operands, **attributes))


def test_numbers_have_their_distributions():
    (normal,) = drawn("RandomNormal", shape=[100, 400], mean=3.0, scale=2.0)
    assert normal.dtype == np.float32
    assert abs(normal.mean() - 3) < 0.05
    assert abs(normal.std() - 2) < 0.05
    assert 0.015 < (np.abs(normal - 3) > 4.8).mean() < 0.018
    chances = np.repeat(np.array([[0, 0.2, 1]], np.float32), 20000, 0)
    (coins,) = drawn("Bernoulli", chances, dtype=onnx.TensorProto.INT32)
    assert coins.dtype == np.int32
    np.testing.assert_allclose(coins.mean(0), [0, 0.2, 1], atol=0.01)
    weights = np.log(np.array([[0.5, 0.3, 0.2], [0, 0, 1]], np.float32) + 1e-30)
    (classes,) = drawn("Multinomial", weights, sample_size=20000)
    counts = np.stack([np.bincount(row, minlength=3) for row in classes]) / 20000
    np.testing.assert_allclose(counts, [[0.5, 0.3, 0.2], [0, 0, 1]], atol=0.015)


def test_dropout_keeps_the_mean_and_says_what_it_kept():
    x = np.ones((200, 300), np.float32)
    ratio, training = np.array(0.25, np.float32), np.array(True)
    values, mask = drawn("Dropout", x, ratio, training, known=2, results=2, seed=7)
    assert abs(mask.mean() - 0.75) < 0.01
    np.testing.assert_allclose(values, np.where(mask, 4 / 3, 0), rtol=1e-6)
    with pytest.raises(InputError, match="ratio 1; need 0 or more, and less than 1"):
        drawn("Dropout", x, np.array(1, np.float32), training, known=2)
