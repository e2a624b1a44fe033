from xdsl.dialects.builtin import Builtin, ModuleOp, i32
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf
from xdsl.dialects.test import Test, TestOp

from abele.ir.context import AbeleContext
from abele.ir.listing import ListingPrinter
from abele.ir.provenance import named
from abele.ir.text import parse_module, print_module

TEXT = """builtin.module {
  func.func @main(%x: i32 loc("x"), %b: i1) -> i32 {
    %0 = "test.op"(%x) : (i32) -> i32 loc("first"("net.onnx":3:4))
    %1 = scf.if %b -> (i32) {
      %2 = "test.op"(%0) : (i32) -> i32 loc(fused["p", "q"])
      scf.yield %2 : i32
    } else {
      scf.yield %0 : i32
    }
    func.return %1 : i32
  }
  func.func @other(%x: i32) -> i32 {
    %0 = "test.op"(%x) {text = " loc(\\"none\\")"} : (i32) -> i32
    func.return %0 : i32
  }
}
"""


def module() -> ModuleOp:
    context = AbeleContext()
    for dialect in (Builtin, Func, Scf, Test):
        context.load_dialect(dialect)
    return parse_module(TEXT, context)


def test_a_listing_has_the_module_s_text():
    program = module()
    assert ListingPrinter().listing(program).text == print_module(program)


def test_its_lines_have_no_locations():
    program = module()
    lines = ListingPrinter().listing(program).lines
    assert "\n".join(each.text for each in lines) + "\n" == print_module(program, locations=False)


def test_each_line_knows_its_operation():
    names = [each.op.name for each in ListingPrinter().listing(module()).lines]
    main = ["func.func", "test.op", "scf.if", "test.op", "scf.yield", "scf.if", "scf.yield"]
    other = ["func.func", "test.op", "func.return", "func.func"]
    end = ["scf.if", "func.return", "func.func"]
    assert names == ["builtin.module", *main, *end, *other, "builtin.module"]


def test_an_operation_printed_again_has_the_lines_it_had():
    printer = ListingPrinter()
    listing = printer.listing(module())
    for line in listing.lines:
        again = [each.text for each in printer.lines(line.op)]
        first = next(i for i, each in enumerate(listing.lines) if each.op is line.op)
        assert again == [each.text for each in listing.lines[first : first + len(again)]]


def test_new_values_get_unused_names():
    printer, program = ListingPrinter(), module()
    listing = printer.listing(program)
    first = listing.lines[2].op
    new = TestOp(result_types=[i32])
    new.location = named("new")
    block = first.parent
    assert block is not None
    block.insert_op_after(new, first)
    (line,) = printer.lines(new)
    name = line.text.split()[0]
    assert line.text == f'    {name} = "test.op"() : () -> i32'
    assert f"{name} " not in listing.text
