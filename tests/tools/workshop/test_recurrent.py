import pytest

from abele.tools.workshop.recurrent import measured


@pytest.mark.large
def test_a_step_agrees_with_onnxruntime_and_costs_as_much_in_a_longer_sequence():
    short, long = (measured(steps, "tiny:4") for steps in (8, 64))
    assert max(short.error, long.error) < 1e-5
    # The product of all inputs, before the loop, is a part of the cycles.
    assert long.cycles < 1.1 * short.cycles
    assert min(long.peer_seconds) > 0
