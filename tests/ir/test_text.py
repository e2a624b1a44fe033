import re
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xdsl.dialects import builtin, func, test
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.test import TestOp

from abele.dialects.abele import Abele
from abele.dialects.blob_attr import BlobAttr
from abele.ir.blob import Blob
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.ir.provenance import fused, named, origin, place
from abele.ir.text import blobs_of, parse_module, print_module, read_module, write_module
from abele.ir.upstream import ParseError, Parser, Printer
from abele.tools.driver.context import new_context


def context() -> AbeleContext:
    made = AbeleContext()
    for dialect in (builtin.Builtin, func.Func, test.Test, Abele):
        made.load_dialect(dialect)
    return made


TEXT = """\
builtin.module {
  func.func @f(%x: i32) {
    "test.op"(%x) : (i32) -> () loc("conv1")
    func.return
  }
}
"""


def test_operations_without_a_location_get_their_place_in_the_text():
    module = parse_module(TEXT, context(), "net.mlir")
    assert [place(op) for op in module.walk()] == [
        "net.mlir:1:1",
        "net.mlir:2:3",
        "conv1",
        "net.mlir:4:5",
    ]


def test_an_explicitly_unknown_location_stays_unknown():
    module = parse_module('"test.op"() : () -> () loc(unknown)', context())
    (op,) = module.body.block.ops
    assert origin(op) is None


def test_text_with_locations_is_a_fixed_point():
    text = print_module(parse_module(TEXT, context(), "net.mlir"))
    assert 'loc("net.mlir":4:5)' in text
    assert print_module(parse_module(text, context(), "other.mlir")) == text


@given(st.text())
@example("é")
def test_text_attributes_of_any_kind_survive_a_round_trip(content: str):
    op = TestOp(attributes={"content": StringAttr(content)})
    (again,) = parse_module(print_module(ModuleOp([op])), context()).body.block.ops
    assert again.attributes == op.attributes


def test_text_without_locations_has_none():
    assert print_module(parse_module(TEXT, context()), locations=False) == TEXT.replace(
        ' loc("conv1")', ""
    )


@given(st.lists(st.text(), min_size=1, max_size=3))
@example(['"', "\\", "a\nb", "\0", "\x7f", "é", "a/b:c+d"])
def test_names_of_any_kind_survive_a_round_trip(names: list[str]):
    op = TestOp()
    op.location = fused(named(name) for name in names)
    text = print_module(ModuleOp([op]))
    (again,) = parse_module(text, context()).body.block.ops
    assert again.location == op.location


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"test.op"() : () ->', r"^net.mlir:1:20: "),
        ('\n  "test.op"(%a) : (i32) -> ()', r"^net.mlir:2:\d+: values used but not defined"),
        ('\n "no.op"() : () -> ()', r"^net.mlir:2:\d+: Operation no.op is not registered"),
        ('"test.op"() {a = #abele.blob<"12">} : () -> ()', r'^net.mlir:1:30: unknown blob "12"'),
        ('"test.op"() {a = i0x} : () -> ()', r"^net.mlir:1:18: "),
        # xDSL reports these two without a place.
        ('\n"test.op"() {a = 300 : i8} : () -> ()', r"^net.mlir:2:\d+: .*300 is out of range"),
        ('\n"test.op"() {a = @"\\FF"} : () -> ()', r"^net.mlir:2:\d+: 'utf-8' codec can't decode"),
        ("", r"^net.mlir:1:1: no operations; need the text of a module"),
        (" \n ", r"no operations; need the text of a module"),
        (b"ok\n ab\xff", r"^net.mlir:2:4: byte 0xff is not UTF-8; need the text of a module"),
        ("?", r"^net.mlir:1:1: "),
    ],
)
def test_bad_text_is_one_error_at_its_place(text: str | bytes, message: str):
    with pytest.raises(InputError, match=message) as caught:
        parse_module(text, context(), "net.mlir")
    assert not getattr(caught.value, "__notes__", [])


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('"nn.rleu"() : () -> ()', "Operation nn.rleu is not registered; did you mean nn.relu?"),
        ("nnn.relu", "Operation nnn.relu is not registered; did you mean nn.relu?"),
        ("tile.cpy", "Operation tile.cpy is not registered; did you mean tile.copy?"),
        ("nn.frobnicate", "Operation nn.frobnicate is not registered"),
        (
            "builtin.module attributes {a = #abele.layuot<x>} {}",
            "'abele.layuot' is not registered; did you mean abele.layout?",
        ),
    ],
)
def test_a_name_that_is_not_there_gets_a_suggestion(text: str, hint: str):
    with pytest.raises(InputError) as caught:
        parse_module(text, new_context(), "net.mlir")
    first, *_ = str(caught.value).split("\n")
    assert re.fullmatch(rf"net.mlir:1:\d+: {re.escape(hint)}", first)


def test_the_error_shows_the_line_and_the_place():
    with pytest.raises(InputError) as caught:
        parse_module('\n  "test.op"() ? () -> ()\n', context(), "net.mlir")
    _, line, caret = str(caught.value).split("\n")
    assert line == '  "test.op"() ? () -> ()'
    assert line[caret.index("^") :] == "? () -> ()"


def test_a_long_line_is_cut_around_the_place():
    text = f'"test.op"() {{a = "{"x" * 5000}", b ? 1, c = "{"y" * 5000}"}} : () -> ()'
    with pytest.raises(InputError) as caught:
        parse_module(text, context())
    _, line, caret = str(caught.value).split("\n")
    assert len(line) <= 100
    assert line[caret.index("^")] == "?"


def test_deep_nesting_is_an_input_error():
    text = '"test.op"() ({' * 5000 + "}) : () -> ()" * 5000
    with pytest.raises(InputError, match="nested too deeply"):
        parse_module(text, context())


VOCABULARY = ["builtin.module", "func.func", "@f", "%a", "{", "}", "(", ")", "<", ">", ":", "->"]
VOCABULARY += ["=", '"test.op"', "tensor", "dense", "1", "0x7f", "i32", "loc", '"', "#", "!", "-"]
VOCABULARY += ["^a", "[", "]", ",", "affine_map", "1e99", "\n", "#abele.blob", "memref", "{-#", "?"]
MANGLED = st.lists(st.sampled_from(VOCABULARY) | st.text(max_size=2), max_size=40).map(" ".join)


@given(st.binary(max_size=200) | MANGLED.map(str.encode))
@example(b"\x00")
@example(TEXT.encode())
def test_any_bytes_are_a_module_or_an_input_error(text: bytes):
    try:
        parse_module(text, context(), "net.mlir")
    except InputError as error:
        assert str(error).startswith("net.mlir:")


@given(st.integers(0, len(TEXT) - 1), st.sampled_from(VOCABULARY))
def test_a_mangled_module_is_a_module_or_an_input_error(position: int, word: str):
    try:
        parse_module(TEXT[:position] + word + TEXT[position + len(word) :], context(), "net.mlir")
    except InputError as error:
        assert str(error).startswith("net.mlir:")


def with_blobs() -> ModuleOp:
    deep = BlobAttr(Blob(np.arange(3)))
    flat = BlobAttr(Blob(np.arange(4.0)))
    nested = ArrayAttr([StringAttr("a"), DictionaryAttr({"b": ArrayAttr([deep])})])
    return ModuleOp(
        [TestOp(attributes={"nested": nested}), TestOp(properties={"flat": flat, "same": flat})]
    )


def test_blobs_are_found_in_nested_attributes():
    assert len(blobs_of(with_blobs())) == 2
    assert len(blobs_of(ModuleOp([]))) == 0


def test_a_written_module_is_read_back_with_its_blobs(tmp_path: Path):
    module = with_blobs()
    write_module(module, tmp_path / "new" / "net.mlir", "// heading\n")
    text = (tmp_path / "new" / "net.mlir").read_text()
    assert text.startswith("// heading\n// abele text, version 1\nbuiltin.module {\n")
    assert len(text) < 1000
    here = context()
    again = read_module(tmp_path / "new" / "net.mlir", here)
    assert again.is_structurally_equivalent(module)
    assert len(here.blobs) == 2


def test_a_module_without_blobs_is_one_file(tmp_path: Path):
    write_module(ModuleOp([]), tmp_path / "net.mlir")
    assert [each.name for each in tmp_path.iterdir()] == ["net.mlir"]
    read_module(tmp_path / "net.mlir", context())


def test_missing_files_and_damaged_blobs_are_input_errors(tmp_path: Path):
    with pytest.raises(InputError, match=r"no.mlir: cannot be read: No such file"):
        read_module(tmp_path / "no.mlir", context())
    write_module(with_blobs(), tmp_path / "net.mlir")
    damaged = next((tmp_path / "blobs").iterdir())
    damaged.write_bytes(b"")
    with pytest.raises(InputError, match=f"{damaged.name}: damaged blob"):
        read_module(tmp_path / "net.mlir", context())
    damaged.unlink()
    with pytest.raises(
        InputError, match=rf'net.mlir:\d+:\d+: unknown blob "{damaged.stem}".* blobs/ beside'
    ):
        read_module(tmp_path / "net.mlir", context())


def test_a_value_without_a_definition_is_shown_where_it_is_used():
    text = """"test.op"() ({
  "test.op"(%nowhere) : (i32) -> ()
  "test.op"() : () -> ()
}) : () -> ()
"""
    with pytest.raises(InputError, match=r"^f\.mlir:2:13: .*%nowhere"):
        parse_module(text, context(), "f.mlir")


TYPES = (
    *("tensor<4x8xf32>", "tensor<f32>", "tensor<0xi1>", "tensor<4x8xf32, 1 : i32>"),
    *("tensor<4 x f32>", "tensor< 4xf32>", "tensor<?x2xf32>", 'tensor<2x!test.type<"a">>'),
    *("tensor<4xindex>", "tensor<4xbf16>", "tensor<4x>", "tensor<4xx>", "tensor<4xnothing>"),
    *("tensor<-1xf32>", "tensor<4xf32", "tensor", "tensor<4xtensor<2xf32>>", "tensor <4xf32>"),
)
LOCATIONS = (
    *("loc(unknown)", 'loc("conv1")', 'loc("a" ("b"))', 'loc("net.mlir":2:3)', 'loc("a"'),
    *('loc ("conv1")', 'loc(fused["a", "b"])', 'loc("a\\"b")', "loc()", 'loc("")', "loc(x)"),
)


def read(parser: type[Parser], text: str) -> str | None:
    """What xDSL's own printer prints of a text; None if it cannot be read."""
    try:
        module = parser(context(), text).parse_module()
    except ParseError:
        return None
    stream = StringIO()
    Printer(stream, print_debuginfo=True).print_op(module)
    return stream.getvalue()


@given(st.lists(st.tuples(st.sampled_from(TYPES), st.sampled_from(LOCATIONS)), min_size=1))
def test_types_and_locations_are_read_as_xdsl_reads_them(parts: list[tuple[str, str]]):
    text = "\n".join(f'"test.op"() {{a = {kind}}} : () -> {kind} {at}' for kind, at in parts)
    expected = read(Parser, text)
    try:
        found = parse_module(text, context())
    except InputError:
        assert expected is None
        return
    assert print_module(found) == f"{expected}\n"


def test_a_type_that_was_read_before_is_the_same_one():
    one, other = (parse_module(TEXT.replace("i32", "tensor<3xf32>"), context()) for _ in "12")
    kinds = [
        op.body.block.args[0].type
        for module in (one, other)
        for op in module.walk()
        if isinstance(op, func.FuncOp)
    ]
    assert kinds[0] is kinds[1]


def test_nesting_beyond_the_limit_is_refused_at_its_place():
    for text in ("[" * 3000, "<" * 3000, "(" * 3000, "{" * 3000, "[{(<" * 20):
        with pytest.raises(
            InputError, match=r"my\.mlir:1:65: nested too deeply; at most 64 nested"
        ):
            parse_module(text, context(), "my.mlir")


def test_aliases_of_aliases_do_not_grow_without_bounds():
    lines = ["#a0 = [1]", *(f"#a{i + 1} = [#a{i}, #a{i}]" for i in range(60))]
    function = "func.func @main() attributes {a = #a60} { func.return }"
    with pytest.raises(InputError, match=r"my\.mlir:20: alias a19 stands for 1,048,575 aliases"):
        parse_module("\n".join([*lines, function]), context(), "my.mlir")
    few = "\n".join([*lines[:10], function.replace("#a60", "#a9")])
    parse_module(few + "\n// #a9" * 9999, context(), "my.mlir")
