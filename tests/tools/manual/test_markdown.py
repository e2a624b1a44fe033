import re

from hypothesis import given
from hypothesis import strategies as st

from abele.tools.manual.markdown import COLUMNS, fence, page, table

WORDS = st.lists(st.sampled_from(("a", "word", "-", "*", "#", "1.", "`a b`", "x" * 20)), min_size=1)


def body(text: str) -> list[str]:
    return text.splitlines()[4:]


def test_prose_wraps_and_items_of_lists_hang():
    words = "word " * 40
    lines = body(page("Title", words, f"- item {words}"))
    assert all(len(line) <= COLUMNS for line in lines)
    assert [line[:6] for line in lines] == ["word w", "word w", "", "- item", "  word", "  word"]


def test_code_tables_and_headings_stay_as_they_are():
    long = "word " * 40 + "end"
    blocks = (fence(long), table(("title",), [(long,)]), f"## {long}")
    assert page("Title", *blocks).endswith("\n\n".join(blocks) + "\n")


@given(WORDS)
def test_wrapped_prose_says_the_same_and_begins_nothing(words: list[str]):
    text = " ".join(["word", *words])
    lines = body(page("Title", text))
    assert " ".join(lines) == text
    assert not any(re.match(r"([-+*>]|#+|\d+[.)])( |$)", line) for line in lines[1:])
