"""What is computed: operations on whole tensors, before any decision about a machine.

Every operation is one of: structured (an iteration space and a body), a movement, a
reinterpretation, a composite, or state. In shapes, N is the batch, C the channels, O the outputs
of a convolution, and `...` the spatial axes, as many as the operation is given.
"""

from xdsl.ir import Dialect

from ...ir.support.deferred import deferred
from ...ir.xdsl.verified_by_form import verified_by_form
from . import elementwise
from .angle import angle
from .base import (
    PureTensorOp,
    TensorOp,
    broadcast,
    element_of,
    flags,
    integer,
    integers,
    number,
    number_of,
    shape_of,
    tensor,
    tensor_of,
    values_of,
    wide_element,
)
from .bits import leading_zeros, ones_counted, trailing_zeros
from .block_matmul import BlockMatMulOp
from .chain import ChainableOp, can_chain
from .codelet import CodeletOp
from .composite import (
    AveragePoolOp,
    BatchNormOp,
    CompositeOp,
    GemmOp,
    LogSoftmaxOp,
    LrnOp,
    SoftmaxOp,
)
from .contraction import ContractionOp, ConvInputGradOp, ConvOp, ConvWeightGradOp, MatMulOp
from .ctc import CtcLossGradOp, CtcLossOp
from .ctc_decode import CtcBeamOp, CtcGreedyOp
from .elementwise import *  # noqa: F403 - an operation is defined and exported in one file
from .generic import ComputeOp, compute
from .group import (
    MOST_MEMBERS,
    Group,
    can_begin,
    can_follow,
    free_number,
    groups_of,
    is_group,
    join,
    number_of_group,
    stage_of,
)
from .index import At, Index, at, dim
from .indexed import GatherAlongOp, GatherOp, ScatterAlongOp, ScatterOp, UpdateOp
from .iota import IotaOp
from .movement import ConcatOp, ExpandOp, PadOp, ResampleOp, ReshapeOp, SliceOp, TransposeOp
from .packed_matmul import PACKED_BITS, PackedMatMulOp
from .sequence import ScanOp, SortIndicesOp, SortOp
from .state import ConstantOp, LoadOp, StateOp, StoreOp
from .summarize import CombiningOp, SummarizeOp, SummarizeWindowsOp
from .take import TakeOp
from .triangular import CholeskyOp, TriangularSolveOp, bad_pivot
from .window import PoolOp, ReduceOp
from .windowed import pooled_size, window_reach

with deferred(__name__):
    from .float8 import kept_narrow, least_scale, made_wide, quartered

STATE = (StateOp, LoadOp, StoreOp, ConstantOp)
CONTRACTIONS = (ConvOp, ConvInputGradOp, ConvWeightGradOp, MatMulOp)
REDUCTIONS = (PoolOp, ReduceOp, SummarizeOp, SummarizeWindowsOp)
INDEXED = (GatherOp, GatherAlongOp, ScatterOp, ScatterAlongOp, UpdateOp, BlockMatMulOp)
MOVEMENTS = (TransposeOp, ConcatOp, SliceOp, ResampleOp, PadOp, TakeOp, ExpandOp)
SEQUENCES = (ScanOp, SortOp, SortIndicesOp)
REINTERPRETATIONS = (ReshapeOp,)
COMPOSITES = (
    BatchNormOp,
    SoftmaxOp,
    LogSoftmaxOp,
    LrnOp,
    AveragePoolOp,
    GemmOp,
    CholeskyOp,
    TriangularSolveOp,
    CtcLossOp,
    CtcLossGradOp,
    CtcGreedyOp,
    CtcBeamOp,
)

CORE = (
    *STATE,
    *elementwise.ELEMENTWISE,
    *CONTRACTIONS,
    *REDUCTIONS,
    *INDEXED,
    PackedMatMulOp,
    ComputeOp,
    IotaOp,
    *SEQUENCES,
    *MOVEMENTS,
    *REINTERPRETATIONS,
)
"""The operations that remain once composites are decomposed."""

NN = Dialect("nn", [*CORE, *COMPOSITES], [])
verified_by_form(*NN.operations)

__all__ = [
    "NN",
    "CORE",
    "STATE",
    "CONTRACTIONS",
    "REDUCTIONS",
    "INDEXED",
    "SEQUENCES",
    "MOVEMENTS",
    "REINTERPRETATIONS",
    "COMPOSITES",
    "MOST_MEMBERS",
    "PACKED_BITS",
    "At",
    "AveragePoolOp",
    "BatchNormOp",
    "BlockMatMulOp",
    "ChainableOp",
    "CholeskyOp",
    "CodeletOp",
    "CombiningOp",
    "CompositeOp",
    "ComputeOp",
    "ConcatOp",
    "ConstantOp",
    "ContractionOp",
    "ConvInputGradOp",
    "ConvOp",
    "ConvWeightGradOp",
    "CtcBeamOp",
    "CtcGreedyOp",
    "CtcLossGradOp",
    "CtcLossOp",
    "ExpandOp",
    "GatherAlongOp",
    "GatherOp",
    "GemmOp",
    "Group",
    "Index",
    "IotaOp",
    "LoadOp",
    "LogSoftmaxOp",
    "LrnOp",
    "MatMulOp",
    "PackedMatMulOp",
    "PadOp",
    "PoolOp",
    "PureTensorOp",
    "ReduceOp",
    "ResampleOp",
    "ReshapeOp",
    "ScanOp",
    "ScatterAlongOp",
    "ScatterOp",
    "SliceOp",
    "SoftmaxOp",
    "SortIndicesOp",
    "SortOp",
    "StateOp",
    "StoreOp",
    "SummarizeOp",
    "SummarizeWindowsOp",
    "TakeOp",
    "TensorOp",
    "TransposeOp",
    "TriangularSolveOp",
    "UpdateOp",
    "angle",
    "at",
    "bad_pivot",
    "broadcast",
    "can_begin",
    "can_chain",
    "can_follow",
    "compute",
    "dim",
    "element_of",
    "flags",
    "free_number",
    "groups_of",
    "integer",
    "integers",
    "is_group",
    "join",
    "kept_narrow",
    "leading_zeros",
    "least_scale",
    "made_wide",
    "number",
    "number_of",
    "number_of_group",
    "ones_counted",
    "pooled_size",
    "quartered",
    "shape_of",
    "stage_of",
    "tensor",
    "tensor_of",
    "trailing_zeros",
    "values_of",
    "wide_element",
    "window_reach",
]
__all__ += elementwise.__all__
