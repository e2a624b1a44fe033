"""The depth of brackets, held to the definition of nesting."""

from hypothesis import given
from hypothesis import strategies as st

from abele.ir.support.brackets import too_deep
from abele.ir.support.limits import NESTED_BRACKETS

MOST = NESTED_BRACKETS.most


@given(
    st.integers(0, 2 * MOST), st.lists(st.sampled_from("([{"), min_size=1), st.text("x,\n -> =>")
)
def test_the_first_bracket_beyond_the_limit_is_found(depth: int, kinds: list[str], between: str):
    opening = [kinds[i % len(kinds)] for i in range(depth)]
    closing = [")]}"["([{".index(each)] for each in reversed(opening)]
    text = between.join(opening + closing)
    at = too_deep(text)
    if depth <= MOST:
        assert at is None
    else:
        assert at == MOST * (1 + len(between))


def test_strings_comments_and_arrows_hold_no_brackets():
    assert too_deep('"' + "(" * 200 + '"') is None
    assert too_deep("// " + "(" * 200 + "\n()") is None
    assert too_deep("<" + "-> " * 200 + ">", "<") is None
    assert too_deep("()" * 2000) is None
    assert too_deep("<" * 200, "<") == MOST
