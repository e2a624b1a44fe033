"""Names that are known without dialects are those of the dialects."""

from abele.dialects.levels import LEVELS
from abele.ir.well_known import LEVEL_NAMES


def test_all_levels_are_named_in_order():
    assert [level.name for level in LEVELS] == LEVEL_NAMES
