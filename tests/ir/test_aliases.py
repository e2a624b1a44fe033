import pytest
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from abele.dialects.abele import LayoutAttr, PlanAttr, SpaceAttr
from abele.ir.aliases import LONGEST_INLINE, Aliases, numbered_by_appearance
from abele.ir.errors import InputError
from abele.ir.text import parse_module, print_inline, print_module
from abele.ir.upstream import ModuleOp

from ..strategies import context

SHORT = "#abele.layout<[4 by 2] (d0) of [4]>"
LAYOUTS = [
    f"#abele.layout<[{n} by 2, 3, 5, 7, 11] (d0, 0, d2, 0, d4) of [{n}, 1, 5, 1, 11]>"
    for n in (4, 6)
]
PLAN = "#abele.plan<split [6, 55, 1] order [1, 0] at 8 method amp workers [1, 6, 1]>"


def attribute(text: str) -> Attribute:
    return Parser(context(), text).parse_attribute()


def module(*texts: str) -> ModuleOp:
    return ModuleOp([TestOp(attributes={"a": attribute(each)}) for each in texts])


def test_long_attributes_are_defined_once_at_the_top():
    text = print_module(module(LAYOUTS[1], PLAN, LAYOUTS[0], LAYOUTS[1], SHORT), locations=False)
    assert (
        text
        == f"""\
#layout0 = {LAYOUTS[1]}
#layout1 = {LAYOUTS[0]}
#plan0 = {PLAN}
builtin.module {{
  "test.op"() {{a = #layout0}} : () -> ()
  "test.op"() {{a = #plan0}} : () -> ()
  "test.op"() {{a = #layout1}} : () -> ()
  "test.op"() {{a = #layout0}} : () -> ()
  "test.op"() {{a = {SHORT}}} : () -> ()
}}
"""
    )


def test_text_with_and_without_aliases_is_parsed():
    made = module(*LAYOUTS, PLAN, SHORT)
    known = context()
    known.load_op(TestOp)
    for text in (print_module(made), print_inline(made)):
        assert parse_module(text, known).is_structurally_equivalent(made)


def test_layouts_that_differ_in_the_sign_of_a_zero_have_two_aliases():
    texts = [
        f"#abele.space<[i = 3, j = 1] (i - 1 fill, j) of [3, 1]{pad} -> (i, j) of [3, 1]>"
        for pad in ("", " pad -0.0")
    ]
    assert "#space1 = " in print_module(module(*texts))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"test.op"() {a = #layout0} : () -> ()', "undefined symbol alias '#layout0'"),
        (
            f'#a = {PLAN}\n%0 = "test.op"() : () -> !partition.tensor<4xf32, #a>',
            r"2:\d+: .*plan.* need abele.layout",
        ),
        (f"#a = {PLAN}\n#a = {PLAN}", "re-declaration of alias '#a'"),
    ],
)
def test_the_error_for_a_wrong_alias_has_its_place(text: str, message: str):
    known = context()
    known.load_op(TestOp)
    with pytest.raises(InputError, match=message):
        parse_module(text, known)


def test_an_alias_is_parsed_where_an_operation_omits_the_attribute_s_name():
    text = f"#l = {LAYOUTS[0]}\ntile.variable @a : tensor<4x5x11xf32> layout #l\n"
    made = parse_module(text, context())
    (op,) = made.body.block.ops
    assert op.properties["layout"] == attribute(LAYOUTS[0])


def test_printers_that_share_aliases_print_the_same_ones():
    aliases = Aliases()
    first, second = (attribute(each) for each in LAYOUTS)
    assert isinstance(first, LayoutAttr)
    assert isinstance(second, LayoutAttr)
    assert [aliases.of(first), aliases.of(second), aliases.of(first)] == [
        "#layout0",
        "#layout1",
        "#layout0",
    ]
    assert aliases.definitions({"#layout1": "#layout0"}) == [f"#layout0 = {LAYOUTS[1]}"]


def test_aliases_are_numbered_by_appearance_and_strings_are_left_alone():
    text = '#plan7 "#plan3" #layout2 #plan3 #plan7 #other1'
    found = numbered_by_appearance(text, {"#plan7", "#plan3", "#layout2"})
    names = {"#plan7": "#plan0", "#layout2": "#layout0", "#plan3": "#plan1"}
    assert found == ('#plan0 "#plan3" #layout0 #plan1 #plan0 #other1', names)


def test_the_alias_of_an_attribute_of_another_kind_is_refused():
    known = context()
    with pytest.raises(ParseError, match="need abele.space"):
        parser = Parser(known, "#plan0")
        parser.attribute_aliases["#plan0"] = attribute(PLAN)
        SpaceAttr.parse_parameter(parser)
    assert len(PlanAttr(attribute(PLAN).data).text()) > LONGEST_INLINE
