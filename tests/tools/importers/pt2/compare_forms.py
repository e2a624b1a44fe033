"""Prints the cycles of models in two forms: docs/lengths.md has the tables.

As transformers writes a mixture of experts, each expert computes the tokens that chose it. Their
number depends on values, so the program computes with room for all tokens. In the dense form, three
products compute all experts for all tokens. A mean of the rows that a mask chooses is compared with
a mean that multiplies by the mask.

Needs PyTorch. Run it in the repository:

    python -m tests.tools.importers.pt2.compare_forms [TARGET]
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import torch

from abele.tools import compile_model

from .torch_architectures import DenseExperts, Experts

CASES = [(tokens, experts) for tokens in (4, 16, 64) for experts in (4, 8)]
ROWS = (16, 64, 256)


class ChosenRows(torch.nn.Module):
    """The mean of the rows that a mask chooses."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[x[:, 0] > 0].mean(0)


class WeightedRows(torch.nn.Module):
    """The same mean, by a product with the mask."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = (x[:, 0] > 0).to(x.dtype)
        return (x * mask[:, None]).sum(0) / mask.sum()


def cycles(module: torch.nn.Module, x: torch.Tensor, target: str) -> int:
    """The cycles of a run, whose result must be PyTorch's."""
    exe = compile_model(torch.export.export(module, (x,)), target, cache=False)
    (found,) = exe.run({exe.inputs[0].name: x.numpy()}).values()
    np.testing.assert_allclose(found, module(x).detach().numpy(), rtol=1e-4, atol=1e-4)
    return int(exe.profile["cycles"])


def main(target: str) -> None:
    warnings.simplefilter("ignore")
    print("| tokens | experts | as transformers writes it | dense | ratio |")
    print("|---|---|---|---|---|")
    for tokens, experts in CASES:
        row: list[int] = []
        for form in (Experts, DenseExperts):
            torch.manual_seed(0)
            row.append(cycles(form(16, experts).eval(), torch.randn(1, tokens, 16), target))
        print(f"| {tokens} | {experts} | {_columns(row)} |", flush=True)
    print("\n| rows of 16 | x[mask].mean(0) | by a product | ratio |")
    print("|---|---|---|---|")
    for rows in ROWS:
        torch.manual_seed(0)
        x = torch.randn(rows, 16)
        row = [cycles(form(), x, target) for form in (ChosenRows, WeightedRows)]
        print(f"| {rows} | {_columns(row)} |", flush=True)


def _columns(row: list[int]) -> str:
    return f"{row[0]:,} | {row[1]:,} | {row[0] / row[1]:.1f}"


if __name__ == "__main__":
    main(*sys.argv[1:] or ["tiny:16"])
