"""What every tile does in a superstep, and what each operation adds to it."""

import numpy as np
import pytest
from some_models import convolutions

from abele.backends.prices.price import price
from abele.backends.prices.price_operations import price_operations
from abele.backends.prices.step_charges import step_charges
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import MACHINE, Executable


@pytest.fixture(scope="module")
def exe() -> Executable:
    return compile_model(convolutions(), target="tiny:8")


def test_supersteps_have_the_price_of_the_program(exe: Executable):
    module = exe.module_at(MACHINE)
    assert tuple(each.price for each in step_charges(module, exe.target).steps) == price(
        module, exe.target
    )


def test_the_cycles_of_operations_add_up_to_those_of_their_superstep(exe: Executable):
    for step in step_charges(exe.module_at(MACHINE), exe.target).steps:
        compute = sum(each.compute_cycles for each in step.operations)
        exchange = sum(each.exchange_cycles for each in step.operations)
        assert compute == step.price.compute_cycles
        assert exchange == pytest.approx(step.price.exchange_cycles)


def test_tiles_do_together_what_operations_do_alone(exe: Executable):
    module = exe.module_at(MACHINE)
    alone = price_operations(module, exe.target)
    for step in step_charges(module, exe.target).steps:
        for each in step.operations:
            assert each.alone_compute == alone[each.op].compute_cycles
            assert each.alone_exchange == alone[each.op].exchange_cycles
        parts = [each.charge.traffic.received for each in step.operations]
        received = sum(parts, np.zeros(8, np.int64))
        assert np.array_equal(step.charge.traffic.received, received)
        assert step.exchange[step.price.busiest_tile] == step.price.exchange_cycles
        whole = step.exchange + step.charge.compute
        assert whole.max() == step.price.exchange_cycles + step.price.compute_cycles
