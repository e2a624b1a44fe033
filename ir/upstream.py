"""Imports, in one place, the xDSL names that move between releases.

xDSL is pinned. When the pin changes, this file and the type checker show what broke.
"""

from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    LocationAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    UnknownLoc,
    UnregisteredOp,
)
from xdsl.irdl.dominance import DominanceInfo
from xdsl.irdl.operations import irdl_op_verify_regions
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriterListener,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.printer import Printer
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.arg_spec import parse_pipeline as parse_arg_specs
from xdsl.utils.exceptions import ArgSpecParseError, ParseError, VerifyException
from xdsl.utils.mlir_lexer import MLIRTokenKind, StringLiteral

__all__ = [
    "UNKNOWN_LOC",
    "ArgSpec",
    "ArgSpecParseError",
    "CallSiteLoc",
    "Context",
    "DominanceInfo",
    "FileLineColLoc",
    "FusedLoc",
    "LocationAttr",
    "MLIRTokenKind",
    "ModuleOp",
    "ModulePass",
    "NameLoc",
    "NoneAttr",
    "ParseError",
    "Parser",
    "PatternRewriteWalker",
    "PatternRewriter",
    "PatternRewriterListener",
    "Printer",
    "RewritePattern",
    "StringLiteral",
    "UnknownLoc",
    "UnregisteredOp",
    "VerifyException",
    "irdl_op_verify_regions",
    "parse_arg_specs",
]
