from abele.dialects import tile

from .programs import TO_TILE, after


def test_a_constant_is_a_resident_variable():
    module = after(TO_TILE)
    resident = [v for v in module.walk() if isinstance(v, tile.VariableOp) and v.is_resident]
    assert {v.symbol for v in resident} == {"w", "b"}
