"""Small transformers, compared with onnxruntime, and step by step with the whole sequence."""

import numpy as np
import onnxruntime
import pytest

from abele.tools.debug.run_check import relative_error
from abele.tools.driver.compile import compile_model
from abele.tools.workshop.transformers.bench import part_of, token_by_token
from abele.tools.workshop.transformers.graphs import Shape, decoder, encoder, kept_caches

SMALL = Shape(layers=2, width=8, heads=2, hidden=12, words=11, tokens=4)
IDS = np.array([3, 1, 10, 3])


def in_onnxruntime(model, inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, inputs)[0]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_an_encoder_agrees_with_onnxruntime(dtype):
    model = encoder(SMALL, dtype)
    found = compile_model(model, "tiny:4").run({"ids": IDS})["hidden"]
    assert found.dtype == dtype
    allowed = 1e-5 if dtype == "float32" else 4e-3
    assert relative_error(found, in_onnxruntime(model, {"ids": IDS})) < allowed


def test_tokens_decoded_one_by_one_are_those_of_the_whole_sequence():
    exe = compile_model(decoder(SMALL, step=True), "tiny:4", keep=kept_caches(SMALL))
    assert [each.name for each in exe.inputs] == ["ids", "position"]
    assert token_by_token(exe, SMALL, "float32", IDS) < 1e-5


def test_a_decoder_does_not_look_ahead():
    exe = compile_model(decoder(SMALL), "tiny:4")
    other = np.array([3, 1, 2, 9])
    first, second = (exe.run({"ids": ids})["logits"] for ids in (IDS, other))
    np.testing.assert_array_equal(first[:2], second[:2])
    assert (first[2:] != second[2:]).any()


def test_every_node_of_a_layer_belongs_to_a_part():
    names = {node.name for node in decoder(SMALL, step=True).graph.node}
    layers = {name for name in names if name.startswith("layer")}
    assert {part_of(name) for name in layers} == {
        "query, key, value",
        "attention",
        "attention output",
        "feed-forward",
        "normalisation, sums",
    }
    assert part_of("logits") == "logits"


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_language_model_agrees_with_onnxruntime(dtype):
    model = encoder(SMALL, dtype, language=True)
    found = compile_model(model, "tiny:4").run({"ids": IDS})["logits"]
    assert found.shape == (SMALL.tokens, SMALL.words)
    allowed = 1e-5 if dtype == "float32" else 4e-3
    assert relative_error(found, in_onnxruntime(model, {"ids": IDS})) < allowed
