import pytest
from xdsl.context import Context
from xdsl.dialects import builtin, cf, func, test
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i32, i64
from xdsl.dialects.test import TestOp, TestTermOp
from xdsl.ir import Block, Region
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from abele.dialects import nn
from abele.ir.legality import row
from abele.ir.level import Level
from abele.ir.provenance import named
from abele.ir.support.errors import InputError
from abele.ir.text import parse_module
from abele.ir.verify import IllFormed, verify, verify_dominance
from abele.tools.driver.context import new_context


def parse(text: str, allow_unregistered: bool = False) -> ModuleOp:
    context = Context(allow_unregistered=allow_unregistered)
    for dialect in (builtin.Builtin, func.Func, cf.Cf, test.Test):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


WELL_FORMED = """
func.func @f(%c: i1, %x: i32) -> i32 {
  %a = "test.op"(%x) : (i32) -> i32
  cf.cond_br %c, ^left, ^right
^left:
  %b = "test.op"(%a) ({
    %n = "test.op"(%a, %x) : (i32, i32) -> i32
    "test.termop"(%n) : (i32) -> ()
  }) : (i32) -> i32
  cf.br ^join(%b : i32)
^right:
  cf.br ^join(%a : i32)
^join(%r: i32):
  "test.op"(%a, %r, %x) : (i32, i32, i32) -> ()
  func.return %r : i32
}
"""


def test_a_well_formed_module_passes():
    verify(parse(WELL_FORMED))
    verify(ModuleOp([]))


def test_a_use_before_the_definition_is_found():
    module = parse("""
        "test.op"(%a) : (i32) -> () loc("early")
        %a = "test.op"() : () -> i32
    """)
    module.verify()
    with pytest.raises(VerifyException) as caught:
        verify(module)
    assert str(caught.value) == "test.op at early: operand 0 (%a) is used before its definition"


def test_an_operation_that_uses_itself_is_found():
    with pytest.raises(VerifyException, match="is used before its definition"):
        verify(parse('%a = "test.op"(%a) : (i32) -> i32'))


def test_a_use_of_its_own_result_inside_a_region_is_found():
    with pytest.raises(VerifyException, match="is used before its definition"):
        verify(
            parse("""
            %a = "test.op"() ({
              "test.termop"(%a) : (i32) -> ()
            }) : () -> i32
            """)
        )


def test_a_block_that_does_not_dominate_is_found():
    module = parse("""
        func.func @f(%c: i1) {
          cf.cond_br %c, ^a, ^b
        ^a:
          %x = "test.op"() : () -> i32
          cf.br ^b
        ^b:
          "test.op"(%x) : (i32) -> () loc("late")
          func.return
        }
    """)
    module.verify()
    with pytest.raises(VerifyException, match="defined in a block that does not dominate this"):
        verify(module)


def test_a_loop_carries_values_of_its_header_only():
    text = """
        func.func @f(%c: i1) {
          cf.br ^head
        ^head:
          %x = "test.op"() : () -> i32
          cf.cond_br %c, ^body, ^end
        ^body:
          %y = "test.op"(%x) : (i32) -> i32
          cf.br ^head
        ^end:
          "test.op"({used}) : (i32) -> ()
          func.return
        }
    """
    verify(parse(text.replace("{used}", "%x")))
    with pytest.raises(VerifyException, match=r"operand 0 \(%y\) is defined in a block"):
        verify(parse(text.replace("{used}", "%y")))


def test_a_value_escaping_its_region_is_found():
    inner = TestOp(result_types=[i32])
    outer = TestOp(regions=[Region(Block([inner, TestTermOp()]))])
    user = TestOp(inner.results)
    user.location = named("conv1")
    module = ModuleOp([outer, user])
    module.verify()
    with pytest.raises(VerifyException) as caught:
        verify(module)
    assert str(caught.value) == (
        "test.op at conv1: operand 0 is defined inside a region that this operation is not in"
    )


def test_a_value_of_another_module_is_found():
    other = ModuleOp([stranger := TestOp(result_types=[i32])])
    with pytest.raises(VerifyException, match="operand 0 is not in this module"):
        verify(ModuleOp([TestOp(stranger.results)]))
    verify(other)


def test_an_isolated_operation_sees_nothing_outside():
    outside = TestOp(result_types=[i32])
    inner = func.FuncOp("f", ((), ()), Region(Block([TestOp(outside.results), func.ReturnOp()])))
    with pytest.raises(VerifyException, match="isolated from above"):
        verify_dominance(ModuleOp([outside, inner]))


def test_an_erased_operand_is_named_by_its_user():
    gone = TestOp(result_types=[i32])
    user = TestOp(gone.results)
    user.location = named("relu1")
    module = ModuleOp([gone, user])
    gone.detach()
    gone.erase(safe_erase=False)
    with pytest.raises(VerifyException, match=r"^test\.op at relu1: Erased SSA value"):
        verify(module)


def test_the_message_names_the_operation_and_never_prints_the_module():
    module = parse("""
        func.func @f() {
          "test.op"() {marker = "a long module"} : () -> ()
          "func.return"() : () -> () loc("net.mlir":7:3)
          func.return
        }
    """)
    with pytest.raises(VerifyException) as caught:
        verify(module)
    assert str(caught.value).startswith("func.return at net.mlir:7:3: ")
    assert not hasattr(caught.value, "__notes__")
    assert "a long module" not in str(caught.value)


def test_an_empty_block_is_reported_in_one_line():
    module = ModuleOp([TestOp(regions=[Region(Block())])])
    with pytest.raises(VerifyException, match="contains empty block") as caught:
        verify(module)
    assert not hasattr(caught.value, "__notes__")


def of(ops: str) -> Level:
    return Level("some", (row(ops),))


def test_legal_operations_pass():
    verify(parse(WELL_FORMED), of("builtin func cf test"))


def test_an_illegal_operation_is_named_with_the_legal_ones():
    module = parse('func.func @f() { "test.op"() : () -> () loc("conv1") func.return }')
    verify(module, of("builtin func test.op"))
    with pytest.raises(VerifyException) as caught:
        verify(module, of("builtin.module func test.termop"))
    assert str(caught.value) == (
        "test.op at conv1: test.op is not legal here; legal: builtin.module, func, test.termop"
    )


def test_an_unregistered_operation_goes_by_its_own_name():
    module = parse('"other.op"() : () -> ()', allow_unregistered=True)
    verify(module, of("builtin other"))
    with pytest.raises(VerifyException, match=r"other.op is not legal here; legal: builtin"):
        verify(module, of("builtin"))


def test_a_check_of_xdsl_that_stumbles_is_a_refusal():
    text = """func.func @main(%x: tensor<4x3xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.reduce ins(%x : tensor<4x3xf32>) outs(%e : tensor<4xf32>) dimensions = [1]
      (%p: f32, %q: f32) { linalg.yield %p : f32 }
      func.return %r : tensor<4xf32>
    }"""
    module = parse_module(text, new_context(), "model.mlir")
    reduce = next(op for op in module.walk() if op.name == "linalg.reduce")
    reduce.properties["dimensions"] = DenseArrayBase.from_list(i64, [7])
    with pytest.raises(IllFormed, match=r"linalg.reduce at .*: xDSL's check of it ends with"):
        verify(module)


def test_a_value_that_is_defined_nowhere_is_refused():
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
          ins(%x : tensor<4xf32>) outs(%nowhere : tensor<4xf32>) {
      ^bb0(%p: f32, %q: f32):
        linalg.yield %p : f32
      } -> tensor<4xf32>
      func.return %r : tensor<4xf32>
    }"""
    with pytest.raises((InputError, IllFormed), match="nowhere|defined"):
        verify(parse_module(text, new_context(), "model.mlir"))


def test_a_check_of_abeles_own_that_stumbles_is_no_refusal(monkeypatch: pytest.MonkeyPatch):
    module = parse_module(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "%r = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>\nfunc.return %r : tensor<4xf32>\n}",
        new_context(),
        "model.mlir",
    )

    def stumbles(op: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(nn.ReluOp, "verify_", stumbles)
    with pytest.raises(KeyError, match="planted"):
        verify(module)
