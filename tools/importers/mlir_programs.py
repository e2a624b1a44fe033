"""Leads a program of linalg, tensor, arith, math and scf to nn, where the pipeline begins."""

from __future__ import annotations

from ...dialects.levels import MIXED
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp, VerifyException
from ...ir.verify import verify
from ...passes.convert_linalg_to_nn import ConvertLinalgToNn
from .front_end import Reading


def lead_to_nn(module: ModuleOp, reading: Reading) -> None:
    """Convert a module in place. Raises InputError."""
    try:
        verify(module, MIXED)
    except VerifyException as error:
        raise InputError(f"{reading.place}: {error}") from None
    ConvertLinalgToNn().apply(reading.context, module)
