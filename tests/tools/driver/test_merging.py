from pathlib import Path

import numpy as np

from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable
from abele.tools.workshop.transformers.graphs import Shape, decoder, kept_caches

OWN = {"merge-products", "read-through", "summarize-softmax"}
SHAPE = Shape(layers=1, width=64, heads=4, hidden=128, words=50, tokens=16)


def step(folder: Path, passes: str = "") -> Executable:
    """A step of a small decoder."""
    path = folder / "step.onnx"
    path.write_bytes(decoder(SHAPE, step=True).SerializeToString())
    return compile_model(path, "mk2", keep=kept_caches(SHAPE), cache=False, passes=passes)


def test_a_step_of_a_decoder_takes_fewer_supersteps_by_the_passes_for_products(tmp_path: Path):
    own, other = step(tmp_path), step(tmp_path, "nn,partition,tile,exchange")
    assert own.profile["seconds_by_pass"].keys() >= OWN
    assert own.profile["supersteps"] < other.profile["supersteps"]
    assert own.profile["cycles"] < other.profile["cycles"]
    for i in range(3):
        given = {"ids": np.array([7 * i]), "position": np.array([i])}
        (found,), (expected,) = (each.run(given).values() for each in (own, other))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_pipeline_of_the_users_stays_as_it_is(tmp_path: Path):
    exe = step(tmp_path, "nn,partition,tile,exchange")
    assert not OWN & exe.profile["seconds_by_pass"].keys()
