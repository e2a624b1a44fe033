from dataclasses import dataclass

import pytest

from abele.dialects.levels import EXCHANGE, NN, OWN_LEVELS, PARTITION, TILE
from abele.ir.errors import InputError
from abele.ir.level import Level
from abele.ir.pass_manager import parse_pipeline
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.pipelines import (
    DOWN,
    FROM_SOURCES,
    PASSES,
    expand,
    level_after_all,
    levels_below,
    pipeline,
    shorthand_from,
    stages,
)


@dataclass(frozen=True)
class Mine(ModulePass):
    name = "mine"

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


def test_a_level_stands_for_the_passes_that_end_there():
    planned = 'plan-splits{target="tiny:5"},convert-nn-to-partition'
    nn = ",".join(DOWN[NN]).replace("TARGET", '"tiny:5"')
    assert expand("nn,mine{a=1},partition", "tiny:5", ["mine"]) == f"{nn},mine{{a=1}},{planned}"
    assert expand("", "tiny") == ""
    assert expand("decompose", "tiny") == "decompose"


@pytest.mark.parametrize("source", FROM_SOURCES)
def test_from_above_nn_the_passes_that_lead_to_nn_come_first(source: Level):
    (way,) = FROM_SOURCES[source]
    assert expand("nn", "tiny", start=source) == f"{way},{expand('nn', 'tiny')}"
    assert expand("cse,nn", "tiny", ["cse"], start=source) == f"cse,{way},{expand('nn', 'tiny')}"
    named = f"{way},nn,partition"
    assert expand(named, "tiny", start=source) == f"{way},{expand('nn,partition', 'tiny')}"


def test_the_default_pipeline_goes_through_every_level():
    assert levels_below(NN) == OWN_LEVELS
    assert levels_below(TILE) == (EXCHANGE,)
    assert levels_below(EXCHANGE) == ()
    assert shorthand_from(NN) == "nn,partition,tile,exchange"
    assert shorthand_from(EXCHANGE) == ""
    assert expand(shorthand_from(NN), "tiny") == pipeline(NN, EXCHANGE, "tiny")
    assert pipeline(PARTITION, TILE, "tiny") == "convert-partition-to-tile"
    assert pipeline(TILE, TILE, "tiny") == ""
    with pytest.raises(ValueError, match="from tile to nn: a pipeline only leads down"):
        pipeline(TILE, NN, "tiny")


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
    def after(spec: str, start: Level | None) -> Level | None:
        return level_after_all(parse_pipeline(spec, {**PASSES, "mine": Mine}), start)

    assert after("", NN) == NN
    assert after("decompose,convert-nn-to-partition,allocate", NN) == PARTITION
    assert after("convert-nn-to-partition,mine", NN) is None
    assert after("mine,convert-partition-to-tile", None) == TILE


def test_another_pass_belongs_to_the_stage_it_leads_to():
    names = ["decompose", "mine", "plan-splits", "mine", "convert-partition-to-tile", "mine"]
    assert stages(names) == (NN, PARTITION, PARTITION, TILE, TILE, TILE)
    assert stages(["mine"]) == (NN,)
    assert stages(["mine", "allocate"]) == (EXCHANGE, EXCHANGE)
