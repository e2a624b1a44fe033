import pytest
from hypothesis import given
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from abele.dialects.abele import LayoutAttr, Plan, PlanAttr, SpaceAttr
from abele.ir.geometry.layout import canonical

from ..ir.geometry.strategies import Cutting, cuttings
from ..strategies import context

TEXTS = [
    "#abele.space<[i = 3] (i - 1 fill) of [3] pad -0.0 -> (i) of [3]>",
    "#abele.space<[n = 1, y = 55, k = 3 reduction, t = 4 whole] (n, 4 * y + k - 2 fill, t) of "
    "[1, 224, 4] pad -inf, () of [] -> (n, y, t) of [1, 55, 4]>",
    "#abele.layout<[6 by 6, 55 by 5 grain 2, 3] (4 * d1 + d2, 0, -d1 + 54 floordiv 2) of "
    "[224, 1, 30] at 7>",
    "#abele.layout<[4, 3] (d0 - 2 * d1 + 1 exactdiv 2 reflect) of [3]>",
    "#abele.body<mul sum>",
    "#abele.body<leaky_relu [0.01, -inf, 1.0e+20]>",
    "#abele.body<mul sum then add, sub at 1, clip [0.0, inf], relu>",
    "#abele.body<scale [0.5] then exp>",
    "#abele.body<relu then max at 1>",
    "#abele.body<exp then leaky_relu [0.1], div>",
    "#abele.body<less then select, round, identity as ui8>",
    "#abele.plan<split [6, 2] order [1, 0] at 8 method amp workers [1, 6] combine split [1]>",
]


@pytest.mark.parametrize("text", TEXTS)
def test_attributes_print_as_they_are_written(text: str):
    assert str(Parser(context(), text).parse_attribute()) == text


@given(cuttings((5, 4)))
def test_every_layout_parses_back_equal(cutting: Cutting):
    attribute = LayoutAttr(canonical(cutting.layout()))
    assert Parser(context(), str(attribute)).parse_attribute() == attribute


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#abele.space<[n = 2] (m) of [2] -> (n) of [2]>", "no dimension m; there are n"),
        ("#abele.space<[n = 2, n = 3] (n) of [3] -> (n) of [3]>", "two dimensions have one name"),
        ("#abele.space<[n = 2] (n) of [1] -> (n) of [2]>", r"reaches indices 0\.\.1 of 1"),
        ("#abele.layout<[3 by 4] (d0) of [3]>", "4 parts of 3 elements"),
        ("#abele.layout<[1000000000] (d0) of [3]>", r"reaches indices 0\.\.999999999 of 3"),
        ("#abele.layout<[3] (d0, d0) of [3]>", "2 axes of a shape of 1"),
        ("#abele.plan<split [2, 0]>", r"split .2, 0.; need 1 or more parts"),
        ("#abele.plan<split [2] workers [0]>", r"workers .0.; need 1 or more parts"),
        (f"#abele.plan<split [2] workers [{10**12}]>", "need at most 2147483648 parts"),
        (f"#abele.plan<split [2] workers [{10**40}]>", "integer of 133 bits"),
        ("#abele.plan<split [2] at -8>", "at -8; need 0 to 2147483648"),
        (f"#abele.plan<split [2] at {1 << 62}>", "at 4611686018427387904; need 0 to 2147483648"),
        (f"#abele.layout<[3] (d0) of [3] at {1 << 62}>", "need 0 to 2147483648"),
        ("#abele.layout<[3] (d0) of [3] at -1>", "at -1; need 0 to 2147483648"),
        ("#abele.body<exp then >", "a scalar function"),
        ("#abele.body<exp then mod>", "function 'mod' in a chain; need one of abs, .*add, "),
        ("#abele.body<exp then mul at 1>", "mul at 1 in a chain; need 0"),
        ("#abele.body<exp then sub at 2>", "sub at 2 in a chain; need 0 or 1"),
        ("#abele.body<exp then clip [0.0]>", r"clip with parameters .0.0.; need 2 numbers"),
        ("#abele.body<exp then scale [nan]>", r"scale with parameters .nan.; need 1 numbers"),
        ("#abele.body<exp then relu as i8>", "relu as i8; need identity as one of f32, f16, "),
        ("#abele.body<exp then identity as i32, exp>", "stage 1 of 2, a cast to i32; need one of"),
        ("#abele.body<mul average>", "combiner 'average'; need one of sum, max, min, prod"),
    ],
)
def test_invalid_attributes_are_refused_with_the_reason(text: str, message: str):
    with pytest.raises(ParseError, match=message):
        Parser(context(), text).parse_attribute()


def test_equal_decisions_are_equal_attributes():
    assert PlanAttr(Plan((1, 2))) == PlanAttr(Plan((1, 2)))
    assert isinstance(Parser(context(), TEXTS[0]).parse_attribute(), SpaceAttr)
