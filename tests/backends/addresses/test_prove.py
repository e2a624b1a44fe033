"""Programs at exchange whose addresses suit their lifetimes, and programs whose do not.

`exchange_module` has a state @w at 0, variables @a to @e of 24 bytes at 24, 48, ... on four tiles,
and a predicate @p at 400.
"""

import numpy as np
import pytest

from abele.backends.addresses.prove import AddressProof, prove_addresses
from abele.backends.faults import MachineFault
from abele.backends.machine import Machine
from abele.backends.target import resolve_target
from abele.dialects.exchange import SuperstepOp, VariableOp
from abele.ir.blob import Blob
from abele.ir.errors import InputError

from ..exchange_text import LAYOUT, exchange_module, relu, step, variable

TINY = resolve_target("tiny:8")
F24 = "tensor<24xf32>"
READ = "%p = exchange.read @p : i1\n"
ON_A = variable("on_a", 24)
"""A variable at the address of @a."""

RAMP = Blob(np.arange(-12, 12, dtype=np.float32)).digest
"""The initial value of @w."""

MAKE_P = step("predicate", 'exchange.input "p" -> @p : tensor<1xi1>', zone="external")


def copy(read: str, written: str, name: str = "") -> str:
    return step(name or written, f"exchange.move [@{read}] -> @{written}")


def give(name: str) -> str:
    return step("give", f'exchange.output @{name} -> "y" : {F24}', zone="external")


def take(name: str) -> str:
    return step("take", f'exchange.input "x" -> @{name} : {F24}', zone="external")


def proof(body: str, variables: str = "", functions: str = "") -> AddressProof:
    return prove_addresses(exchange_module(body, variables, functions), TINY)


def assert_proved(body: str, variables: str = "", functions: str = "", skipped: int = 0) -> None:
    """Assert that a program's addresses are right, by a proof that covers the whole program.

    Args:
        skipped: how many supersteps no run reaches.
    """
    module = exchange_module(body, variables, functions)
    found = prove_addresses(module, TINY)
    ops = [type(op) for op in module.walk()]
    assert found.variables == ops.count(VariableOp)
    assert found.supersteps == ops.count(SuperstepOp) - skipped


def fault(body: str, variables: str = "", functions: str = "") -> MachineFault:
    with pytest.raises(MachineFault) as caught:
        proof(body, variables, functions)
    return caught.value


def loop(iterations: int, *steps: str) -> str:
    body = "\n".join(steps)
    return f"control.repeat {iterations} () : () -> () {{\n{body}\ncontrol.yield\n}}\n"


def branch(then: str, otherwise: str = "") -> str:
    return (
        f"{READ}control.if %p : i1 {{\n{then}\ncontrol.yield\n}} else {{\n{otherwise}\n"
        "control.yield\n}\n"
    )


def while_(test: str, body: str) -> str:
    return (
        f"control.while () : () -> () {{\n{test}\n{READ}control.condition %p : i1\n}} do {{\n"
        f"{body}\ncontrol.yield\n}}\n"
    )


def function(name: str, body: str) -> str:
    return f"func.func @{name}() {{ {body}\n func.return }}\n"


def call(name: str) -> str:
    return f"func.call @{name}() : () -> ()\n"


# What is proved


def test_a_proof_says_how_much_it_covers():
    found = proof(copy("w", "a") + step("b", relu("a", "b")) + give("b"))
    assert (found.variables, found.supersteps) == (7, 3)
    assert str(found) == "7 variables, 3 supersteps"


def test_a_result_may_take_the_bytes_of_what_nothing_reads_any_more():
    assert_proved(copy("w", "a") + copy("a", "b") + copy("w", "on_a") + give("on_a"), ON_A)


def test_a_result_may_overwrite_the_operand_that_each_point_reads():
    assert_proved(copy("w", "a") + step("go", relu("a", "on_a")) + give("on_a"), ON_A)


def test_a_state_may_be_overwritten_with_its_own_new_value():
    assert_proved(step("go", relu("w", "w")))


def test_a_state_may_lend_its_bytes_between_its_last_read_and_its_next_value():
    lent = variable("lent", 0)
    assert_proved(copy("w", "a") + copy("a", "lent") + copy("lent", "b") + copy("b", "w"), lent)


# Lifetimes on a straight way


def test_a_read_before_any_write_is_refused():
    found = fault(step("go", relu("a", "b")))
    assert str(found) == (
        "superstep @go: exchange.compute at b/relu reads bytes 24..47 of tile 0 (@a), never written"
    )
    assert (found.superstep, found.op, found.variable) == ("go", "exchange.compute", "a")
    assert (found.tile, found.addresses, found.node) == (0, (24, 48), "b/relu")


@pytest.mark.parametrize("reader", [copy("a", "b"), give("a"), READ])
def test_every_kind_of_reader_needs_a_write(reader: str):
    assert str(fault(reader)).endswith("never written")


def test_the_first_fault_in_program_order_is_reported():
    assert fault(copy("w", "a") + copy("b", "c") + copy("d", "e")).variable == "b"


def test_bytes_that_are_read_later_may_not_be_overwritten():
    body = copy("w", "a") + copy("w", "on_a") + copy("a", "b")
    found = fault(body, ON_A)
    assert "superstep @on_a: exchange.move at" in str(found)
    assert "writes bytes 24..47 of tile 0 (@on_a), the bytes of @a, which exchange.move" in str(
        found
    )
    assert "in superstep @b reads later" in str(found)
    assert (found.variable, found.addresses) == ("on_a", (24, 48))


def test_variables_overlap_only_where_they_share_tiles():
    at = "layout <[24 by 4] (d0) of [24] at 4>"
    apart = f"exchange.variable @on_a at 24 : {F24} {at}\n"
    assert_proved(copy("w", "a") + copy("w", "on_a") + copy("a", "b"), apart)
    shifted = apart.replace("at 4>", "at 3>")
    found = fault(copy("w", "a") + copy("w", "on_a") + copy("a", "b"), shifted)
    assert (found.tile, found.addresses) == (3, (24, 48))


def on_every_other_pair(name: str, first: int) -> str:
    """A variable of 48 bytes, at one address, on two of each four tiles."""
    return variable(name, 600, f"<[24 by 4 across 2] (d0) of [24] at {first} apart 4>")


def test_variables_on_every_other_chip_may_share_addresses():
    body = copy("w", "even") + copy("w", "odd") + copy("even", "a") + copy("odd", "b")
    assert_proved(body, on_every_other_pair("even", 0) + on_every_other_pair("odd", 2))
    shared = on_every_other_pair("even", 0) + on_every_other_pair("odd", 1)
    found = fault(body, shared)
    assert "writes bytes 600..623 of tile 1 (@odd), the bytes of @even" in str(found)


def test_variables_on_every_other_chip_are_written_in_one_phase_and_hold_together():
    both = step("both", "exchange.move [@w] -> @even", "exchange.move [@w] -> @odd")
    assert_proved(both, on_every_other_pair("even", 0) + on_every_other_pair("odd", 2))
    shared = on_every_other_pair("even", 0) + on_every_other_pair("odd", 1)
    assert "of tile 1 (@odd), which exchange.move" in str(fault(both, shared))


def test_an_overlap_of_some_words_is_found():
    near = variable("near", 40)
    found = fault(copy("w", "a") + copy("w", "near") + copy("a", "b"), near)
    assert found.addresses == (40, 48)


def test_two_states_may_not_share_bytes():
    found = fault("", variable("v", 16, initial=RAMP))
    assert "@v at v/value: bytes 16..23 of tile 0 hold @w too" in str(found)


def test_a_state_must_hold_after_every_run():
    on_w = variable("on_w", 0)
    found = fault(copy("w", "a") + step("go", relu("a", "on_w")) + give("on_w"), on_w)
    assert "(@on_w), the bytes of @w; a state must hold after every run" in str(found)
    assert (found.superstep, found.variable) == ("go", "on_w")


def test_a_state_without_a_value_needs_a_write_in_every_run():
    state = f"exchange.variable @s at 320 : {F24} layout {LAYOUT} state\n"
    assert_proved(copy("w", "s"), state)
    assert "need a write on every path" in str(fault("", state))
    found = fault(MAKE_P + branch(copy("w", "s")), state)
    assert "a state without a value before the first run" in str(found)
    assert "never written" in str(fault(copy("s", "a"), state))


def test_every_output_must_be_written():
    assert str(fault(MAKE_P + branch(give("w")))) == (
        'output "y": not written on every path through @main'
    )
    assert 'output "y"' in str(fault(loop(0, give("w"))))


def test_an_input_counts_as_a_write():
    assert_proved(take("a") + give("a"))


# Supersteps


def test_two_operations_of_a_phase_may_not_write_one_byte():
    found = fault(step("go", "exchange.move [@w] -> @a", "exchange.move [@w] -> @on_a"), ON_A)
    assert "exchange.move" in str(found)
    assert "which exchange.move" in str(found)
    assert "writes as @a in the same phase" in str(found)
    assert "in the same phase" in str(fault(step("go", relu("w", "a"), relu("w", "a"))))


def test_no_operation_reads_what_another_one_of_its_phase_writes():
    both = copy("w", "a") + step("go", "exchange.move [@a] -> @b", "exchange.move [@w] -> @a")
    assert fault(both).variable == "a"
    over = copy("w", "a") + step("go", "exchange.move [@a] -> @b", "exchange.move [@w] -> @on_a")
    assert "writes as @on_a in the same phase" in str(fault(over, ON_A))
    vertices = copy("w", "a") + step("go", relu("a", "b"), relu("a", "on_a"))
    assert fault(vertices, ON_A).superstep == "go"


def test_vertices_may_read_what_their_own_superstep_delivers():
    assert_proved(step("go", "exchange.move [@w] -> @a", relu("a", "b")))


def test_what_a_copy_has_read_may_be_overwritten_by_the_vertices_of_its_superstep():
    assert_proved(copy("w", "a") + step("go", "exchange.move [@a] -> @b", relu("w", "on_a")), ON_A)


def test_a_sum_may_not_overwrite_what_other_points_read():
    x = f"exchange.variable @x at 320 : {F24} layout <[12 by 4, 2] (2 * d0 + d1) of [24]>\n"
    y = "exchange.variable @y at 320 : tensor<12xf32> layout <[12 by 4] (d0) of [12]>\n"
    space = "<[i = 12, k = 2 reduction] (2 * i + k) of [24] -> (i) of [12]>"
    sums = f"exchange.compute space {space} body <identity sum> plan <split [4, 1]> "
    found = fault(copy("w", "x") + step("go", sums + "reads [@x] writes @y"), x + y)
    assert "which it overwrites as @y in the same phase" in str(found)


# The control program


def test_a_loop_may_not_destroy_what_its_next_iteration_reads():
    iteration = [copy("a", "b"), copy("b", "on_a")]
    assert_proved(copy("w", "a") + loop(1, *iteration), ON_A)
    found = fault(copy("w", "a") + loop(2, *iteration), ON_A)
    assert (found.superstep, found.variable) == ("on_a", "on_a")
    assert_proved(copy("w", "a") + loop(2, *iteration, copy("on_a", "c"), copy("c", "a")), ON_A)


def test_a_loop_may_not_destroy_what_is_read_after_it():
    assert fault(copy("w", "a") + loop(3, copy("w", "on_a")) + copy("a", "b"), ON_A)
    assert_proved(
        copy("w", "a") + copy("a", "b") + loop(3, copy("w", "on_a")) + copy("b", "c"), ON_A
    )


def test_a_loop_of_no_iterations_neither_writes_nor_destroys():
    assert "never written" in str(fault(loop(0, copy("w", "a")) + give("a")))
    assert_proved(copy("w", "a") + loop(0, copy("w", "on_a")) + copy("a", "b"), ON_A, skipped=1)


def test_both_branches_must_write_what_is_read_after_them():
    assert_proved(MAKE_P + branch(copy("w", "a"), copy("w", "a")) + copy("a", "b"))
    found = fault(MAKE_P + branch(copy("w", "a")) + copy("a", "b"))
    assert "(@a), not written before on every path" in str(found)


def test_neither_branch_may_destroy_what_is_read_after_them():
    after = copy("a", "b")
    body = copy("w", "a") + MAKE_P + branch(copy("w", "c"), copy("w", "on_a")) + after
    assert fault(body, ON_A).superstep == "on_a"
    assert_proved(copy("w", "a") + MAKE_P + branch(copy("a", "c"), copy("w", "on_a")), ON_A)


def test_a_test_runs_once_more_than_the_body_of_its_loop():
    assert_proved(while_(MAKE_P, copy("w", "a")))
    assert "every path" in str(fault(while_(MAKE_P, copy("w", "a")) + give("a")))
    assert_proved(while_(MAKE_P + copy("w", "a"), copy("a", "b")) + give("a"))
    # The body of one iteration destroys what the test of the next one reads.
    again = copy("w", "a") + while_(MAKE_P + copy("a", "b"), copy("w", "on_a"))
    assert fault(again, ON_A).superstep == "on_a"
    # The test destroys what the body reads.
    late = copy("w", "a") + while_(MAKE_P + copy("w", "on_a"), copy("a", "b"))
    assert fault(late, ON_A).superstep == "on_a"


def test_a_predicate_is_read_after_the_supersteps_before_it():
    on_p = "exchange.variable @on_p at 400 : tensor<1xi1> layout <[] (0) of [1]>\n"
    clobber = step("clobber", 'exchange.input "q" -> @on_p : tensor<1xi1>', zone="external")
    assert_proved(MAKE_P + branch(clobber), on_p)
    found = fault(MAKE_P + clobber + branch(""), on_p)
    assert "which exchange.read" in str(found)


def test_a_function_is_checked_at_every_call():
    f = function("f", copy("a", "b"))
    assert_proved(copy("w", "a") + call("f") + call("f"), "", f)
    assert fault(call("f") + copy("w", "a"), "", f).variable == "a"
    destroys = function("g", copy("w", "on_a"))
    assert_proved(call("g") + copy("w", "a") + copy("a", "b") + call("g"), ON_A, destroys)
    found = fault(call("g") + copy("w", "a") + call("g") + copy("a", "b"), ON_A, destroys)
    assert found.superstep == "on_a"


def test_values_that_live_across_different_calls_may_share_bytes():
    """@a is needed after the first call of @f, and @on_a after the second one."""
    f = function("f", copy("w", "c"))
    ways = copy("w", "a") + call("f") + copy("a", "b")
    assert_proved(ways + copy("w", "on_a") + call("f") + copy("on_a", "b"), ON_A, f)


def test_what_lives_around_a_call_in_a_loop_is_seen():
    f = function("f", copy("w", "on_a"))
    inside = loop(2, branch(call("f")))
    found = fault(copy("w", "a") + MAKE_P + inside + copy("a", "b"), ON_A, f)
    assert found.superstep == "on_a"
    nested = f + function("g", call("f"))
    body = copy("w", "a") + MAKE_P + loop(2, branch(call("g"))) + copy("a", "b")
    assert fault(body, ON_A, nested).superstep == "on_a"


def test_a_chain_of_functions_that_each_call_the_next_twice_takes_no_time():
    functions = function("f40", copy("w", "a"))
    functions += "".join(function(f"f{i}", 2 * call(f"f{i + 1}")) for i in range(40))
    assert proof(call("f0"), "", functions).supersteps == 1


def test_calls_that_cannot_be_made_are_refused():
    with pytest.raises(InputError, match="@f calls itself"):
        proof(call("f"), "", function("f", call("f")))


# Places


def test_a_variable_must_lie_in_the_memory_of_the_tiles():
    assert f"a tile has {TINY.bytes_per_tile}" in str(fault("", variable("x", 1 << 30)))
    assert "tiles 7..10; the target has 8" in str(
        fault("", variable("x", 320, "<[24 by 4] (d0) of [24] at 7>"))
    )


def test_a_strict_machine_finds_a_state_that_a_run_has_destroyed():
    module = exchange_module(copy("w", "a") + step("go", relu("a", "x")), variable("x", 0))
    with pytest.raises(MachineFault, match="must hold, after every run, bytes 0..23 of tile 0"):
        Machine(module, TINY, strict=True).run({})
    kept = exchange_module(step("go", relu("w", "w")))
    machine = Machine(kept, TINY, strict=True)
    machine.run({})
    assert machine.read("w").tolist() == [0.0] * 12 + [*range(12)]
