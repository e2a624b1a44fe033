from xdsl.dialects.test import TestOp

from abele.ir.node_names import (
    EVERY,
    no_such_operator,
    node_names,
    operations_matching,
    operations_named,
)
from abele.ir.provenance import fused, named


def op(*names: str) -> TestOp:
    made = TestOp()
    made.location = fused([named(name) for name in names])
    return made


CONV, NORM, NAMELESS = op("conv1", "relu1"), op("bn1/scale"), TestOp()
OPS = (CONV, NORM, NAMELESS)


def test_an_operation_has_the_name_of_each_of_its_nodes_and_of_all_together():
    assert node_names(CONV) == ("conv1", "relu1", "conv1+relu1")
    assert node_names(NORM) == ("bn1/scale",)
    assert node_names(NAMELESS) == ()


def test_a_name_is_the_whole_path():
    assert operations_named("relu1", OPS) == [CONV]
    assert operations_named("conv1+relu1", OPS) == [CONV]
    assert operations_named("bn1", OPS) == []


def test_a_star_stands_for_any_text():
    assert operations_matching("*1", OPS) == [CONV]
    assert operations_matching("bn1/*", OPS) == [NORM]
    assert operations_matching("bn?", OPS) == []


def test_an_operation_without_a_name_matches_only_the_pattern_of_all():
    assert operations_matching(EVERY, OPS) == list(OPS)
    assert operations_matching("?*", OPS) == [CONV, NORM]


def test_an_unknown_name_is_refused_with_the_known_names():
    other = op("same")
    assert no_such_operator("bn1", OPS, (), "") == (
        "became bn1/scale; name one of them, or all as 'bn1/*'"
    )
    assert no_such_operator("same", OPS, (other,), "needs no plan") == "test.op needs no plan"
    assert no_such_operator("relu2", OPS, (), "").startswith(
        "no operator of that name; did you mean relu1"
    )


def test_a_name_in_the_models_file_counts_where_no_operation_has_it():
    made, step, other = TestOp(), TestOp(), op("node_1")
    made.location = named("blocks.0.ln1", named("node_1"))
    step.location = named("blocks.0.ln2/mean", named("node_2/mean"))
    assert operations_named("node_1", [made, step]) == [made]
    assert operations_named("node_1", [made, other]) == [other]
    assert operations_matching("node_*", [made, step]) == [made, step]
    assert operations_matching("blocks.*", [made, step, other]) == [made, step]
    assert no_such_operator("node_2", [made, step], (), "").startswith("became blocks.0.ln2/mean;")
    assert no_such_operator("node_1", [step], [made], "needs no plan") == "test.op needs no plan"
