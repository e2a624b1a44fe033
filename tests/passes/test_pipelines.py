import pytest

from abele.ir.errors import InputError
from abele.passes.pipelines import DOWN, LEVELS, expand, level_after, pipeline, stages, way


def test_a_level_stands_for_the_passes_that_end_there():
    planned = 'plan-splits{target="tiny:5"},convert-nn-to-partition'
    nn = ",".join(DOWN["nn"])
    assert expand("nn,mine{a=1},partition", "tiny:5", ["mine"]) == f"{nn},mine{{a=1}},{planned}"
    assert expand("", "tiny") == ""
    assert expand("decompose", "tiny") == "decompose"


def test_the_whole_way_is_every_level():
    assert way("nn") == LEVELS
    assert way("tile") == ("exchange",)
    assert way("exchange") == ()
    assert expand(",".join(LEVELS), "tiny") == pipeline("nn", "exchange", "tiny")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            "nn{x=1}",
            "nn stands for decompose, .*, and takes no options",
        ),
        ("partitoin", "no pass 'partitoin'; did you mean partition"),
        ("nn,,tile", "pipeline 'nn,,tile'"),
        ("nn;tile", "pipeline 'nn;tile'"),
    ],
)
def test_bad_shorthand(spec: str, says: str):
    with pytest.raises(InputError, match=says):
        expand(spec, "tiny")


def test_a_level_is_known_until_a_pass_that_may_lead_anywhere():
    assert level_after([], "nn") == "nn"
    assert level_after(["decompose", "convert-nn-to-partition", "allocate"], "nn") == "partition"
    assert level_after(["convert-nn-to-partition", "mine"], "nn") is None
    assert level_after(["mine", "convert-partition-to-tile"], None) == "tile"


def test_another_pass_belongs_to_the_stage_it_leads_to():
    names = ["decompose", "mine", "plan-splits", "mine", "convert-partition-to-tile", "mine"]
    assert stages(names) == ("nn", "partition", "partition", "tile", "tile", "tile")
    assert stages(["mine"]) == ("nn",)
    assert stages(["mine", "allocate"]) == ("exchange", "exchange")


def test_every_level_has_passes():
    assert tuple(DOWN) == LEVELS
