"""Decoding of frames, against all alignments, a search in plain Python, and TensorFlow's values."""

from itertools import pairwise, product
from pathlib import Path

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
from abele.tools import compile_model
from abele.tools.driver.context import new_context

INF = np.inf


def program(kind, shape, element=f64, **options) -> ModuleOp:
    types = [nn.tensor(shape, element), nn.tensor(shape[1:2], i32)]
    block = Block(arg_types=types)
    op = kind(*block.args, **options)
    block.add_ops([op, ReturnOp(*op.results)])
    return ModuleOp([FuncOp("main", (types, [each.type for each in op.results]), Region(block))])


def result(kind, logs, frames, element=f64, **options) -> list[np.ndarray]:
    """Labels, their numbers, and the logarithms of chances."""
    module = program(kind, logs.shape, element, **options)
    given = {"arg0": logs.astype(numpy_dtype(element)), "arg1": np.asarray(frames, np.int32)}
    return list(run_reference(module, given).outputs.values())


def listed(labels: np.ndarray, lengths: np.ndarray) -> list[tuple[int, ...]]:
    """The labels of each row. Checks that -1 follows them, and nothing else."""
    rows = labels.reshape(-1, labels.shape[-1]).tolist()
    counts = lengths.reshape(-1).tolist()
    assert all(set(row[n:]) <= {-1} for row, n in zip(rows, counts, strict=True))
    return [tuple(row[:n]) for row, n in zip(rows, counts, strict=True)]


def merged(path, blank: int) -> tuple[int, ...]:
    return tuple(c for i, c in enumerate(path) if c != blank and (i == 0 or path[i - 1] != c))


def by_enumeration(logs: np.ndarray, blank: int) -> dict[tuple[int, ...], float]:
    """The logarithm of the chance of all labels of a sample, [frames, classes]."""
    chances: dict[tuple[int, ...], float] = {}
    for path in product(range(logs.shape[1]), repeat=len(logs)):
        chance = np.exp(sum(logs[t, c] for t, c in enumerate(path)))
        labels = merged(path, blank)
        chances[labels] = chances.get(labels, 0.0) + chance
    return {labels: np.log(chance) for labels, chance in chances.items() if chance}


def by_search(logs: np.ndarray, blank: int, width: int) -> list[tuple[tuple[int, ...], float]]:
    """The prefixes of a sample, [frames, classes], and the logarithms of their chances."""
    beam = {(): (0.0, -INF)}
    for row in logs:
        made: dict[tuple[int, ...], list[float]] = {}
        order: dict[tuple[int, ...], tuple[int, int]] = {}
        for rank, (prefix, (paused, said)) in enumerate(beam.items()):
            total = np.logaddexp(paused, said)
            for c, log in enumerate(row):
                if c == blank:
                    adds = [(prefix, 0, total + log)]
                    if prefix:
                        adds.append((prefix, 1, said + row[prefix[-1]]))
                else:
                    repeats = prefix[-1:] == (c,)
                    adds = [((*prefix, c), 1, (paused if repeats else total) + log)]
                for labels, which, chance in adds:
                    found = made.setdefault(labels, [-INF, -INF])
                    found[which] = np.logaddexp(found[which], chance)
                    if labels == prefix or labels not in beam:
                        order[labels] = (rank, c)
        scores = {labels: np.logaddexp(*both) for labels, both in made.items()}
        alive = [labels for labels in made if scores[labels] > -INF]
        best = sorted(alive, key=lambda labels: (-scores[labels], order[labels]))[:width]
        beam = {labels: tuple(made[labels]) for labels in best}
    return [(labels, float(np.logaddexp(*both))) for labels, both in beam.items()]


@pytest.mark.parametrize("blank", [0, 1, 2])
def test_a_wide_search_finds_the_chances_of_all_alignments(blank: int):
    logs, frames = np.random.default_rng(blank).normal(size=(4, 3, 3)), [4, 2, 0]
    found = result(nn.CtcBeamOp, logs, frames, blank=blank, width=32, paths=32)
    labels = listed(*found[:2])
    for n, count in enumerate(frames):
        wanted = by_enumeration(logs[:count, n], blank)
        own = slice(32 * n, 32 * n + len(wanted))
        assert labels[own] == sorted(wanted, key=lambda each: -wanted[each])
        np.testing.assert_allclose(found[2][n, : len(wanted)], sorted(wanted.values())[::-1], 1e-12)
        # There are no other labels, and what is left has none, and no chance.
        assert labels[own.stop : 32 * (n + 1)] == [()] * (32 - len(wanted))
        assert (found[2][n, len(wanted) :] == -INF).all()


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_a_narrow_search_keeps_the_likeliest_prefixes_of_each_frame(width: int):
    draw = np.random.default_rng(width)
    logs = 2 * draw.normal(size=(9, 6, 4))
    # Some classes have no chance.
    logs[draw.random(logs.shape) < 0.2] = -INF
    frames = draw.integers(5, 10, 6)
    found = result(nn.CtcBeamOp, logs, frames, width=width, paths=width)
    labels = listed(*found[:2])
    for n, count in enumerate(frames):
        wanted = by_search(logs[:count, n], 0, width)
        none = [()] * (width - len(wanted))
        assert labels[width * n : width * (n + 1)] == [each for each, _ in wanted] + none
        np.testing.assert_allclose(found[2][n, : len(wanted)], [c for _, c in wanted], 1e-12)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_best_of_many_candidates_are_found_in_blocks(width: int):
    """In several rounds, with a block that is not full, and with equal scores in one frame."""
    draw = np.random.default_rng(width)
    logs = draw.normal(size=(4, 2, 150))
    logs[0] = draw.integers(-2, 1, logs.shape[1:])
    logs[draw.random(logs.shape) < 0.2] = -INF
    found = result(nn.CtcBeamOp, logs, [4, 1], blank=70, width=width, paths=width)
    labels = listed(*found[:2])
    for n, count in enumerate([4, 1]):
        wanted = by_search(logs[:count, n], 70, width)
        assert labels[width * n : width * (n + 1)] == [each for each, _ in wanted]
        np.testing.assert_allclose(found[2][n], [c for _, c in wanted], 1e-12)


def test_a_prefix_that_was_dropped_comes_back_as_one_that_others_continue():
    """The search drops a prefix, keeps one that continues it, and reaches the first one again."""
    logs = np.random.default_rng(107).normal(size=(9, 4)) * 2
    wanted, beams = by_search(logs, 0, 3), [set(dict(by_search(logs[:n], 0, 3))) for n in range(10)]
    assert any(
        one not in before and any(other[:-1] == one for other in before & after)
        for before, after in pairwise(beams)
        for one in after
    )
    found = result(nn.CtcBeamOp, logs[:, None], [9], width=3, paths=3)
    assert listed(*found[:2]) == [labels for labels, _ in wanted]
    np.testing.assert_allclose(found[2][0], [chance for _, chance in wanted], 1e-12)


def test_prefixes_with_the_same_chance_are_listed_by_their_first_prefix_and_by_label():
    """The prefix itself counts as the blank: here as 1, between labels 0 and 2."""
    logs = np.zeros((2, 1, 3))
    found = result(nn.CtcBeamOp, logs, [1], blank=1, width=3, paths=3)
    assert listed(*found[:2]) == [(0,), (), (2,)]
    # (0) and (2) have three alignments each, and four labels have one.
    found = result(nn.CtcBeamOp, logs, [2], blank=1, width=6, paths=6)
    assert listed(*found[:2]) == [(0,), (2,), (0, 2), (), (2, 0)] + [()]


def test_the_most_likely_alignment_is_that_of_the_largest_chance_of_each_frame():
    logs = np.random.default_rng(0).normal(size=(7, 5, 3))
    for blank in range(3):
        frames = [7, 5, 2, 1, 0]
        labels, lengths, chances = result(nn.CtcGreedyOp, logs, frames, blank=blank)
        wanted = [merged(logs[:n, i].argmax(1), blank) for i, n in enumerate(frames)]
        assert listed(labels, lengths) == wanted
        best = [logs[:n, i].max(1).sum() for i, n in enumerate(frames)]
        np.testing.assert_allclose(chances, best, 1e-12)


def test_of_classes_with_the_same_chance_the_first_one_counts():
    labels, lengths, _ = result(nn.CtcGreedyOp, np.zeros((3, 1, 4)), [3], blank=2)
    assert listed(labels, lengths) == [(0,)]


LOGITS = np.sin(np.arange(5 * 2 * 4) * 1.7).reshape(5, 2, 4) * 3


def test_labels_are_those_of_tensorflow():
    """tf.nn.ctc_beam_search_decoder and ctc_greedy_decoder of TensorFlow 2.21 on these logits."""
    logs = LOGITS - np.log(np.exp(LOGITS).sum(2, keepdims=True))
    found = result(nn.CtcBeamOp, logs, [5, 3], f32, blank=3, width=8, paths=2)
    assert listed(*found[:2]) == BEAM
    np.testing.assert_allclose(found[2], BEAM_CHANCES, 1e-5)
    found = result(nn.CtcGreedyOp, LOGITS, [5, 3], f32, blank=3)
    assert listed(*found[:2]) == GREEDY
    np.testing.assert_allclose(found[2], GREEDY_SUMS, 1e-5)


BEAM = [(1, 0, 2), (1, 2), (1, 0), (0,)]
BEAM_CHANCES = [[-0.31332916, -2.5749805], [-0.50832134, -1.3152413]]
GREEDY = [(1, 0, 2), (1, 0)]
GREEDY_SUMS = [13.859797, 8.3516407]


@pytest.mark.parametrize("kind", [nn.CtcGreedyOp, nn.CtcBeamOp])
def test_minus_one_stands_for_all_frames_and_too_many_are_a_fault(kind):
    wanted, found = (result(kind, LOGITS, frames) for frames in ([5, 4], [-1, -2]))
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(IndexFault, match=r"index 6 at \[1\]"):
        result(kind, LOGITS, [5, 6])


@pytest.mark.parametrize("kind", [nn.CtcGreedyOp, nn.CtcBeamOp])
def test_chances_of_narrow_floats_are_rounded_once(kind):
    narrow = LOGITS.astype(np.float16)
    wanted = result(kind, narrow, [5, 3])
    found = result(kind, narrow, [5, 3], f16)
    np.testing.assert_array_equal(found[0], wanted[0])
    assert found[2].dtype == np.float16
    np.testing.assert_allclose(found[2], wanted[2], 1e-3)


@pytest.mark.parametrize("kind", [nn.CtcGreedyOp, nn.CtcBeamOp])
def test_no_samples_have_no_labels(kind):
    labels, lengths, _ = result(kind, np.zeros((3, 0, 2)), [])
    assert (labels.size, lengths.size) == (0, 0)


def test_labels_are_found_on_a_machine(tmp_path: Path):
    module = program(nn.CtcBeamOp, (3, 1, 3), f32, blank=1, width=2, paths=2)
    given = {"arg0": LOGITS[:3, :1, :3].astype(np.float32), "arg1": np.array([3], np.int32)}
    wanted = run_reference(module, given).outputs
    path = tmp_path / "beam.mlir"
    path.write_text(str(module))
    found = compile_model(path, target="tiny:2").run(given)
    assert list(found) == list(wanted)
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], 1e-5)


def test_the_number_of_operations_does_not_depend_on_the_frames():
    def count(frames: int) -> int:
        module = program(nn.CtcBeamOp, (frames, 2, 5), f32, width=8, paths=3)
        Decompose().apply(new_context(), module)
        return sum(1 for _ in module.walk())

    assert count(4) == count(400)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((0, 2, 3), {}, "need frames, samples and classes, and a frame and a class at least"),
        ((4, 2, 3), {"blank": 3}, r"blank 3 of 3 classes; need 0\.\.2"),
        ((4, 2, 3), {"blank": -1}, r"blank -1 of 3 classes; need 0\.\.2"),
        ((4, 2, 3), {"width": 0}, "width: entry 0 is 0; need 1 or more"),
        ((4, 2, 3), {"width": 4, "paths": 5}, r"5 paths of width 4; need 1\.\.4"),
        ((4, 2, 3), {"paths": 0}, r"0 paths of width 16; need 1\.\.16"),
        ((4, 2, 3), {"width": 1 << 30}, "width 1073741824 of 3 classes; need at most 715827882"),
    ],
)
def test_what_does_not_fit_is_refused(shape, options, message: str):
    with pytest.raises((Unmet, VerifyException), match=message):
        program(nn.CtcBeamOp, shape, **options)
