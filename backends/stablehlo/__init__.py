"""What programs of stablehlo compute, by NumPy, operation by operation and on whole tensors.

It is written from the specification of StableHLO, and shares nothing with the pass that leads to
nn, which it checks. Floats are computed in float64, and each result is rounded once.
"""

from .run import is_interpreted, run_stablehlo

__all__ = ["is_interpreted", "run_stablehlo"]
