import numpy as np
import pytest
from some_tensors import context, module_of
from xdsl.dialects.func import FuncOp

from abele.backends.reference import run_reference
from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.ir.edit import Edit, source_at
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.gradients.emit import Emitter
from abele.passes.gradients.program import end_of, entry_of, rename_results
from abele.passes.replicas.rounds import (
    BOTH,
    DIRECT,
    METHODS,
    MIDDLE,
    RING,
    Method,
    chosen,
    hops,
    load_of,
    summed,
)


def merging(
    replicas: int, shape: tuple[int, ...], method: Method, element: str = "f32"
) -> ModuleOp:
    """A program that sums the parts of replicas."""
    whole = "x".join(map(str, (replicas, *shape, element)))
    module = module_of(
        f"func.func @main(%x: tensor<{whole}>) -> tensor<{whole}> {{\n"
        f"  func.return %x : tensor<{whole}>\n}}",
        context(),
    )
    main = entry_of(module)
    assert isinstance(main, FuncOp)
    with Edit(source_at("sum", merging), main) as edit:
        emit = Emitter(edit, end_of(main), main)
        rename_results(main, {"y": summed(emit, main.args[0], method)}, edit)
    verify(module)
    return module


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("replicas", [2, 3, 4, 5, 6, 7, 8])
def test_every_method_sums_each_part_once(method: Method, replicas: int):
    rng = np.random.default_rng(replicas)
    for shape in ((replicas * 6,), (5, 7), (1,), ()):
        # Bits of different replicas do not overlap, so that a part that counts twice shows.
        parts = rng.integers(0, 4, (replicas, *shape)).astype(np.float32)
        parts *= (8.0 ** np.arange(replicas)).reshape(-1, *(1,) * len(shape)).astype(np.float32)
        found = run_reference(merging(replicas, shape, method), {"arg0": parts}).outputs["y"]
        np.testing.assert_array_equal(found, parts.sum(axis=0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("replicas", [2, 3, 4])
def test_every_method_sums_whole_numbers(method: Method, replicas: int):
    # The last bit of such numbers is lost in float32.
    parts = 2**24 + np.arange(replicas * 12, dtype=np.int32).reshape(replicas, 12)
    module = merging(replicas, (12,), method, "i32")
    found = run_reference(module, {"arg0": parts}).outputs["y"]
    np.testing.assert_array_equal(found, parts.sum(axis=0))


@pytest.mark.parametrize("replicas", [2, 4, 16])
def test_methods_exchange_as_often_and_as_much_as_published(replicas: int):
    n = replicas
    assert [(each.up, each.down) for each in hops(RING, n)] == [(1, 0)] * (n - 1)
    assert [(each.up, each.down) for each in hops(BOTH, n)] == [(0.5, 0.5)] * (n - 1)
    met = hops(MIDDLE, n)
    assert sum(each.up for each in met) == n // 2
    assert sum(each.down for each in met) == n // 2 - 1
    assert len(met) == n // 2
    assert len(hops(DIRECT, n)) == 1


@pytest.mark.parametrize(("method", "rounds"), [(RING, 3), (BOTH, 3), (MIDDLE, 2)])
def test_a_program_has_a_round_for_each_exchange(method: Method, rounds: int):
    module = merging(4, (64,), method)
    computes = [op for op in module.walk() if isinstance(op, nn.ComputeOp)]
    # A neighbour's row is one that wraps around.
    reads = [
        op
        for op in computes
        if any(access.axes[0].outside == "wrap" for access in op.structure().space.operands)
    ]
    assert len(reads) == rounds == len(hops(method, 4))


def test_the_busiest_link_carries_what_the_table_of_methods_says():
    ladder = resolve_target("mk1x4")
    for method, fragments in ((RING, 3.0), (BOTH, 3.0), (MIDDLE, 3.0)):
        assert load_of(method, 1000, 4, ladder).link_bytes == 1000 * fragments


def test_small_sums_take_few_exchanges_and_large_ones_few_bytes():
    for name in ("mk1x4", "mk1x16", "bow-pod16", "bow-pod64"):
        target = resolve_target(name)
        assert chosen(1000, target.chips, target) == DIRECT
        assert chosen(10**9, target.chips, target) in (BOTH, MIDDLE)
        for amount in (1000, 10**6, 10**9):
            fragment = -(-amount // target.chips)
            best = load_of(chosen(amount, target.chips, target), fragment, target.chips, target)
            assert best.cycles <= load_of(DIRECT, fragment, target.chips, target).cycles
