from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from abele.backends.reference.run import run_reference
from abele.dialects import nn
from abele.dialects.dtypes import element_type
from abele.dialects.levels import NN
from abele.ir.verify import verify
from abele.passes.decompose import Decompose
from abele.passes.summarize_softmax import MOST_ELEMENTS, SummarizeSoftmax
from abele.tools.driver.context import new_context


def program(shape: tuple[int, ...], axis: int, dtype: type[np.floating[Any]]) -> ModuleOp:
    block = Block(arg_types=[TensorType(element_type(np.dtype(dtype)), shape)])
    softmax = nn.SoftmaxOp(block.args[0], axis)
    block.add_ops([softmax, ReturnOp(softmax.result)])
    types = [block.args[0].type], [softmax.result.type]
    module = ModuleOp([FuncOp("main", types, Region(block))])
    Decompose().apply(new_context(), module)
    return module


def rewritten(module: ModuleOp) -> ModuleOp:
    made = module.clone()
    SummarizeSoftmax().apply(new_context(), made)
    verify(made, NN)
    return made


def summaries(module: ModuleOp) -> int:
    return sum(isinstance(op, nn.SummarizeOp) for op in module.walk())


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.data())
@settings(max_examples=15, deadline=None)
def test_a_short_softmax_is_the_same(dtype: Any, shape: list[int], data: st.DataObject):
    axis = data.draw(st.integers(0, len(shape) - 1))
    module = program(tuple(shape), axis, dtype)
    made = rewritten(module)
    assert summaries(made) == 1
    # Some elements are masked, and some are far apart.
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    x = rng.choice([-np.inf, -60.0, 0.0, 1.5, 30.0], shape).astype(dtype)
    before, after = (run_reference(each, {"arg0": x}).outputs["out0"] for each in (module, made))
    np.testing.assert_allclose(after, before, rtol=2e-6 if dtype is np.float32 else 2e-3)


def test_a_long_softmax_stays():
    assert summaries(rewritten(program((MOST_ELEMENTS // 64 + 1, 64), 1, np.float32))) == 0
