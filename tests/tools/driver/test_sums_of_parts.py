"""The line about what micro-batches keep and replace."""

import re

from some_models import model, node, random

from abele.tools import Training, compile_model


def told(samples: int, width: int, parts: int) -> list[str]:
    """The lines about micro-batches that compiling a step of two dense layers prints."""
    nodes = [node("Gemm", "x v", "h"), node("Tanh", "h", "t"), node("Gemm", "t w", "y")]
    weights = {"v": random((8, width), 1), "w": random((width, 4), 2)}
    lines: list[str] = []
    compile_model(
        model(nodes, {"x": [samples, 8]}, ["y"], weights),
        "tiny:4",
        batch=samples,
        train=Training(loss="mean_square", micro_batches=parts),
        on_note=lines.append,
        cache=False,
    )
    return [line for line in lines if line.startswith("micro-batches")]


def numbers(line: str) -> list[int]:
    return [int(each.replace(",", "")) for each in re.findall(r"[\d,]+\d|\d", line)]


def test_sums_that_are_smaller_than_what_they_replace_save_memory():
    (line,) = told(64, 16, 4)
    sums, replaced = numbers(line)
    # The gradients of both weights, and the loss.
    assert sums == 4 * (8 * 16 + 16 * 4 + 1)
    # tanh(h), the difference from the target, and its square, of the other 48 samples.
    assert replaced == 4 * 48 * (16 + 4 + 4)
    assert "saves no memory" not in line


def test_sums_that_are_larger_are_said_to_save_none():
    (line,) = told(4, 64, 2)
    sums, replaced = numbers(line)
    assert sums >= 4 * (8 * 64 + 64 * 4) > replaced
    assert line.endswith(": this saves no memory")


def test_a_batch_in_one_part_is_not_spoken_of():
    assert told(4, 8, 1) == []
