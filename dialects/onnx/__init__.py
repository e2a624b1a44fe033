"""The operators of ONNX as operations, made from the definitions of the installed onnx.

A module of this dialect is a model: nothing of its file is lost, and each node is one operation.
The operators of the domain ai.onnx are called `onnx.Conv`, those of ai.onnx.ml `onnx.ml.Scaler`;
`onnx.node` is a node of any other domain. The facts are those of `onnx.defs`.
"""

from xdsl.ir import Dialect

from .attributes import BytesAttr, MessageAttr, RefAttr, TensorAttr
from .base import GRAPH, MODEL, NODE, Node
from .operators import BY_NAME, OPERATORS, Operator, constant_of
from .structure import (
    STRUCTURE,
    DefaultOp,
    FunctionOp,
    InitializerOp,
    NodeOp,
    NoneOp,
    ReturnOp,
)
from .types import (
    DimsAttr,
    ElementType,
    MapType,
    OptionalType,
    RanklessType,
    SequenceType,
    SkippedType,
    SparseType,
    StringType,
    UnknownType,
)

ONNX = Dialect(
    "onnx",
    [*STRUCTURE, *OPERATORS],
    [
        *(BytesAttr, DimsAttr, MessageAttr, RefAttr, TensorAttr),
        *(ElementType, MapType, OptionalType, RanklessType, SequenceType, SkippedType),
        *(SparseType, StringType, UnknownType),
    ],
)

__all__ = [
    "BY_NAME",
    "GRAPH",
    "MODEL",
    "NODE",
    "ONNX",
    "OPERATORS",
    "DefaultOp",
    "FunctionOp",
    "InitializerOp",
    "Node",
    "NodeOp",
    "NoneOp",
    "Operator",
    "ReturnOp",
    "TensorAttr",
    "constant_of",
]
