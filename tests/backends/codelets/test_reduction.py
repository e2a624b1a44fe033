"""Properties of reductions that others of numerics do not show."""

import numpy as np
import pytest

from abele.backends.codelets.calls import Scratch, run_calls
from abele.backends.codelets.cells import Cells
from abele.backends.codelets.reduction import reduction
from abele.dialects.structured import Body


@pytest.mark.parametrize("combiner", ["max", "min", "sum", "prod"])
def test_a_reduction_of_one_number_reads_it_when_it_runs(combiner: str):
    operand, result = np.zeros((), np.float32), np.zeros((), np.float32)
    calls = reduction(Cells(Body("identity", combiner), (operand,), result, ()), Scratch())
    operand[...] = -3
    run_calls(calls)
    assert result == -3
