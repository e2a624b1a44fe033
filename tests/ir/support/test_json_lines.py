import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from abele.ir.errors import InputError
from abele.ir.support.json_lines import parse_json, read_json

TEXT = """{
  "a": {"b": [1, {"c": "x: {y, \\"z"}],
        "d": 2},
  "e": {}
}"""


def test_every_key_knows_its_line():
    found = parse_json(TEXT, "t.json")
    assert found.lines == {
        ("a",): 2,
        ("a", "b"): 2,
        ("a", "b", 1, "c"): 2,
        ("a", "d"): 3,
        ("e",): 4,
    }
    assert found.place("a", "d") == "t.json:3: a.d"
    assert found.place("e", "absent") == "t.json:4: e.absent"
    assert found.place() == "t.json:1"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def ways(value: object, way: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    """The ways to all keys."""
    if isinstance(value, dict):
        return {w for key, each in value.items() for w in {(*way, key)} | ways(each, (*way, key))}
    if isinstance(value, list):
        return {w for i, each in enumerate(value) for w in ways(each, (*way, i))}
    return set()


@given(VALUES, st.sampled_from((None, 2)))
def test_exactly_the_keys_have_lines(value, indent):
    text = json.dumps(value, indent=indent)
    found = parse_json(text)
    assert found.value == value
    assert set(found.lines) == ways(value)
    if indent:
        lines = text.splitlines()
        assert all(json.dumps(way[-1]) in lines[n - 1] for way, n in found.lines.items())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1,\n "a": 2}', "t.json:2: key 'a' is given twice, first on line 1"),
        ('{"a":\n }', "t.json:2:2: not JSON: Expecting value"),
        ("", "t.json:1:1: not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "not JSON"),
    ],
)
def test_invalid_json_is_refused_with_its_line(text, says):
    with pytest.raises(InputError) as raised:
        parse_json(text, "t.json")
    assert says in str(raised.value)


def test_an_unreadable_file_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"absent\.json: cannot be read: No such file"):
        read_json(tmp_path / "absent.json")
    path = tmp_path / "bytes.json"
    path.write_bytes(b'{"\xff": 1}')
    with pytest.raises(InputError, match="not UTF-8 text: byte 2"):
        read_json(path)
