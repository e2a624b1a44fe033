"""Losses of alignments, against the sum over all alignments and PyTorch's values."""

from itertools import product

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f16, f32, f64, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from abele.backends.faults import IndexFault
from abele.backends.reference import run_reference
from abele.dialects import nn
from abele.dialects.dtypes import numpy_dtype
from abele.ir.unmet import Unmet
from abele.ir.upstream import VerifyException
from abele.passes.decompose import Decompose
from abele.tools.driver.context import new_context

FRAMES, SAMPLES, CLASSES, LABELS = 4, 6, 3, 2


def program(kind, shape, labels, blank=0, element=f64) -> ModuleOp:
    samples = shape[1]
    types = [nn.tensor(shape, element), nn.tensor((samples, labels), i32)]
    types += [nn.tensor((samples,), i32)] * 2
    block = Block(arg_types=types)
    op = kind(*block.args, blank=blank)
    block.add_ops([op, ReturnOp(op.result)])
    return ModuleOp([FuncOp("main", (types, [op.result.type]), Region(block))])


def result(kind, logs, labels, frames, counts, blank=0, element=f64) -> np.ndarray:
    module = program(kind, logs.shape, labels.shape[1], blank, element)
    given = [logs.astype(numpy_dtype(element))]
    given += [np.asarray(each, np.int32) for each in (labels, frames, counts)]
    return run_reference(module, {f"arg{i}": a for i, a in enumerate(given)}).outputs["out0"]


def merged(path, blank: int) -> tuple[int, ...]:
    """The labels of an alignment: one of each run of equal classes, without blanks."""
    kept = [c for i, c in enumerate(path) if i == 0 or path[i - 1] != c]
    return tuple(c for c in kept if c != blank)


def by_enumeration(logs, labels, frames, counts, blank: int) -> tuple[np.ndarray, np.ndarray]:
    """The losses, and their gradients, summed over all alignments."""
    losses, gradient = np.full(len(frames), np.inf), np.zeros(logs.shape)
    for n, (length, count) in enumerate(zip(frames, counts, strict=True)):
        wanted, total, at = tuple(labels[n, :count]), 0.0, np.zeros(logs.shape[::2])
        for path in product(range(logs.shape[2]), repeat=int(length)):
            if merged(path, blank) == wanted:
                chance = np.exp(sum(logs[t, n, c] for t, c in enumerate(path)))
                total += chance
                for t, c in enumerate(path):
                    at[t, c] += chance
        if total:
            losses[n], gradient[:, n] = -np.log(total), -at / total
    return losses, gradient


def case(blank: int):
    draw = np.random.default_rng(blank)
    logs = draw.normal(size=(FRAMES, SAMPLES, CLASSES))
    others = [c for c in range(CLASSES) if c != blank]
    labels = draw.choice(others, (SAMPLES, LABELS))
    # Labels that are equal, and so need a blank between them, in enough frames and in too few.
    labels[1] = labels[2] = others[0]
    return logs, labels, np.array([4, 4, 2, 3, 1, 0]), np.array([2, 2, 2, 0, 2, 0])


@pytest.mark.parametrize("blank", [0, 1, 2])
def test_a_loss_is_that_of_all_alignments(blank: int):
    given = case(blank)
    wanted, gradient = by_enumeration(*given, blank)
    assert np.isinf(wanted).tolist() == [False, False, True, False, True, False]
    np.testing.assert_allclose(result(nn.CtcLossOp, *given, blank), wanted, 1e-12)
    np.testing.assert_allclose(result(nn.CtcLossGradOp, *given, blank), gradient, 1e-12, 1e-12)


def test_losses_are_those_of_pytorch():
    """torch.nn.functional.ctc_loss of torch 2.13 on these logarithms, with reduction="none"."""
    logs = np.log(np.linspace(1, 24, 24).reshape(4, 2, 3) / 100)
    found = result(nn.CtcLossOp, logs, np.array([[1, 2], [2, 2]]), [4, 3], [2, 2])
    np.testing.assert_allclose(found, [7.4605, 6.8308], atol=1e-4)


def test_labels_beyond_their_number_are_not_read():
    logs, labels, frames, counts = case(0)
    wanted = result(nn.CtcLossOp, logs, labels, frames, counts)
    for none in (99, -1, 0):
        other = np.where(np.arange(LABELS) < counts[:, None], labels, none)
        np.testing.assert_array_equal(result(nn.CtcLossOp, logs, other, frames, counts), wanted)


def test_minus_one_stands_for_all_frames_and_labels():
    logs, labels, _, _ = case(0)
    every = [np.full(SAMPLES, n) for n in (FRAMES, LABELS)]
    short = [np.full(SAMPLES, -1)] * 2
    wanted = result(nn.CtcLossOp, logs, labels, *every)
    np.testing.assert_array_equal(result(nn.CtcLossOp, logs, labels, *short), wanted)


@pytest.mark.parametrize("element", [f32, f16], ids=str)
def test_narrower_losses_are_computed_in_f32_at_least(element):
    given = case(0)
    rounded = given[0].astype(numpy_dtype(element)).astype(np.float64)
    wanted, _ = by_enumeration(rounded, *given[1:], 0)
    found = result(nn.CtcLossOp, *given, element=element)
    assert found.dtype == numpy_dtype(element)
    np.testing.assert_allclose(found, wanted, 1e-6 if element == f32 else 6e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": 5}, r"index 5 .*5"),
        ({"counts": 3}, r"index 3 .*3"),
        ({"labels": 3}, r"labels_but_not_blank: index 3 at \[0, 0\] of an axis of 3"),
        ({"labels": 7}, r"labels_but_not_blank: index 7 at \[0, 0\] of an axis of 3"),
        ({"labels": -1}, r"labels_but_not_blank: index 3 at \[0, 0\] of an axis of 3"),
        ({"labels": 0}, r"labels_but_not_blank: index 3 at \[0, 0\] of an axis of 3"),
    ],
)
def test_a_number_that_is_out_of_range_is_a_fault_of_the_run(change, message: str):
    logs, labels, frames, counts = case(0)
    given = {"labels": labels, "frames": frames, "counts": counts}
    for name, value in change.items():
        given[name] = given[name].copy()
        given[name].flat[0] = value
    with pytest.raises(IndexFault, match=message):
        result(nn.CtcLossOp, logs, *given.values())


def test_the_number_of_operations_does_not_depend_on_the_frames():
    def count(frames: int) -> int:
        module = program(nn.CtcLossGradOp, (frames, 2, 5), 3, element=f32)
        Decompose().apply(new_context(), module)
        return sum(1 for _ in module.walk())

    assert count(4) == count(400)


@pytest.mark.parametrize(
    ("shape", "labels", "blank", "message"),
    [
        ((0, 2, 3), 2, 0, "need frames, samples and classes, and a frame and a class at least"),
        ((4, 2, 3), 2, 3, "blank 3 of 3 classes"),
    ],
)
def test_what_does_not_fit_is_refused(shape, labels, blank, message: str):
    with pytest.raises((Unmet, VerifyException), match=message):
        program(nn.CtcLossOp, shape, labels, blank)
