"""Advice names the layers to cut across chips, and holds when it is followed."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import onnx
import pytest
from some_models import model, node

from abele.backends.target import resolve_target
from abele.ir.errors import DoesNotFit, InputError
from abele.tools import Executable, Training, compile_model
from abele.tools.advice import sharding
from abele.tools.advice.memory_map import memory_map
from abele.tools.advice.room import CompileSettings
from abele.tools.advice.sharding import shardings

LINKS = "links.topology=ladder,links.chips=4"
SPELLING = f"tiny:16,{LINKS},memory.bytes_per_tile={{}},memory.reserved_bytes=4000"


def network() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in {"a": (16, 128), "b": (128, 128), "c": (128, 8)}.items()
    }
    nodes = [node("MatMul", "x a", "h"), node("MatMul", "h b", "i"), node("MatMul", "i c", "y")]
    for each, name in zip(nodes, ("small", "large", "last"), strict=True):
        each.name = name
    return model(nodes, {"x": ["N", 16]}, ["y"], weights)


def compiled(target: str, shard: tuple[str, ...] = (), *, unbounded: bool = True) -> Executable:
    return compile_model(
        network(),
        target,
        batch=8,
        train=Training(loss="mean_square", momentum=0.5),
        replicas="4:ring",
        shard=shard,
        unbounded=unbounded,
        cache=False,
    )


def test_the_layer_with_the_largest_weight_is_cut_first_and_then_it_fits():
    roomy = SPELLING.format(100_000)
    most, cut = (compiled(roomy, s).memory.max_tile_bytes for s in ((), ("large:n=4",)))
    assert cut < most
    target = SPELLING.format(cut)
    with pytest.raises(DoesNotFit):
        compiled(target, unbounded=False)
    exe = compiled(target)
    own = CompileSettings(resolve_target(target))
    tried = [*shardings(memory_map(exe), exe, own, (), lambda other: compiled(target, other.shard))]
    assert tried[0].change.startswith("--shard large:n=4")
    assert [each.fits for each in tried] == [False] * (len(tried) - 1) + [True]
    followed = compiled(target, tuple(tried[-1].change.split()[1::2]), unbounded=False)
    assert followed.memory.max_tile_bytes == tried[-1].bytes


def test_nothing_is_cut_on_one_chip_or_where_the_program_fits():
    exe = compiled(SPELLING.format(100_000))
    found, own = memory_map(exe), CompileSettings(exe.target)
    assert found.fits
    assert not [*shardings(found, exe, own, (), lambda _: exe)]
    one = replace(own, target=resolve_target("tiny:4"))
    assert not [*shardings(replace(found, shortage="x"), exe, one, (), lambda _: exe)]


def test_a_layer_that_no_plan_cuts_is_left_out():
    exe = compiled(SPELLING.format(100_000))
    found = replace(memory_map(exe), shortage="x")

    def refused(other: CompileSettings) -> Executable:
        if any(each.startswith("large:") for each in other.shard):
            raise InputError("no plan")
        return exe

    tried = [*shardings(found, exe, CompileSettings(exe.target), (), refused)]
    assert tried
    assert all("large" not in each.change for each in tried)


def test_layers_that_the_user_has_cut_are_not_tried():
    exe = compiled(SPELLING.format(100_000))
    found = replace(memory_map(exe), shortage="x")
    own = CompileSettings(exe.target)
    with patch.object(sharding, "ROUNDS", 1):
        tried = [*sharding.shardings(found, exe, own, ("large:n=2",), lambda _: exe)]
    assert [each.change for each in tried] == ["--shard small:n=4"]
