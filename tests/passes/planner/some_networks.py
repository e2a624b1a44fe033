"""Networks under construction, for tests that plan them."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from abele.backends.target import Target
from abele.dialects import nn
from abele.dialects.dtypes import element_type
from abele.dialects.structured import Movement, Structured
from abele.passes.planner.network import NetworkPlan, plan_network

F16 = np.dtype(np.float16)


class Net:
    """A program under construction: one entry, weights of zeros."""

    def __init__(self, *shape: int):
        self.type = nn.tensor(shape, element_type(F16))
        self.block = Block(arg_types=[self.type])
        self.states: list[Operation] = []
        self.value: SSAValue = self.block.args[0]

    def weight(self, *shape: int) -> SSAValue:
        name = f"w{len(self.states)}"
        self.states.append(nn.StateOp(name, np.zeros(shape, F16)))
        return self.block_add(nn.LoadOp(name, nn.tensor(shape, element_type(F16))))

    def block_add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def matmul(self, n: int) -> Operation:
        k = nn.shape_of(self.value)[1]
        weight = self.weight(k, n)
        self.value = self.block_add(nn.MatMulOp(self.value, weight))
        return self.value.owner  # type: ignore[return-value]

    def relu(self) -> Operation:
        self.value = self.block_add(nn.ReluOp(self.value))
        return self.value.owner  # type: ignore[return-value]

    def module(self) -> ModuleOp:
        self.block.add_op(func.ReturnOp(self.value))
        kind = FunctionType.from_lists([self.type], [self.value.type])
        module = ModuleOp([*self.states, func.FuncOp("main", kind, Region(self.block))])
        module.verify()
        return module


def mlp(width: int, layers: int) -> ModuleOp:
    net = Net(8, width)
    for _ in range(layers):
        net.matmul(width)
        net.relu()
    return net.module()


def planned(module: ModuleOp, target: Target) -> NetworkPlan:
    found = plan_network(module, target)
    wanted = {op for op in module.walk() if isinstance(op, Structured | Movement)}
    assert set(found.plans) == wanted
    return found
