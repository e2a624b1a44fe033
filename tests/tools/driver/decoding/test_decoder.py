"""Decoders generate the tokens that onnxruntime does, with the cache and the loop on the device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from lengths import large

from abele.dialects import control, nn
from abele.ir.errors import InputError
from abele.tools.debug.run_check import relative_error
from abele.tools.driver.compile_anew import read_model
from abele.tools.driver.context import new_context
from abele.tools.driver.decoding.asked import BOUNDS, Decoding
from abele.tools.driver.decoding.decoder import GENERATE, READ, Decoder, Sampling, check_text
from abele.tools.driver.decoding.roles import TextError
from abele.tools.driver.program import signature
from abele.tools.driver.request import Request
from abele.tools.workshop.transformers.graphs import Shape
from abele.tools.workshop.transformers.graphs import decoder as transformer

MAKE = run_path(str(Path(__file__).parents[4] / "examples" / "make_decoders.py"))
SIZES = MAKE["Sizes"](layers=1, width=32, heads=2, groups=1, hidden=48, words=61, longest=80)
TARGET, CONTEXT, PROMPT = "tiny:4", 72, [7, 3, 50, 3, 9, 11, 0, 60, 21]


@cache
def model(name: str) -> onnx.ModelProto:
    return MAKE["MODELS"][name](SIZES)


@cache
def decoder(name: str, *, drawn: bool = False) -> Decoder:
    return Decoder.compiled(
        model(name), TARGET, prompt=4, context=CONTEXT, tokens=24, drawn=drawn, cache=False
    )


def with_floats(floats: onnx.ModelProto, packed: onnx.ModelProto) -> onnx.ModelProto:
    """A model with the weights of another one, of which some have 4 bits and a scale for each
    block."""
    held = {each.name: onnx.numpy_helper.to_array(each) for each in packed.graph.initializer}
    made = onnx.ModelProto()
    made.CopyFrom(floats)
    for each in made.graph.initializer:
        array = held.get(each.name)
        if array is None:
            name = each.name.removesuffix(".weight")
            pairs, scales = held[f"{name}.weight_Q4"], held[f"{name}.scales"]
            # The first element of a pair is in the lower bits; 8 stands for 0.
            whole = np.stack([pairs & 15, pairs >> 4], -1).reshape(*scales.shape, -1) - np.float32(
                8
            )
            array = (whole * scales[..., None]).reshape(len(scales), -1)[:, : each.dims[0]].T
        each.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(array), each.name))
    return made


def scores(name: str, tokens: Sequence[int]) -> np.ndarray:
    """The scores of onnxruntime behind each token, of the whole sequence at once.

    Those of the forms with a cache of one size are the same as those of `llama`.
    """
    whole = model(name if name == "gpt2" else "llama")
    if name == "packed":
        whole = with_floats(whole, model(name))
    session = onnxruntime.InferenceSession(
        whole.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ids = np.array([tokens], np.int64)
    given: dict[str, Any] = {"input_ids": ids}
    for each in session.get_inputs():
        if each.name.startswith("past"):
            heads, _, size = each.shape[1:]
            given[each.name] = np.zeros((1, heads, 0, size), np.float32)
        elif each.name == "position_ids":
            given[each.name] = np.arange(ids.size)[None]
        elif each.name == "attention_mask":
            given[each.name] = np.ones((1, ids.size), np.int64)
    return session.run(["logits"], given)[0][0]


def follows(name: str, prompt: Sequence[int], found: Sequence[int]) -> bool:
    """Whether each token is the best one behind those before it."""
    best = scores(name, [*prompt, *found]).argmax(-1)
    return best[len(prompt) - 1 : -1].tolist() == [*found]


@pytest.mark.parametrize(
    "name", ["gpt2", large("llama"), large("grouped"), "packed", large("scattered")]
)
def test_64_tokens_are_those_of_onnxruntime(name: str):
    # The prompt of nine tokens takes three runs.
    assert decoder(name).prompt == 4
    found = [*decoder(name).generate(PROMPT, 64)]
    assert len(found) == 64
    assert len(set(found)) > 5
    assert follows(name, PROMPT, found)


def test_scores_of_each_token_are_those_of_the_whole_sequence():
    """The device keeps the scores of its last token as if they were a cache."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model("gpt2"))
    kept = onnx.helper.make_tensor_value_info("before", onnx.TensorProto.FLOAT, [1, 1, 61])
    shape = ["batch_size", "sequence_length", 61]
    seen = onnx.helper.make_tensor_value_info("seen", onnx.TensorProto.FLOAT, shape)
    proto.graph.input.append(kept)
    proto.graph.output.append(seen)
    proto.graph.node.append(onnx.helper.make_node("Identity", ["logits"], ["seen"]))
    watched = Decoder.compiled(
        proto, TARGET, prompt=1, context=24, tokens=1, keep={"before": "seen"}, cache=False
    )
    found, rows = list[int](), list[np.ndarray]()
    for token in watched.generate(PROMPT, 12):
        name = GENERATE if found else READ
        rows.append(watched.session.programs[name].runners.states()["before"].reshape(-1))
        found.append(token)
    wanted = scores("gpt2", [*PROMPT, *found])[len(PROMPT) - 1 : -1]
    # float32: of its 24 bits, sums in another order may change the last few.
    assert all(relative_error(*pair) < 2**-18 for pair in zip(rows, wanted, strict=True))


def test_a_model_of_fixed_sizes_has_a_cache_of_its_own_size():
    shape = Shape(layers=1, width=16, heads=2, hidden=24, words=31, tokens=12)
    fixed = Decoder.compiled(transformer(shape, step=True), TARGET, context=40, cache=False)
    assert (fixed.prompt, fixed.context) == (1, 12)
    found = [*fixed.generate([5, 30, 2], 10)]
    session = onnxruntime.InferenceSession(
        transformer(shape).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ids = np.array([5, 30, 2, *found[:-1]], np.int64)
    assert session.run(["logits"], {"ids": ids})[0].argmax(-1)[2:].tolist() == found
    with pytest.raises(InputError, match="the cache holds 12, which is enough for 10"):
        fixed.generate([5, 30, 2], 11)


def test_positions_that_the_model_does_not_know_are_refused():
    with pytest.raises(InputError, match=r"a cache of 81 tokens, and the model knows 80 positions"):
        Decoder.compiled(model("gpt2"), TARGET, context=81)


def test_a_new_prompt_begins_with_an_empty_cache():
    first = [*decoder("gpt2").generate([5], 3)]
    _ = [*decoder("gpt2").generate(PROMPT, 9)]
    assert [*decoder("gpt2").generate([5], 3)] == first
    assert follows("gpt2", [5], first)


def test_a_text_ends_when_another_prompt_is_read():
    first, second = (decoder("gpt2").generate([each], 9) for each in (5, 6))
    _ = next(first), next(second)
    with pytest.raises(InputError, match="another prompt has been read"):
        next(first)
    assert len([*second]) == 8


def test_the_loop_ends_at_a_token_that_ends_the_text():
    whole = [*decoder("llama").generate(PROMPT, 40)]
    at = next(i for i in range(9, 40) if whole.index(whole[i]) == i)
    runs = decoder("llama").session.cycles
    assert [*decoder("llama").generate(PROMPT, 40, ends=[1, whole[at]])] == whole[: at + 1]
    # A run of the device makes up to 24 tokens, so the device has ended the text.
    assert at + 1 < 24
    assert decoder("llama").session.cycles > runs
    assert [*decoder("llama").generate(PROMPT, 40, ends=[whole[0]])] == whole[:1]


def test_the_cache_stays_on_the_device_and_is_written_in_place():
    for name, program in decoder("gpt2").session.programs.items():
        assert not [each.name for each in (*program.inputs, *program.outputs) if "key" in each.name]
        module = program.module_at("nn")
        updates = [op for op in module.walk() if isinstance(op, nn.UpdateOp)]
        assert len(updates) == 2 + (name == GENERATE)
        for op in updates:
            owner = op.table.owner
            assert isinstance(owner, nn.LoadOp) or owner in [
                each.body.block for each in module.walk() if isinstance(each, control.WhileOp)
            ]
    assert decoder("gpt2").session.programs.keys() == {GENERATE, READ}


def test_both_programs_get_the_passes_for_products():
    for program in decoder("llama").session.programs.values():
        passes = program.profile["seconds_by_pass"].keys()
        assert passes >= {"merge-products", "read-through", "summarize-softmax"}


def test_drawn_tokens_depend_on_the_seed_and_not_on_the_runs():
    drawing = decoder("llama", drawn=True)
    hot = Sampling(temperature=3.0, top_k=20, top_p=0.95, seed=3)
    found = [*drawing.generate(PROMPT, 30, sampling=hot)]
    assert [*drawing.generate(PROMPT, 30, sampling=hot)] == found
    again = [*drawing.generate([*PROMPT, *found[:7]], 23, sampling=hot)]
    assert again == found[7:]
    other = Sampling(temperature=3.0, top_k=20, top_p=0.95, seed=4)
    assert [*drawing.generate(PROMPT, 30, sampling=other)] != found
    certain = [*drawing.generate(PROMPT, 12, sampling=Sampling(top_k=1))]
    assert follows("llama", PROMPT, certain)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"prompt": []}, "the prompt has no tokens"),
        ({"prompt": [3, 61]}, r"the prompt has token 61; the vocabulary has 0\.\.60"),
        ({"prompt": [-1]}, "the prompt has token -1"),
        ({"prompt": [1] * 73}, "a prompt of 73 tokens, and the cache holds 72; need a shorter"),
        ({"prompt": [1] * 70, "tokens": 4}, "the cache holds 72, which is enough for 3"),
        ({"tokens": 0}, "0 tokens to generate"),
        ({"ends": [61]}, "the text ends with token 61"),
        ({"ends": range(9)}, "9 tokens that end the text; need at most 8"),
        ({"sampling": Sampling()}, "the decoder does not draw"),
    ],
)
def test_prompts_and_tokens_that_do_not_fit_are_refused(given: dict[str, Any], match: str):
    with pytest.raises(InputError, match=match):
        decoder("gpt2").generate(**{"prompt": [1], "tokens": 2, **given})


@pytest.mark.parametrize("bounds", [(), ("top_k",), ("top_k", "top_p")])
def test_a_decoder_searches_only_the_bounds_that_it_may_be_asked_for(bounds: tuple[str, ...]):
    dims = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": (0, 7)}
    asked = Decoding(4, drawn=True, bounds=bounds)
    request = Request(model("gpt2"), TARGET, dims=dims, decoding=asked)
    module = read_model(request, new_context()).module
    given = {each.name for each in signature(module).inputs}
    assert given & {"temperature", "seed", *BOUNDS} == {"temperature", "seed", *bounds}
    searches = [op for op in module.walk() if isinstance(op, control.RepeatOp)]
    assert len(searches) == len(bounds)
    sampling = Sampling(top_k=3, top_p=0.5)
    for name in set(BOUNDS) - {*bounds}:
        with pytest.raises(InputError, match=f"{name} .*; the decoder is compiled without it"):
            sampling.inputs(61, {*BOUNDS} - {name})


def test_a_model_in_memory_has_a_short_name_in_messages():
    proto = onnx.ModelProto()
    proto.CopyFrom(model("gpt2"))
    proto.graph.input[0].name = "words"
    with pytest.raises(InputError, match="^<model>: no input of token ids is among words, "):
        Decoder.compiled(proto, TARGET)


def test_texts_are_refused_before_anything_is_planned():
    steps: list[str] = []
    with pytest.raises(TextError, match=r"the prompt has token 61; the vocabulary has 0\.\.60"):
        Decoder.compiled(
            model("gpt2"),
            TARGET,
            cache=False,
            context=CONTEXT,
            check=partial(check_text, [61], ()),
            watch=steps.append,
        )
    assert set(steps) == {"read"}


def test_bounds_that_there_are_not_are_refused():
    with pytest.raises(InputError, match="bounds: 'top'; need top_k or top_p"):
        Decoder.compiled(model("gpt2"), TARGET, bounds=["top"])


@pytest.mark.parametrize(
    ("sampling", "match"),
    [
        (Sampling(temperature=0.0), "temperature 0.0; need a number above 0"),
        (Sampling(temperature=float("nan")), "temperature nan"),
        (Sampling(top_k=62), r"top-k 62; need 0\.\.61"),
        (Sampling(top_p=0.0), "top-p 0.0"),
        (Sampling(top_p=1.5), "top-p 1.5"),
        (Sampling(seed=-1), "seed -1"),
    ],
)
def test_sampling_out_of_its_ranges_is_refused(sampling: Sampling, match: str):
    with pytest.raises(InputError, match=match):
        decoder("llama", drawn=True).generate([1], 2, sampling=sampling)
