from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, StringAttr, TensorType, f16, f32, i1
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute

from abele.ir.printer import TextPrinter
from abele.ir.upstream import ModuleOp, Printer

tensors = st.builds(
    TensorType,
    st.sampled_from([f16, f32, i1]),
    st.lists(st.sampled_from([0, 1, 7, 1000, DYNAMIC_INDEX]), max_size=4),
)
attributes = st.one_of(
    tensors,
    st.builds(StringAttr, st.text('a\n"é', max_size=4)),
    st.builds(ArrayAttr, st.lists(tensors)),
)


def printed(printer: type[Printer], module: ModuleOp) -> str:
    stream = StringIO()
    printer(stream, print_debuginfo=True).print_op(module)
    return stream.getvalue()


@given(st.lists(st.tuples(tensors, st.dictionaries(st.sampled_from("abc"), attributes))))
def test_it_prints_the_same_text_as_xdsl(ops: list[tuple[Attribute, dict[str, Attribute]]]):
    module = ModuleOp([TestOp(result_types=[kind], attributes=given) for kind, given in ops])
    assert printed(TextPrinter, module) == printed(Printer, module)


def test_every_character_of_a_string_is_printed_as_xdsl_prints_it():
    text = "".join(map(chr, range(0x250)))
    module = ModuleOp([TestOp(attributes={"text": StringAttr(text)})])
    assert printed(TextPrinter, module) == printed(Printer, module)


def test_a_type_with_an_encoding_is_printed_with_it():
    module = ModuleOp([TestOp(result_types=[TensorType(f32, [2], StringAttr("rows"))])])
    assert 'tensor<2xf32, "rows">' in printed(TextPrinter, module)
