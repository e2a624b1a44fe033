"""The seed of a program can be changed at every level."""

import numpy as np
import pytest

from abele.dialects import nn
from abele.dialects.random_states import SEED, set_seed
from abele.ir.upstream import ModuleOp


@pytest.mark.parametrize(("name", "found"), [(SEED, True), ("weight", False)])
def test_only_the_state_of_the_seed_is_changed(name: str, found: bool):
    state = nn.StateOp(name, np.array(3, np.uint32))
    assert set_seed(ModuleOp([state]), 9) == found
    assert state.value.array == (9 if found else 3)
