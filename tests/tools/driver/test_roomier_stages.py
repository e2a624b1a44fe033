"""Stages are cut anew if one that the planner chose does not fit its chip."""

import pytest

from abele.ir.errors import DoesNotFit
from abele.passes.assign_stages import AssignStages
from abele.tools.driver.roomier_stages import in_roomier_stages, with_spare


def pipeline(**options: object) -> str:
    return f"decompose,{AssignStages(**options).spec()},pipeline-stages"


def test_each_cut_leaves_the_bytes_that_the_one_before_lacked():
    tried: list[str] = []

    def compile_with(passes: str):
        tried.append(passes)
        raise DoesNotFit("@stage3", 100 + 10 * len(tried), 100, tile=7)

    with pytest.raises(DoesNotFit, match="tile 7: @stage3 needs 110 bytes"):
        in_roomier_stages(compile_with, pipeline(stages=4), lambda lines: None)
    assert tried == [pipeline(stages=4, spare=n) for n in (0, 10, 30, 60)]


@pytest.mark.parametrize("passes", ["", pipeline(cuts=("fc1",)), pipeline(stages=1)])
def test_what_a_user_has_cut_stays(passes: str):
    assert with_spare(passes, 10) is None

    def compile_with(passes: str):
        raise DoesNotFit("@stage3", 110, 100, tile=7)

    with pytest.raises(DoesNotFit):
        in_roomier_stages(compile_with, passes, lambda lines: None)


def test_if_no_such_cut_is_left_the_error_is_that_of_the_first_one():
    tried: list[str] = []

    def compile_with(passes: str):
        tried.append(passes)
        if len(tried) == 2:
            raise DoesNotFit("stage 1 of 4", 10, 5, units="bytes of a chip")
        raise DoesNotFit("@stage3", 110, 100, tile=7)

    with pytest.raises(DoesNotFit, match="@stage3"):
        in_roomier_stages(compile_with, pipeline(stages=4), lambda lines: None)
    assert len(tried) == 2
