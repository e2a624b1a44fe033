"""The sum of gradients over replicas, compiled: what cutting the batch across chips costs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from .....backends.target import named_target
from ....driver.compile import compile_model

PROGRAM = """
builtin.module {{
  func.func @main(%w: tensor<{all}xf32>, %g: tensor<{all}xf32>) -> tensor<{all}xf32> {{
    %0 = nn.reduce "sum" %g axes [0] : (tensor<{all}xf32>) -> tensor<{one}xf32> loc("sum")
    %1 = nn.expand %0 to [{sizes}] : (tensor<{one}xf32>) -> tensor<{all}xf32> loc("all")
    %2 = nn.sub %w, %1 : (tensor<{all}xf32>, tensor<{all}xf32>) -> tensor<{all}xf32> loc("update")
    func.return %2 : tensor<{all}xf32>
  }}
}}
"""
"""Replica r of stage s has the gradient g[r, s] and the weights w[r, s]. All replicas of a stage
subtract the sum of its gradients."""


def sum_cycles(replicas: int, stages: int, elements: int, target: str) -> int:
    """The cycles in which the replicas of each stage sum gradients of float32, and each gets the
    sum. Call it in a process of its own.

    Args:
        elements: of a stage.
        target: a machine with a chip for each stage of each replica.
    """
    machine = named_target(target)
    assert machine.chips == replicas * stages
    sizes = (replicas, stages, elements)
    text = PROGRAM.format(
        all="x".join(map(str, sizes)),
        one=f"{stages}x{elements}",
        sizes=", ".join(map(str, sizes)),
    )
    cut = f"d0={replicas},d1={stages}"
    with TemporaryDirectory() as folder:
        path = Path(folder, "sum.mlir")
        path.write_text(text)
        exe = compile_model(
            path, machine, shard=[f"sum:{cut}", f"update:{cut}"], unbounded=True, cache=False
        )
    return int(exe.profile["cycles"])
