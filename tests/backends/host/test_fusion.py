"""What a machine that nobody watches leaves unwritten changes no result."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import Float16Type, Float32Type, IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Region

from abele.backends.host import fusion, tile_memory
from abele.backends.host.binders import best_binder
from abele.backends.host.fast import FastBinder
from abele.backends.host.fusion import EARLY_BYTES, FusedBinder
from abele.backends.machine import Machine, Observer
from abele.backends.target import Target, resolve_target
from abele.dialects.control import RepeatOp, YieldOp
from abele.dialects.exchange import ALIGNMENT, OutputOp, VariableOp
from abele.dialects.steps import Superstep, Vertices
from abele.ir.text import parse_module
from abele.tools.testing.generators.program import Program as GeneratedProgram
from abele.tools.testing.generators.strategies import programs

from ...strategies import Program, context, planned_programs
from ..exchange_text import lowered

pytest.importorskip("numba")

TINY = resolve_target("tiny:16,memory.bytes_per_tile=100000")
SUMS = "split [2, 2, 4] combine split [4, 2, 1]"
ALIKE = "split [4, 3, 1]"

# Parts of 46 are not all of one size.
M, K, N = 16, 32, 46


def program(op: str, shape: str, k: int = K, weights: np.ndarray | None = None) -> ModuleOp:
    """An operation on %a and %b at the exchange level, each variable at an address of its own.

    weights: what %w is, which the operation may read too.
    """
    made = context()
    held = made.blobs.add(np.zeros(1, np.float32) if weights is None else weights)
    text = f"""
    builtin.module attributes {{abele.target = "tiny:16"}} {{
      func.func @main(%a: tensor<{M}x{k}xf32>, %b: tensor<{k}x{N}xf32>) -> tensor<{shape}xf32> {{
        %w = nn.constant <"{held.digest}"> : tensor<{"x".join(map(str, held.array.shape))}xf32>
        %y = {op} -> tensor<{shape}xf32>
        func.return %y : tensor<{shape}xf32>
      }}
    }}"""
    module = lowered(Program(parse_module(text, made), made, {}, 16))
    end = 0
    for variable in module.ops:
        if isinstance(variable, VariableOp):
            variable.address = IntegerAttr(end, i64)
            end += -(-variable.bytes_per_tile // ALIGNMENT) * ALIGNMENT
    return module


def product(plan: str, k: int = K) -> ModuleOp:
    """A product of matrices, of sums of so many terms."""
    operands = f"(tensor<{M}x{k}xf32>, tensor<{k}x{N}xf32>)"
    made = f'"nn.matmul"(%a, %b) {{plan = #abele.plan<{plan}>}} : {operands}'
    return program(made, f"{M}x{N}", k)


def inputs(k: int = K) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        name: rng.standard_normal(shape, np.float32)
        for name, shape in (("arg0", (M, k)), ("arg1", (k, N)))
    }


def both(module: ModuleOp, target: Target = TINY, early_bytes: int = EARLY_BYTES) -> list[Machine]:
    """A machine that writes everything, and one that does not have to.

    early_bytes: weights of so many bytes are written while calls are bound.
    """
    with mock.patch.object(fusion, "EARLY_BYTES", early_bytes):
        return [Machine(module, target, binder=each) for each in (FastBinder, FusedBinder)]


def early() -> st.SearchStrategy[int]:
    return st.sampled_from([0, EARLY_BYTES])


def written(machine: Machine, ending: str) -> list[bool]:
    """For each tile that has a block of a variable, whether anything has been written there."""
    return held(machine, ending).any(axis=1).tolist()


def held(machine: Machine, ending: str) -> np.ndarray:
    """The bytes of a variable's blocks, by tile."""
    (name,) = (name for name in machine.variables if name.endswith(ending))
    v, placed = machine.variables[name], machine.blocks[name].placed
    bytes_ = placed.memory[:, placed.address : placed.address + v.bytes_per_tile]
    return bytes_[v.placed.first_tile : v.placed.first_tile + v.placed.cells]


def runs_equal(machines: list[Machine], given_: dict[str, np.ndarray]) -> None:
    whole, fused = machines
    for _ in range(2):
        expected = whole.run(given_)
        found = fused.run(given_)
        assert list(found) == list(expected)
        for name, values in found.items():
            assert values.tobytes() == expected[name].tobytes(), name


@settings(max_examples=40, deadline=None)
@given(planned_programs(), early())
def test_random_programs_give_the_same_bytes(program: Program, early_bytes: int):
    module, rng = lowered(program), np.random.default_rng(0)
    machines = both(module, resolve_target(program.target), early_bytes)
    # The last bits of these sums say in which order they were added up.
    runs_equal(
        machines,
        {
            name: rng.standard_normal(x.shape).astype(x.dtype) if x.dtype.kind == "f" else x
            for name, x in program.inputs.items()
        },
    )


@settings(max_examples=15, deadline=None)
@given(programs("exchange", dtypes=[Float32Type(), Float16Type()], data=["normal"]), early())
def test_loops_branches_and_states_give_the_same_bytes(program: GeneratedProgram, early_bytes: int):
    runs_equal(both(program.module, program.target, early_bytes), program.inputs)


def test_weights_are_written_where_no_thread_is_to_be_had():
    module, given_ = with_weights("mul", "split [4, 3]"), inputs()
    refused = mock.patch.object(
        tile_memory.ThreadPoolExecutor, "submit", side_effect=RuntimeError("no thread")
    )
    with refused as submit:
        machines = both(module, early_bytes=0)
    assert submit.called
    runs_equal(machines, given_)


def test_partial_products_are_added_up_where_the_first_of_them_lies():
    machines = both(product(SUMS))
    runs_equal(machines, inputs())
    whole, fused = (written(machine, "partials") for machine in machines)
    assert whole == [True] * 16
    assert fused == [True, False, False, False] * 4


# Parts of 33 are not all of one size, those of 600 have more terms than a chain.
@pytest.mark.parametrize("terms", [32, 33, 600])
def test_partial_products_are_added_up_in_the_order_of_the_machine(terms: int):
    machines = both(product(SUMS, terms))
    runs_equal(machines, inputs(terms))
    assert written(machines[1], "partials") == [True, False, False, False] * 4


@pytest.mark.parametrize("combiner", ["sum", "prod", "max", "min"])
def test_other_partials_are_merged_where_they_lie(combiner: str):
    plan = "#abele.plan<split [4, 4] combine split [8, 1, 1]>"
    op = f'nn.reduce "{combiner}" %a axes [1] keep_dims {{plan = {plan}}} : (tensor<{M}x{K}xf32>)'
    machines = both(program(op, f"{M}x1"))
    runs_equal(machines, inputs())
    whole, fused = (held(machine, "gather").view(np.float32) for machine in machines)
    assert np.count_nonzero(whole) == 4 * np.count_nonzero(fused)


def test_an_operand_that_is_equal_on_many_tiles_is_copied_to_one_of_them():
    machines = both(product(ALIKE))
    runs_equal(machines, inputs())
    whole, fused = (written(machine, "in0") for machine in machines)
    assert whole == [True] * 12
    assert fused == [True, False, False] * 4


FIRSTS_ALONE = [True] * 3 + [False] * 9
"""Of twelve tiles whose weights are three parts in four replicas each, those with the first."""


def with_weights(function: str, plan: str) -> ModuleOp:
    """An operation on %a, cut by rows and columns, and a row of weights, which is cut in three."""
    weights = np.random.default_rng(1).uniform(1, 2, (1, K)).astype(np.float32)
    types = f"(tensor<{M}x{K}xf32>, tensor<1x{K}xf32>)"
    op = f"nn.{function} %a, %w {{plan = #abele.plan<{plan}>}} : {types}"
    return program(op, f"{M}x{K}", weights=weights)


def weights_written(machine: Machine) -> list[bool]:
    (name,) = (n for n, v in machine.variables.items() if v.initial is not None)
    return written(machine, name)


def test_weights_of_products_are_written_to_their_first_replicas():
    weights = np.random.default_rng(1).standard_normal((K, N), np.float32)
    operands = f"(tensor<{M}x{K}xf32>, tensor<{K}x{N}xf32>)"
    op = f'"nn.matmul"(%a, %w) {{plan = #abele.plan<{ALIKE}>}} : {operands}'
    machines = both(program(op, f"{M}x{N}", weights=weights))
    runs_equal(machines, inputs())
    assert [weights_written(machine) for machine in machines] == [[True] * 12, FIRSTS_ALONE]


def test_weights_of_chains_are_written_to_their_first_replicas():
    machines = both(with_weights("mul", "split [4, 3]"))
    runs_equal(machines, inputs())
    assert [weights_written(machine) for machine in machines] == [[True] * 12, FIRSTS_ALONE]


def test_weights_of_functions_that_no_kernel_has_are_written_everywhere():
    machines = both(with_weights("fmod", "split [4, 3]"))
    runs_equal(machines, inputs())
    assert [weights_written(machine) for machine in machines] == [[True] * 12] * 2


def test_weights_that_one_of_two_readers_needs_everywhere_are_written_everywhere():
    module = with_weights("mul", "split [4, 3]")
    other = with_weights("fmod", "split [4, 3]")
    (mul, remainder) = (
        next(op for op in m.walk() if isinstance(op, Vertices)) for m in (module, other)
    )
    remainder.detach()
    mul.parent_block().insert_op_after(remainder, mul)
    machines = both(module)
    runs_equal(machines, inputs())
    assert weights_written(machines[1]) == [True] * 12


def test_an_operand_of_a_chain_that_is_equal_on_many_tiles_is_copied_to_one():
    types = f"(tensor<{M}x1xf32>, tensor<1x{N}xf32>)"
    op = f"nn.mul %a, %b {{plan = #abele.plan<split [4, 3]>}} : {types}"
    machines = both(program(op, f"{M}x{N}", k=1))
    runs_equal(machines, inputs(k=1))
    assert [written(machine, "in1") for machine in machines] == [[True] * 12, FIRSTS_ALONE]


def test_bytes_of_a_machine_that_does_not_keep_all_of_them_are_not_changed():
    whole, fused = both(product(ALIKE))
    whole.poke(0, 0, np.ones(4, np.uint8))
    with pytest.raises(
        ValueError, match="bytes of tile 0: FusedBinder does not keep all bytes; need"
    ):
        fused.poke(0, 0, np.ones(4, np.uint8))


def test_partials_that_are_written_once_may_be_merged_in_a_loop():
    module = product(SUMS)
    *_, made, merged = (op for op in module.walk() if isinstance(op, Superstep))
    assert "partials" in str(made)
    body = Block()
    merged.parent_block().insert_op_before(RepeatOp(3, [], Region(body)), merged)
    merged.detach()
    body.add_ops([merged, YieldOp()])
    module.verify()
    runs_equal(both(module), inputs())


@pytest.mark.parametrize("name", ["partials", "gather"])
def test_partials_with_another_reader_are_written(name: str):
    module = product(SUMS)
    (variable,) = (op for op in module.ops if isinstance(op, VariableOp) and op.symbol == name)
    *_, last = (op for op in module.walk() if isinstance(op, OutputOp))
    last.parent_block().insert_op_before(OutputOp(name, "more", variable.tensor), last)
    runs_equal(both(module), inputs())


def test_all_partials_are_written_if_an_observer_watches():
    class Watching(Observer):
        pass

    binder = best_binder(is_watched=True)
    machine = Machine(product(SUMS), TINY, observers=[Watching()], binder=binder)
    machine.run(inputs())
    assert all(written(machine, "partials"))
