"""Messages in text are read as Protocol Buffers defines them, with the line of each field."""

import pytest

from abele.ir.support.errors import InputError
from abele.tools.importers.caffe.fields import Fields
from abele.tools.importers.caffe.text_format import Message, Word, read_text


def values(text: str, name: str = "a") -> list[str]:
    found = read_text(text.encode(), "t").fields[name]
    return [each.text for each in found if isinstance(each, Word)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a: 1", ["1"]),
        ("a: 1 a: -2,a:+3;a: 4", ["1", "-2", "+3", "4"]),
        ("a: [1, 2,3] a: []", ["1", "2", "3"]),
        ("a: - 5", ["-5"]),
        ("a: 1e-3 # a: 7\na: .5", ["1e-3", ".5"]),
        ('a: "x" \'y\'\n"z"', ["xyz"]),
        (r"a: 'it\'s' a: '\x41\101\n'", ["it's", "AA\n"]),
        ("a: MAX", ["MAX"]),
    ],
)
def test_values(text: str, wanted: list[str]):
    assert values(text) == wanted


def test_messages_have_both_brackets_and_lines():
    text = "a {\n  b < c: 1 >\n  b: { c: 2 };\n}\nd: 3"
    message = read_text(text.encode(), "t")
    (outer,) = message.fields["a"]
    assert isinstance(outer, Message)
    assert [each.line for each in outer.fields["b"]] == [2, 3]
    assert message.fields["d"][0].line == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "t: line 1: the end of the file; need : or {"),
        ("\na: {", "t: line 2: the end of the file; need the name of a field or }"),
        ("a { >", "'>'; need the name of a field or }"),
        ("a: }", "'}'; need a value"),
        ('a: "x\n"', "'\"' begins nothing"),
        ("a: [1 2]", "'2'; need , or ]"),
        ("[ext]: 1", "'['; need the name of a field"),
        ("a: 'b' : 1", "':'; need the name of a field"),
    ],
)
def test_what_is_no_message_is_refused(text: str, message: str):
    with pytest.raises(InputError) as error:
        read_text(text.encode(), "t")
    assert message in str(error.value)


def test_a_file_of_bytes_or_of_any_size_is_refused():
    with pytest.raises(InputError, match="line 2: no UTF-8"):
        read_text(b"a: 1\n\xff", "t")
    with pytest.raises(InputError, match="at most"):
        read_text(b"#" * ((1 << 26) + 1), "t")


def test_fields_are_read_by_their_type():
    text = 'n: 0x10 n: 010 f: 1.5f t: true k: TWO j: 1 s: "x" m { n: 3 } u: -1'
    fields = Fields(read_text(text.encode(), "t"), None, "t")
    assert fields.integers("n") == [16, 8]
    assert fields.number("f") == 1.5
    assert fields.flag("t")
    assert (
        fields.choice("k", ("ONE", "TWO"), "ONE") == fields.choice("j", ("ONE", "TWO"), "") == "TWO"
    )
    assert fields.inner("m", frozenset("n")).integer("n") == 3
    for call in (
        lambda: fields.integer("f"),
        lambda: fields.integer("s"),
        lambda: fields.integer("u", least=0),
        lambda: fields.flag("n"),
        lambda: fields.text("n"),
        lambda: fields.messages("n", None),
        lambda: fields.integer("m"),
        lambda: fields.choice("k", ("ONE",), "ONE"),
        lambda: fields.inner("m", frozenset("k")),
    ):
        with pytest.raises(InputError, match=r"^t: line 1: "):
            call()
