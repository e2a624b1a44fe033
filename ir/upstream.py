"""The one place that imports the xDSL names which move between releases.

`xdsl.ir`, `xdsl.ir.affine`, `xdsl.irdl`, `xdsl.traits` and the modules of `xdsl.dialects` say what
the IR is, and any file imports from them. The rest of xDSL (the parser, the printer, the rewriter,
passes, errors) is imported from here, and so are the names of the builtin dialect listed below.
`tests/ir/test_upstream.py` holds every file to that. xDSL is pinned. When the pin changes, this
file and the type checker show what broke.
"""

from xdsl.builder import Builder, BuilderListener
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
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.irdl.dominance import DominanceInfo
from xdsl.irdl.operations import irdl_op_verify_regions
from xdsl.parser import AttrParser, Parser
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.printer import Printer
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms import get_all_passes
from xdsl.transforms.dead_code_elimination import is_trivially_dead
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.arg_spec import parse_pipeline as parse_arg_specs
from xdsl.utils.disjoint_set import IntDisjointSet
from xdsl.utils.exceptions import ArgSpecParseError, ParseError, VerifyException
from xdsl.utils.hints import isa
from xdsl.utils.lexer import Span, Token
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken, MLIRTokenKind, StringLiteral

__all__ = [
    "UNKNOWN_LOC",
    "ArgSpec",
    "ArgSpecParseError",
    "AttrParser",
    "AttributeVariable",
    "Builder",
    "BuilderListener",
    "CallSiteLoc",
    "Context",
    "CustomDirective",
    "DominanceInfo",
    "FileLineColLoc",
    "FusedLoc",
    "InsertPoint",
    "IntDisjointSet",
    "LocationAttr",
    "MLIRLexer",
    "MLIRToken",
    "MLIRTokenKind",
    "ModuleOp",
    "ModulePass",
    "NameLoc",
    "NoneAttr",
    "ParseError",
    "Parser",
    "ParsingState",
    "PatternRewriteWalker",
    "PatternRewriter",
    "Printer",
    "PrintingState",
    "RewritePattern",
    "Rewriter",
    "Span",
    "StringLiteral",
    "Token",
    "Universe",
    "UnknownLoc",
    "UnregisteredOp",
    "VerifyException",
    "get_all_passes",
    "irdl_custom_directive",
    "irdl_op_verify_regions",
    "is_trivially_dead",
    "isa",
    "parse_arg_specs",
]
