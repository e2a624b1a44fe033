"""Random loops over micro-batches whose operations have stages."""

from random import Random

import numpy as np
from some_tensors import context, module_of

from abele.ir.upstream import ModuleOp
from abele.passes.pipelining.stages import STAGES, numbers

T = "tensor<3xf32>"


def staged_loop(seed: int) -> tuple[ModuleOp, dict[str, np.ndarray]]:
    """A loop whose stages read rows of a batch, and what earlier stages make; and its inputs.

    It carries two sums, a table of results and the last result, and a state follows one of the
    sums.
    """
    random = Random(seed)
    stages = random.choice((1, 2, 3, 4, 6))
    count = stages + random.randint(0, 3)
    body, made = [], ["%row", "%w"]
    for stage in range(stages):
        for _ in range(random.randint(1, 3)):
            name, one = f"%a{len(made)}", random.choice(made[-3:])
            function = random.choice(("add", "mul", "sub"))
            body.append(
                f"{name} = nn.{function} {one}, {random.choice(made)} {{stage = {stage} : i64}}"
                f" : ({T}, {T}) -> {T}"
            )
            made.append(name)
    last, table = made[-1], f"tensor<{count}x3xf32>"
    module = module_of(
        f"""
        nn.state @w : {T} = {{w}}
        func.func @main(%x: {table}, %zero: {T}, %zeros: {table}) -> ({T}, {T}, {table}, {T}) {{
          %w = nn.load @w : {T}
          %0:4 = control.repeat {count} (%zero, %zero, %zeros, %zero)
              : ({T}, {T}, {table}, {T}) -> ({T}, {T}, {table}, {T}) {{
          ^bb0(%s: {T}, %u: {T}, %t: {table}, %l: {T}, %i: tensor<i32>):
            %i1 = nn.reshape %i to [1] : (tensor<i32>) -> tensor<1xi32>
            %rows = nn.gather %x, %i1 axis 0 : ({table}, tensor<1xi32>) -> tensor<1x3xf32>
            %row = nn.reshape %rows to [3] : (tensor<1x3xf32>) -> {T}
            {chr(10).join(body)}
            %s1 = nn.add %s, {random.choice(made[2:])} : ({T}, {T}) -> {T}
            %u1 = nn.add %u, {random.choice(made[2:])} : ({T}, {T}) -> {T}
            %lr = nn.reshape {last} to [1, 3] : ({T}) -> tensor<1x3xf32>
            %ix = nn.reshape %i to [1, 1] : (tensor<i32>) -> tensor<1x1xi32>
            %t1 = nn.update "last" %lr, %ix into %t axis 0
                : (tensor<1x3xf32>, tensor<1x1xi32>, {table}) -> {table}
            control.yield %s1, %u1, %t1, {last} : {T}, {T}, {table}, {T}
          }}
          %n = nn.sub %w, %0#0 : ({T}, {T}) -> {T}
          nn.store %n, @w : {T}
          func.return %0#0, %0#1, %0#2, %0#3 : {T}, {T}, {table}, {T}
        }}
        """,
        context(),
        w=np.array([0.5, -0.25, 2], np.float32),
    )
    chips = (*range((stages + 1) // 2), *reversed(range(stages // 2)))
    module.attributes[STAGES] = numbers(chips)
    draw = np.random.default_rng(seed).normal
    shapes = {"arg0": (count, 3), "arg1": (3,), "arg2": (count, 3)}
    return module, {name: draw(size=shape).astype(np.float32) for name, shape in shapes.items()}
