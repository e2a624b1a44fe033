"""Exports of PyTorch whose sizes depend on values, or have bounds (`exports/make.py`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from abele.backends.reference import run_reference
from abele.tools import Session, compile_model
from abele.tools.driver.context import new_context
from abele.tools.driver.program import signature
from abele.tools.importers import import_onnx
from abele.tools.importers.bounds import GivenSize
from abele.tools.testing.onnx_graphs.runtimes import by_onnxruntime

EXPORTS = Path(__file__).parent / "exports"
PAST, NEW = 9, 3
LENGTHS = (0, 1, 2, 3, 4, 5, 6, 7, 8, PAST)
"""The lengths of a cache: with 0, 1 and the bound."""

Arrays = dict[str, np.ndarray]


def agrees(found: Arrays, expected: Arrays) -> None:
    for name, array in expected.items():
        np.testing.assert_allclose(
            found[name], array, rtol=1e-4, atol=1e-5, strict=True, err_msg=name
        )


def reference(name: str, given: Arrays) -> Arrays:
    model = onnx.load(EXPORTS / name)
    found = ReferenceEvaluator(model).run(None, given)
    return dict(zip((each.name for each in model.graph.output), found, strict=True))


def masks() -> list[np.ndarray]:
    random = np.random.default_rng(5)
    each = [random.random((6, 5)) > p for p in (0.3, 0.6, 0.95)]
    return [*each, np.ones((6, 5), bool)]


@pytest.mark.parametrize("way", ["script", "dynamo"])
def test_a_mixture_of_experts(way: str):
    name = f"mixture.{way}.onnx"
    module = import_onnx(EXPORTS / name, new_context())
    random = np.random.default_rng(1)
    for _ in range(4):
        hidden = {"hidden": random.normal(size=(1, 6, 8)).astype(np.float32)}
        agrees(dict(run_reference(module, hidden).outputs), reference(name, hidden))


@pytest.mark.parametrize("name", ["masked", "masked_update", "chosen"])
@pytest.mark.parametrize("way", ["script", "dynamo"])
def test_rows_and_elements_that_a_mask_chooses(name: str, way: str):
    path = f"{name}.{way}.onnx"
    if not (EXPORTS / path).exists():
        pytest.skip("this exporter does not export it")
    module, random = import_onnx(EXPORTS / path, new_context()), np.random.default_rng(2)
    for mask in masks():
        given = {"x": random.normal(size=(6, 5)).astype(np.float32)}
        if name != "chosen":
            given["mask"] = mask if name == "masked_update" else mask.any(1) & mask[:, 0]
        if name == "masked" and not given["mask"].any():
            continue
        found = signature(module).trimmed(run_reference(module, given).outputs)
        agrees(found, reference(path, given))


MASKED = import_onnx(EXPORTS / "masked_update.dynamo.onnx", new_context())


@given(st.lists(st.booleans(), min_size=30, max_size=30).filter(any), st.integers(0, 9))
def test_any_mask_chooses_what_it_should(bits: list[bool], seed: int):
    x = np.random.default_rng(seed).normal(size=(6, 5)).astype(np.float32)
    mask = np.array(bits).reshape(6, 5)
    expected = x.copy()
    expected[mask] = np.exp(x[mask])
    results = run_reference(MASKED, {"x": x, "mask": mask}).outputs
    replaced, mean, total = signature(MASKED).trimmed(results).values()
    np.testing.assert_allclose(replaced, expected, rtol=1e-5)
    np.testing.assert_allclose(mean, x[mask].mean(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(total, np.cumsum(x[mask]), rtol=1e-4, atol=1e-5, strict=True)


def detection_inputs(seed: int) -> Arrays:
    """Boxes with different sizes; of seed 0, all at one place, of which one is kept."""
    random = np.random.default_rng(seed)
    corner = random.random((24, 2))
    anchors = np.concatenate([corner, corner + 0.2 + 0.3 * random.random((24, 2))], 1)
    anchors[1:] = anchors[0] if seed == 0 else anchors[1:]
    features = random.normal(size=(24, 6))
    return {"features": features.astype(np.float32), "anchors": anchors.astype(np.float32)}


@pytest.mark.parametrize("way", ["script", "dynamo"])
def test_a_detection_head_computes_with_the_boxes_that_suppression_keeps(way: str):
    path = EXPORTS / f"detection.{way}.onnx"
    module = import_onnx(path, new_context())
    own, kept = signature(module), set[int]()
    for seed in range(5):
        given = detection_inputs(seed)
        expected = by_onnxruntime(onnx.load(path), given)
        agrees(own.trimmed(run_reference(module, given).outputs), expected)
        kept.add(len(next(iter(expected.values()))))
    assert min(kept) == 1
    assert len(kept) > 2


def test_a_detection_head_runs_on_the_machine():
    path = EXPORTS / "detection.dynamo.onnx"
    exe = compile_model(path, "tiny:2")
    for seed in range(2):
        given = detection_inputs(seed)
        agrees(exe.run(given, strict=seed == 0), by_onnxruntime(onnx.load(path), given))


def decoder_inputs(past: int, new: int) -> Arrays:
    random = np.random.default_rng(past * 100 + new)
    given: Arrays = {"tokens": random.integers(0, 20, (1, new))}
    for i in range(2):
        for part in ("key", "value"):
            given[f"past.{i}.{part}"] = random.normal(size=(1, 2, past, 8)).astype(np.float32)
    return given


@pytest.mark.parametrize("way", ["script", "dynamo"])
@pytest.mark.parametrize("new", [1, (1, NEW)])
def test_one_decoder_for_all_lengths_of_its_cache(way: str, new: GivenSize):
    path = EXPORTS / f"decoder.{way}.onnx"
    module = import_onnx(path, new_context(), dims={"past": (0, PAST), "new": new})
    own = signature(module)
    for past in LENGTHS:
        rows = 1 if new == 1 else past % NEW + 1
        given = decoder_inputs(past, rows)
        fixed = import_onnx(path, new_context(), dims={"past": past, "new": rows})
        expected = dict(run_reference(fixed, given).outputs)
        full = {name: np.array(each) for name, each in own.padded(given).items()}
        for name in given:
            if name != "tokens":
                full[name][:, :, past:] = np.nan
        found = own.trimmed(run_reference(module, full).outputs)
        agrees(found, expected)
        agrees(found, reference(path.name, given))


def test_a_decoder_runs_step_by_step_on_the_machine():
    """The host hands the cache that one step returns to the next one."""
    path = EXPORTS / "decoder.dynamo.onnx"
    exe = compile_model(path, "tiny:8", dims={"past": "0..3", "new": 1})
    given = decoder_inputs(0, 1)
    for past in range(4):
        expected = reference(path.name, given)
        found = exe.run(given)
        agrees(found, expected)
        given = {"tokens": np.array([[past + 3]])} | {
            name.replace("present", "past"): array
            for name, array in found.items()
            if name.startswith("present")
        }


def test_a_session_picks_the_smallest_program_that_has_room():
    path = EXPORTS / "decoder.dynamo.onnx"
    bounds = {
        "short": {"dims": {"past": (0, 2), "new": 1}},
        "long": {"dims": {"past": (0, 5), "new": 1}},
    }
    session = Session.compiled(path, bounds, "tiny:8")
    for past, program in ((0, "short"), (2, "short"), (3, "long"), (5, "long"), (1, "short")):
        given = decoder_inputs(past, 1)
        assert session.pick(given) == program
        agrees(session.run(given), reference(path.name, given))
        assert session.current == program
