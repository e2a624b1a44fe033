"""The option for sparse weights, without the compiler."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.support.block_size import read_block
from ...ir.support.errors import InputError
from ...ir.well_known import LEVEL_NAMES

ZEROS = "zeros"
"""The option for matrices that have zeros already."""

NN = "nn"

MULTIPLY = "multiply-sparse"
"""The pass that leaves zeros out."""


@dataclass(frozen=True)
class Sparsity:
    """What the option asks for.

    Attributes:
        block: the height and width of blocks: outputs by terms. None for any.
        share: of the blocks of each matrix that become zeros, those with the smallest sums of
            squares; 0 to keep the weights.
    """

    block: tuple[int, int] | None
    share: float

    @property
    def options(self) -> str:
        """The options of the pass multiply-sparse."""
        return "" if self.block is None else "block={}x{}".format(*self.block)


def read_sparsity(text: str) -> Sparsity:
    """Read zeros, HEIGHTxWIDTH or HEIGHTxWIDTH:SHARE. Raises InputError."""
    if text == ZEROS:
        return Sparsity(None, 0.0)
    block, colon, share = text.partition(":")
    need = f"need {ZEROS}, HEIGHTxWIDTH, or HEIGHTxWIDTH:SHARE, such as 16x16:0.9"
    try:
        sides, number = read_block(block), float(share) if colon else 0.0
    except (InputError, ValueError):
        raise InputError(f"--sparsity {text}; {need}") from None
    if not 0 <= number < 1:
        raise InputError(f"--sparsity {text}: share {share}; need at least 0 and less than 1")
    return Sparsity(sides, number)


def without_zeros(text: str, passes: str, target: str) -> str:
    """A pipeline with the pass that leaves zeros of weights out, before the passes of nn.

    Raises InputError for an option that cannot be read, and for a pipeline without the level nn.

    Args:
        text: the option.
        passes: the pipeline; "" for the default one.
        target: its spelling, "" for the program's own.
    """
    asked = read_sparsity(text)
    names = (passes or ",".join(LEVEL_NAMES)).split(",")
    if any(each.startswith(MULTIPLY) for each in names):
        return passes
    if names.count(NN) != 1:
        raise InputError(
            f"--sparsity {text} and the pipeline '{passes}'; need a pipeline with {NN}"
        )
    options = " ".join(filter(None, (asked.options, f'target="{target}"' if target else "")))
    # What multiplies weights is decomposed first.
    names[names.index(NN) : names.index(NN)] = [
        "decompose",
        MULTIPLY + (f"{{{options}}}" if options else ""),
    ]
    return ",".join(names)
