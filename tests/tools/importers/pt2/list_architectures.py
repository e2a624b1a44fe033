"""Prints the table of architectures in docs/models.md: what their exports use, and what is missing.

Needs PyTorch. Run it in the repository: python -m tests.tools.importers.pt2.list_architectures.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch.utils._pytree import tree_leaves
from xdsl.dialects.func import FuncOp

from abele.backends.reference import run_reference
from abele.ir.context import AbeleContext
from abele.ir.support.errors import InputError
from abele.tools.importers.front_end import Reading
from abele.tools.importers.pt2.reader import read_pt2, uses_of
from abele.tools.importers.uses import Use

from .torch_architectures import ARCHITECTURES

HEADER = ("architecture", "plain: nodes", "operators", "missing", "core: nodes", "operators")


def saved(program: torch.export.ExportedProgram) -> bytes:
    stream = io.BytesIO()
    torch.export.save(program, stream)
    return stream.getvalue()


def listed(archive: bytes) -> list[Use]:
    uses, problem = uses_of(archive, Reading(AbeleContext(), "model.pt2"))
    if problem:
        raise InputError(problem)
    return uses


def error(archive: bytes, inputs: Sequence[torch.Tensor], wanted: object) -> float:
    """The largest difference from PyTorch, relative to the largest output."""
    module = read_pt2(archive, Reading(AbeleContext(), "model.pt2"))
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    names = [each.data for each in main.attributes["arg_names"].data]  # type: ignore[attr-defined]
    given = {name: each.numpy() for name, each in zip(names, inputs, strict=True)}
    found = run_reference(module, given).outputs.values()
    return max(
        float(np.abs(a - b.detach().numpy()).max() / np.abs(b.detach().numpy()).max())
        for a, b in zip(found, tree_leaves(wanted), strict=True)
    )


def main() -> None:
    warnings.simplefilter("ignore")
    print("|", " | ".join((*HEADER, "missing", "error")), "|")
    print("|" + "---|" * (len(HEADER) + 2))
    for name, (make, inputs) in ARCHITECTURES.items():
        torch.manual_seed(0)
        module, given = make().eval(), inputs()
        program = torch.export.export(module, given)
        row = [name]
        errors: list[float] = []
        for each in (program, program.run_decompositions()):
            archive = saved(each)
            uses = listed(archive)
            missing = [use.operator for use in uses if use.reasons]
            row += [str(sum(len(use.nodes) for use in uses)), str(len(uses))]
            row.append(", ".join(missing) or "none")
            errors += [] if missing else [error(archive, given, module(*given))]
        print("|", " | ".join([*row, f"{max(errors):.0e}"]), "|", flush=True)


if __name__ == "__main__":
    main()
