import pytest
from xdsl.builder import Builder, ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, test
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    UnknownLoc,
    i32,
)
from xdsl.dialects.test import TestOp, TestPureOp
from xdsl.ir import Block, Operation, Region
from xdsl.parser import Parser
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
)
from xdsl.rewriter import InsertPoint
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern

from abele.ir.provenance import (
    LocatingWalker,
    at,
    file_names,
    fused,
    is_known,
    line_of,
    locate,
    located,
    named,
    origin,
    origin_names,
    origins,
    place,
    source_line,
)

LINE = FileLineColLoc(StringAttr("net.mlir"), IntAttr(3), IntAttr(5))


def op_at(location: LocationAttr, *operands: Operation) -> TestOp:
    op = TestOp([each.results[0] for each in operands], result_types=[i32])
    op.location = location
    return op


def test_the_origin_is_the_path_of_the_node():
    assert origin(named("conv1")) == "conv1"
    assert origin(named("conv1", LINE)) == "conv1"
    assert origin(op_at(named("conv1"))) == "conv1"


def test_without_a_node_the_origin_is_the_line():
    assert origin(LINE) == "net.mlir:3:5"
    assert origin(UNKNOWN_LOC) is None


def test_the_origin_of_a_fusion_is_every_node_once():
    location = fused([named("conv"), op_at(named("relu", LINE)), UNKNOWN_LOC, named("conv")])
    assert origin_names(location) == ("conv", "relu")
    assert origin(location) == "conv+relu"
    assert origin(CallSiteLoc(named("inner"), named("outer"))) == "inner"


def test_a_fusion_of_fusions_is_flat_and_a_fusion_of_one_is_that_location():
    pair = fused([named("a"), named("b")])
    assert fused([pair, named("c"), named("a")]) == FusedLoc(
        (named("a"), named("b"), named("c")), NoneAttr()
    )
    assert fused([named("a"), UNKNOWN_LOC]) == named("a")
    assert fused([]) == UNKNOWN_LOC


def test_the_location_of_a_step_is_below_its_node_and_keeps_the_line():
    assert at("bn1", "scale") == named("bn1/scale")
    assert at(op_at(named("bn1", LINE)), "scale") == named("bn1/scale", LINE)
    assert at(at(named("bn1"), "scale"), "mul") == named("bn1/scale/mul")
    assert at(fused([named("a"), named("b")]), "sum") == named("a+b/sum")
    assert at(LINE, "scale") == named("scale", LINE)
    assert at(op_at(LINE)) == LINE


def test_a_line_whose_column_is_not_known_has_none():
    line = source_line("/home/me/net.py", 12)
    assert place(op_at(named("a.relu", line))) == "a.relu (/home/me/net.py:12)"
    assert line_of(named("a.relu", line)) == "net.py:12"
    assert origin(line) == "net.py:12"
    assert line_of(op_at(LINE)) == "net.mlir:3:5"
    assert line_of(named("conv:3")) == ""


def test_the_name_in_the_file_is_below_the_name_and_gets_the_same_steps():
    node = named("a.relu", named("node_Relu_3", LINE))
    assert origin_names(node) == ("a.relu",)
    assert file_names(node) == ("node_Relu_3",)
    assert place(op_at(node)) == "a.relu (net.mlir:3:5)"
    assert at(op_at(node), "max") == named("a.relu/max", named("node_Relu_3/max", LINE))
    other = named("b", named("node_4"))
    assert file_names(fused([node, other, node])) == ("node_Relu_3", "node_4")
    both = at(fused([node, other]), "sum")
    assert both == named("a.relu+b/sum", named("node_Relu_3+node_4/sum", LINE))
    assert file_names(named("a.relu", LINE)) == ()


def test_the_place_of_an_operation_is_the_best_known_one():
    assert place(op_at(named("conv1", LINE))) == "conv1 (net.mlir:3:5)"
    assert place(op_at(named("conv1"))) == "conv1"
    assert place(op_at(LINE)) == "net.mlir:3:5"
    lost = op_at(UNKNOWN_LOC)
    assert place(lost) == "unknown line"
    func.FuncOp("main", ((), ()), Region(Block([lost])))
    assert place(lost) == "unknown line in @main"


def test_each_origin_of_a_module_is_listed_once_in_the_order_of_the_program():
    names = ["conv", None, "relu", "conv", "pool"]
    ops = [op_at(UNKNOWN_LOC if name is None else named(name)) for name in names]
    assert origins(ModuleOp(ops)) == ("conv", "relu", "pool")


def test_locate_covers_nested_operations_and_keeps_known_locations():
    known, unknown = op_at(named("known")), op_at(UnknownLoc())
    outer = TestOp(regions=[Region(Block([known, unknown]))])
    locate(outer, named("new"))
    assert [origin(each) for each in outer.walk()] == ["new", "known", "new"]


def test_located_sets_the_location_of_all_that_a_builder_inserts_in_its_block():
    block = Block()
    builder = Builder(InsertPoint.at_end(block))
    with located(builder, named("bn1"), "scale"):
        inside = builder.insert(TestOp())
        with located(builder, named("inner")):
            nested = builder.insert(TestOp())
        with ImplicitBuilder(builder):
            implicit = TestOp()
    outside = builder.insert(TestOp())
    assert [origin(each) for each in (inside, implicit)] == ["bn1/scale"] * 2
    assert origin(nested) == "bn1/scale", "the outer block's handler comes first"
    assert origin(outside) is None


def test_located_ends_even_when_the_block_fails():
    builder = Builder(InsertPoint.at_end(Block()))
    with pytest.raises(RuntimeError), located(builder, named("x")):
        raise RuntimeError
    assert origin(builder.insert(TestOp())) is None


class PureForm(RewritePattern):
    """Replace each test.op by a chain of two pure ones, the second with a region."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if isinstance(op, TestOp):
            first = TestPureOp(op.operands, result_types=[i32])
            inner = Region(Block([TestPureOp()]))
            rewriter.replace(
                op, [first, TestPureOp(first.results, result_types=[i32], regions=[inner])]
            )


class FuseWithProducer(RewritePattern):
    """Replace an operation's producer when the operation is met."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if isinstance(op, TestOp) and op.operands and isinstance(op.operands[0].owner, TestOp):
            rewriter.replace(op.operands[0].owner, TestPureOp(result_types=[i32]))


class NameIt(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if isinstance(op, TestOp):
            new = TestPureOp(result_types=[i32])
            new.location = at(op, "mine")
            rewriter.replace(op, new)


class Fail(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        raise KeyError("nothing here")


def chain() -> ModuleOp:
    first = op_at(named("first"))
    return ModuleOp([first, op_at(named("second"), first)])


def test_xdsl_loses_locations():
    # When this fails, xDSL has learnt to keep them, and LocatingWalker may go.
    module = chain()
    PatternRewriteWalker(PureForm()).rewrite_module(module)
    assert origins(module) == ()


def test_new_operations_and_those_nested_in_them_inherit_the_origin():
    module = chain()
    assert LocatingWalker(PureForm()).rewrite_module(module)
    assert [origin(op) for op in module.walk()][1:] == ["first"] * 3 + ["second"] * 3


def test_an_operation_that_inherits_from_another_gets_its_origin():
    module = chain()
    LocatingWalker(FuseWithProducer()).rewrite_module(module)
    assert [origin(op) for op in module.walk()][1:] == ["first", "second"]


def test_a_location_set_by_the_pattern_is_left_alone():
    module = chain()
    LocatingWalker(NameIt(), walk_reverse=True).rewrite_module(module)
    assert origins(module) == ("first/mine", "second/mine")


def test_a_failing_pattern_names_its_operation_and_does_not_print_the_module():
    module = chain()
    with pytest.raises(KeyError, match="nothing here") as caught:
        LocatingWalker(Fail()).rewrite_module(module)
    assert caught.value.__notes__ == ["while rewriting test.op at first"]


def canonicalized(text: str) -> ModuleOp:
    context = Context()
    for dialect in (builtin.Builtin, arith.Arith, func.Func, test.Test):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    pattern = GreedyRewritePatternApplier(
        [CanonicalizationRewritePattern()], ctx=context, folding_enabled=True
    )
    LocatingWalker(pattern).rewrite_module(module)
    return module


def test_folded_constants_keep_the_origins_of_the_operations_folded():
    module = canonicalized("""
        %a = arith.constant 2 : i32 loc("a")
        %b = arith.constant 3 : i32 loc("b")
        %c = arith.addi %a, %b : i32 loc("sum")
        "test.op"(%c) : (i32) -> () loc("use")
    """)
    constants = [op for op in module.walk() if isinstance(op, arith.ConstantOp)]
    assert [origin(op) for op in constants] == ["sum"]


def test_after_canonicalization_every_operation_has_an_origin():
    module = canonicalized("""
        %a = "test.op"() : () -> i32 loc("a")
        %z = arith.constant 0 : i32 loc("z")
        %c = arith.addi %z, %a : i32 loc("c")
        %d = arith.addi %c, %z : i32 loc("d")
        "test.op"(%d) : (i32) -> () loc("use")
    """)
    assert all(is_known(op.location) for op in module.body.block.ops)
