"""What a program of StableHLO computes: the operations that JAX and others write.

Each operation computes whole tensors of static shapes, and nothing is broadcast. The pass
convert-stablehlo-to-nn replaces each operation by operations of nn. The text of an operation is its
generic form in MLIR, which other programs read. The facts are those of the specification of
StableHLO.
"""

from xdsl.ir import Dialect

from ...ir.xdsl.verified_by_form import verified_by_form
from .base import ReturnOp, StablehloOp, integers_of, pairs_of, window_places
from .collectives import COLLECTIVES, GROUPED, ChannelHandleAttr, CollectivePermuteOp
from .complex_numbers import COMPLEX, ComplexOp, FftOp, ImagOp, RealOp
from .constants import CONSTANTS, MOST_NUMBERS, ConstantOp, IotaOp
from .control import (
    CONTROL,
    CaseOp,
    CompositeOp,
    CustomCallOp,
    IfOp,
    OptimizationBarrierOp,
    WhileOp,
)
from .elementwise import (
    BINARY,
    ELEMENTWISE,
    UNARY,
    BitcastConvertOp,
    ClampOp,
    CompareOp,
    ConvertOp,
    ReducePrecisionOp,
    SelectOp,
)
from .enums import (
    WORDS,
    ComparisonDirectionAttr,
    ComparisonTypeAttr,
    FftTypeAttr,
    PrecisionAttr,
    RngAlgorithmAttr,
    RngDistributionAttr,
    TransposeAttr,
)
from .indexed import INDEXED, DynamicSliceOp, DynamicUpdateSliceOp, GatherOp, ScatterOp
from .matrices import MATRICES, CholeskyOp, TriangularSolveOp
from .normalise import NORMALISE, BatchNormGradOp, BatchNormInferenceOp, BatchNormTrainingOp
from .numberings import (
    NUMBERINGS,
    ConvAttr,
    ConvAxes,
    DotAttr,
    DotAxes,
    GatherAttr,
    GatherAxes,
    ScatterAttr,
    ScatterAxes,
)
from .products import PRODUCTS, ConvolutionOp, DotGeneralOp, DotOp
from .random import RANDOM, RngBitGeneratorOp, RngOp
from .reductions import (
    REDUCTIONS,
    MapOp,
    MergingOp,
    ReduceOp,
    ReduceWindowOp,
    SelectAndScatterOp,
    SortOp,
)
from .shapes import (
    SHAPES,
    BroadcastInDimOp,
    BroadcastOp,
    ConcatenateOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from .sized import SIZED

STABLEHLO = Dialect(
    "stablehlo",
    [
        *CONSTANTS,
        *ELEMENTWISE,
        *COMPLEX,
        *SHAPES,
        *PRODUCTS,
        *MATRICES,
        *REDUCTIONS,
        *INDEXED,
        *SIZED,
        *NORMALISE,
        *RANDOM,
        *CONTROL,
        *COLLECTIVES,
    ],
    [ChannelHandleAttr, *WORDS, *NUMBERINGS],
)

verified_by_form(*STABLEHLO.operations)

__all__ = [
    "GROUPED",
    "STABLEHLO",
    "BINARY",
    "MOST_NUMBERS",
    "UNARY",
    "BatchNormGradOp",
    "BatchNormInferenceOp",
    "BatchNormTrainingOp",
    "BitcastConvertOp",
    "BroadcastInDimOp",
    "BroadcastOp",
    "CaseOp",
    "CholeskyOp",
    "ClampOp",
    "CollectivePermuteOp",
    "CompareOp",
    "ComparisonDirectionAttr",
    "ComparisonTypeAttr",
    "ComplexOp",
    "CompositeOp",
    "ConcatenateOp",
    "ConstantOp",
    "ConvAttr",
    "ConvAxes",
    "ConvertOp",
    "ConvolutionOp",
    "CustomCallOp",
    "DotAttr",
    "DotAxes",
    "DotGeneralOp",
    "DotOp",
    "DynamicSliceOp",
    "DynamicUpdateSliceOp",
    "FftOp",
    "FftTypeAttr",
    "GatherAttr",
    "GatherAxes",
    "GatherOp",
    "IfOp",
    "ImagOp",
    "IotaOp",
    "MapOp",
    "MergingOp",
    "OptimizationBarrierOp",
    "PadOp",
    "PrecisionAttr",
    "RealOp",
    "ReduceOp",
    "ReducePrecisionOp",
    "ReduceWindowOp",
    "ReshapeOp",
    "ReturnOp",
    "ReverseOp",
    "RngAlgorithmAttr",
    "RngBitGeneratorOp",
    "RngDistributionAttr",
    "RngOp",
    "ScatterAttr",
    "ScatterAxes",
    "ScatterOp",
    "SelectAndScatterOp",
    "SelectOp",
    "SliceOp",
    "SortOp",
    "StablehloOp",
    "TransposeAttr",
    "TransposeOp",
    "TriangularSolveOp",
    "WhileOp",
    "integers_of",
    "pairs_of",
    "window_places",
]
