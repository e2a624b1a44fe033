"""Names that are known without dialects are those of the dialects."""

from abele.dialects.levels import LEVELS, SOURCES
from abele.ir.well_known import LEVEL_NAMES, SOURCE_NAMES


def test_all_levels_are_named_in_order():
    assert [level.name for level in LEVELS] == LEVEL_NAMES


def test_the_names_of_levels_above_nn_are_those_of_the_levels():
    assert tuple(level.name for level in SOURCES) == SOURCE_NAMES
