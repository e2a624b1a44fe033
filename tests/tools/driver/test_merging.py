from pathlib import Path
from runpy import run_path

import numpy as np

from abele.dialects import nn
from abele.passes.merge_products import MergeProducts
from abele.tools.driver.compile import compile_model
from abele.tools.driver.compile_anew import read_model
from abele.tools.driver.context import new_context
from abele.tools.driver.decoding.asked import Decoding
from abele.tools.driver.executable import Executable
from abele.tools.driver.merging import with_products
from abele.tools.driver.request import Request
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


def test_both_programs_of_a_decoder_read_weights_in_one_form():
    """A product of many rows gains less from merging, but would read a second copy of weights."""
    make = run_path(str(Path(__file__).parents[3] / "examples" / "make_decoders.py"))
    sizes = make["Sizes"](layers=1, width=768, heads=12, groups=12, hidden=16, words=11)
    model, context = make["llama"](sizes), new_context()

    def products(new: int | tuple[int, int], tokens: int, rows: int) -> list[tuple[int, ...]]:
        dims = {"batch_size": 1, "past_sequence_length": (0, 64), "sequence_length": new}
        program = read_model(Request(model, "mk2", dims=dims, decoding=Decoding(tokens)), context)
        first = with_products((), program, "mk2", rows)[0]
        assert isinstance(first, MergeProducts)
        first.apply(context, program.module)
        found = [op for op in program.module.walk() if isinstance(op, nn.MatMulOp)]
        return [nn.shape_of(op.rhs) for op in found if len(nn.shape_of(op.rhs)) == 2]

    generating, reading = products(1, 4, 1), products((1, 64), 0, 1)
    assert generating == reading
    assert (768, 3 * 768) in reading
    assert (768, 3 * 768) not in products((1, 64), 0, 0)


def test_a_program_that_stores_nothing_keeps_the_two_sums_of_its_softmax(tmp_path: Path):
    path = tmp_path / "whole.onnx"
    path.write_bytes(decoder(SHAPE).SerializeToString())
    exe = compile_model(path, "mk2", cache=False)
    assert "summarize-softmax" not in exe.profile["seconds_by_pass"]
