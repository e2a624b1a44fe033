"""The attributes of StableHLO that are one word of several: `#stablehlo<precision HIGH>`."""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import Data, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition

from ...ir.upstream import AttrParser, Printer


class WordAttr(Data[str], SpacedOpaqueSyntaxAttribute):
    """One word of several.

    Attributes:
        WORDS: the words.
    """

    WORDS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Read the word. Another word is a ParseError."""
        start = parser.pos
        word = parser.parse_identifier()
        if word not in cls.WORDS:
            parser.raise_error(f"{word}; need one of {', '.join(cls.WORDS)}", start, parser.pos)
        return word

    def print_parameter(self, printer: Printer) -> None:
        """Print the word."""
        printer.print_string(self.data)


@irdl_attr_definition
class ComparisonDirectionAttr(WordAttr):
    """What a comparison asks.

    Example: #stablehlo<comparison_direction LT>
    """

    name = "stablehlo.comparison_direction"
    WORDS = ("EQ", "NE", "GE", "GT", "LE", "LT")


@irdl_attr_definition
class ComparisonTypeAttr(WordAttr):
    """How a comparison reads its operands. TOTALORDER orders NaN and the two zeros too.

    Example: #stablehlo<comparison_type FLOAT>
    """

    name = "stablehlo.comparison_type"
    WORDS = ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")


@irdl_attr_definition
class PrecisionAttr(WordAttr):
    """How exactly a product of floats is to be computed.

    Example: #stablehlo<precision HIGHEST>
    """

    name = "stablehlo.precision"
    WORDS = ("DEFAULT", "HIGH", "HIGHEST")


@irdl_attr_definition
class RngAlgorithmAttr(WordAttr):
    """The algorithm that makes random bits.

    Example: #stablehlo<rng_algorithm THREE_FRY>
    """

    name = "stablehlo.rng_algorithm"
    WORDS = ("DEFAULT", "THREE_FRY", "PHILOX")


@irdl_attr_definition
class RngDistributionAttr(WordAttr):
    """The distribution of random numbers.

    Example: #stablehlo<rng_distribution UNIFORM>
    """

    name = "stablehlo.rng_distribution"
    WORDS = ("UNIFORM", "NORMAL")


@irdl_attr_definition
class FftTypeAttr(WordAttr):
    """A kind of Fourier transform.

    Example: #stablehlo<fft_type RFFT>
    """

    name = "stablehlo.fft_type"
    WORDS = ("FFT", "IFFT", "RFFT", "IRFFT")


@irdl_attr_definition
class TransposeAttr(WordAttr):
    """How a triangular matrix is read.

    Example: #stablehlo<transpose NO_TRANSPOSE>
    """

    name = "stablehlo.transpose"
    WORDS = ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


WORDS = (
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    PrecisionAttr,
    RngAlgorithmAttr,
    RngDistributionAttr,
    FftTypeAttr,
    TransposeAttr,
)
"""All of them."""
