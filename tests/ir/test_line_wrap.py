import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.line_wrap import INDENT, WIDTH, wrapped

TYPE = "!partition.tensor<1x64x56x56xf32, #layout3>"


def test_a_line_that_fits_stays():
    line = "  " + "x " * 59
    assert len(line) == WIDTH
    assert wrapped(line) == line


def test_a_line_is_broken_before_its_clauses():
    line = (
        f"    %12 = partition.compute(%10, %11) space #space3 body <mul sum then add> plan #plan4 :"
        f' ({TYPE}, {TYPE}) -> {TYPE} loc("conv")'
    )
    assert wrapped(line).split("\n") == [
        "    %12 = partition.compute(%10, %11) space #space3 body <mul sum then add> plan #plan4",
        f"        : ({TYPE}, {TYPE})",
        f'        -> {TYPE} loc("conv")',
    ]


def test_a_list_is_broken_after_a_comma_if_no_clause_fits():
    line = f"  func.func @main({', '.join(f'%x{i}: {TYPE}' for i in range(4))}) {{"
    assert wrapped(line).split("\n") == [
        f"  func.func @main(%x0: {TYPE}, %x1: {TYPE},",
        f"      %x2: {TYPE}, %x3: {TYPE}) {{",
    ]


def test_strings_stay_whole():
    line = f'"test.op"() {{name = "{"a b, " * 60}"}} : () -> ()'
    assert '"' + "a b, " * 60 + '"' in wrapped(line)


def test_attributes_of_other_dialects_are_not_broken_over_lines():
    opaque = f"#test.opaque<{'a, (b c), ' * 20}d>"
    assert opaque in wrapped(f'"test.op"() {{name = {opaque}}} : () -> ()')
    assert all(len(each) <= WIDTH for each in wrapped(opaque, inside=True).split("\n"))


def test_properties_of_the_generic_form_are_broken():
    entries = ", ".join(f'"name{i}" = #layout{i}' for i in range(12))
    found = wrapped(f'"test.op"(%0) <{{{entries}}}> : (i32) -> ()').split("\n")
    assert len(found) == 3
    assert all(len(each) <= WIDTH for each in found)


@pytest.mark.parametrize("end", [" {", ""])
def test_the_brace_of_a_region_never_stands_alone(end: str):
    line = "a.b " + "word " * 23 + "w" * (WIDTH - 119 - len(end) + 4) + " {"
    assert all(each.strip() != "{" for each in wrapped(line).split("\n"))


WORDS = st.sampled_from(
    ["space", "#plan3", ":", "->", "(%a,", "%b)", TYPE, "<{", "}>", '"a  b"', "[", "]", "loc(x)"]
)


@given(st.lists(WORDS, min_size=1, max_size=60), st.integers(0, 8), st.booleans())
def test_only_spaces_become_line_breaks(words: list[str], indent: int, inside: bool):
    line = " " * indent + " ".join(words)
    found = wrapped(line, inside)
    assert re.sub(rf"\n {{{indent + INDENT}}}", " ", found) == line
    assert wrapped(found, inside) == found or any(len(x) > WIDTH for x in found.split("\n"))
