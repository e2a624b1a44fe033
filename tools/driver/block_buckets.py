"""Lets a program take lists of blocks in buckets, before its first pass."""

from __future__ import annotations

from ...dialects import nn
from ...dialects.levels import NN
from ...ir.context import AbeleContext
from ...ir.support.errors import InputError
from ...passes.bucket_blocks import BucketBlocks
from .program import ReadProgram


def bucket_blocks(program: ReadProgram, context: AbeleContext, target: str) -> None:
    """Put the blocks of products with a capacity into buckets.

    The program at nn takes buckets too, so it can be compared with every other level.

    Raises InputError for blocks that are no inputs of the program.
    """
    asked = (
        isinstance(op, nn.BlockMatMulOp) and op.most_blocks is not None
        for op in program.module.walk()
    )
    if program.level != NN or not any(asked):
        return
    try:
        BucketBlocks(target).apply(context, program.module)
    except InputError as error:
        raise InputError(f"{program.path}: {error}") from None
