"""Programs run at whatever level they are."""

from importlib.resources import files

from abele.ir.rules.parse import parse_rules
from abele.ir.rules.syntax import Build
from abele.tools.observed import _ON_BYTES


def test_operations_on_bytes_are_what_the_rules_make_of_those_of_tile():
    text = files("abele.passes").joinpath("rules/tile_to_exchange.rw").read_text()
    made: dict[str, str] = {}
    for rule in parse_rules(text).rules:
        (root,), (result,) = rule.pattern.heads, rule.results
        assert isinstance(result, Build)
        made[root] = result.head
    assert made == {root.name: kind.name for root, kind in _ON_BYTES.items()}
