"""Programs whose states are in remote memory: the same bits, fewer bytes on the tiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from some_models import model, node, random

from abele.backends.machine import Machine
from abele.dialects.levels import PARTITION
from abele.dialects.steps import Input, Load, Output, Store
from abele.ir.errors import DoesNotFit, InputError
from abele.ir.upstream import Context, ModuleOp
from abele.passes.convert_partition_to_tile import ConvertPartitionToTile
from abele.passes.train import Train
from abele.tools.driver.compile import compile_model
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.search.contracts import with_apply

TARGET = "tiny:4"
STEPS = 3


def network():
    weights = {"w": random((8, 16), 1), "v": random((16, 4), 2)}
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "a"), node("MatMul", "a v", "y")]
    return model(nodes, {"x": [8, 8]}, ["y"], weights)


def compiled(remote: tuple[str, ...], target: str = TARGET, **options: object):
    train = Train(loss="mean_square", optimizer="adam", learning_rate=0.01)
    return compile_model(network(), target, train=train, remote=remote, cache=False, **options)


def states_after_steps(exe) -> dict[str, np.ndarray]:
    """The states after some steps on a strict machine."""
    machine = Machine(exe.module_at("exchange"), exe.target, strict=True)
    for step in range(STEPS):
        inputs = {
            each.name: random(each.shape, 10 * step + i) if each.shape else np.float32(0.1)
            for i, each in enumerate(exe.inputs)
        }
        machine.run(inputs)
    names = [name for name, v in machine.variables.items() if v.state is not None]
    return {name: machine.read(name) for name in (*names, *machine.remote_states)}


@pytest.fixture(scope="module")
def plain():
    return compiled(())


def test_moments_in_remote_memory_train_the_same_weights_bit_for_bit(plain):
    exe = compiled(("optimizer",))
    remote = Machine(exe.module_at("exchange"), exe.target).remote_states
    assert len(remote) == 4
    assert all(name.rpartition(".")[0] in ("w", "v") for name in remote)
    expected, found = states_after_steps(plain), states_after_steps(exe)
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        assert found[name].tobytes() == array.tobytes(), name
    moments = sum(op.bytes for op in remote.values())
    assert exe.memory.remote_bytes == exe.profile["remote_bytes"] == moments
    was, now = (int(each.memory.always_live_bytes.sum()) for each in (plain, exe))
    assert was - now >= moments
    assert exe.profile["cycles"] > plain.profile["cycles"]


def test_weights_in_remote_memory_are_never_always_live(plain):
    exe = compiled(("w", "v", "optimizer"))
    assert exe.memory.always_live_bytes.sum() < plain.memory.always_live_bytes.sum() / 4
    expected, found = states_after_steps(plain), states_after_steps(exe)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)


def test_a_program_shows_and_takes_states_in_remote_memory():
    exe = compiled(("w",))
    assert {"w", "v"} <= exe.states.keys()
    new = random((8, 16), 7)
    exe.set_states({"w": new})
    assert np.array_equal(exe.states["w"], new)


def test_a_target_without_remote_memory_refuses_a_remote_home():
    with pytest.raises(InputError, match=r"target mk1:16 has none \(remote.gbytes = 0\)"):
        compiled(("w",), "mk1:16")


def test_states_that_are_too_large_for_remote_memory_do_not_fit():
    with pytest.raises(DoesNotFit, match="needs 512 bytes of remote memory, 100 available"):
        compiled(("w",), f"{TARGET},remote.gbytes=1e-7")


def test_a_link_without_bandwidth_is_refused():
    with pytest.raises(InputError, match="remote.gbytes_per_s: 0; need a number in 1e-06"):
        compiled(("w",), f"{TARGET},remote.gbytes_per_s=0")


def test_a_state_of_no_such_name_is_refused():
    with pytest.raises(InputError, match="states: q: no state of that name"):
        compiled(("q",))


# Through I/O tiles


@pytest.mark.parametrize("aside", [1, 3])
def test_states_through_io_tiles_train_the_same_weights_bit_for_bit(plain, aside: int):
    exe = compiled(("*",), f"tiny:{4 + aside}", io_tiles=aside)
    expected, found = states_after_steps(plain), states_after_steps(exe)
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        assert found[name].tobytes() == array.tobytes(), name
    whole, hidden = exe.profile["remote_cycles"], exe.profile["remote_hidden_cycles"]
    assert 0 < hidden < whole
    assert compiled(("*",)).profile["remote_hidden_cycles"] == 0


def test_states_share_no_bytes_of_io_tiles_with_what_the_host_uses():
    exe = compiled(("*",), "tiny:6", io_tiles=2)
    module = exe.module_at("exchange")
    ops, variables = list(module.walk()), Machine(module, exe.target).variables
    host = {op.destination for op in ops if isinstance(op, Input)}
    host |= {op.source for op in ops if isinstance(op, Output)}
    states = {op.destination for op in ops if isinstance(op, Load)}
    states |= {op.source for op in ops if isinstance(op, Store)}
    assert all(variables[name].placed.tiles.first >= 4 for name in host | states)
    assert max(variables[name].start + variables[name].bytes_per_tile for name in host) <= min(
        variables[name].start for name in states
    )


def test_states_that_the_io_tiles_do_not_hold_do_not_fit():
    weights = {"w": random((256, 256), 1)}
    net = model([node("MatMul", "x w", "y")], {"x": [4, 256]}, ["y"], weights)
    with pytest.raises(
        DoesNotFit, match=r"tile 16: what the host and remote.*about \d tiles aside"
    ):
        compile_model(net, "tiny:17", io_tiles=1, remote=("*",), cache=False)


# Planted bugs


def forget_stores(module: ModuleOp) -> None:
    for op in [op for op in module.walk() if isinstance(op, Store)]:
        op.detach()


def load_after_stores(module: ModuleOp) -> None:
    """Stores come before all loads of their block."""
    for op in [op for op in module.walk() if isinstance(op, Load)]:
        stores = [o for o in op.parent.ops if isinstance(o, Store) and o.remote == op.remote]
        if stores and stores[-1].next_op is not None:
            op.detach()
            stores[-1].parent.insert_op_after(op, stores[-1])


BUGS: dict[str, Callable[[ModuleOp], None]] = {
    "a store is forgotten": forget_stores,
    "a load comes after the store": load_after_stores,
}


@pytest.mark.parametrize("name", BUGS)
def test_the_kit_finds_a_planted_bug(name: str):
    def apply(ctx: Context, op: ModuleOp) -> None:
        ConvertPartitionToTile().apply(ctx, op)
        BUGS[name](op)

    with pytest.raises(Miscompiled):
        _ = check_pass(
            with_apply(ConvertPartitionToTile(), apply),
            PARTITION,
            examples=200,
            seed=2,
            reduce_seconds=0,
        )
