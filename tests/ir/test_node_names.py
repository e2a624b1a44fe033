from xdsl.dialects.test import TestOp

from abele.ir.node_names import EVERY, called, fitting, nobody, node_names
from abele.ir.provenance import fused, named


def op(*names: str) -> TestOp:
    made = TestOp()
    made.location = fused([named(name) for name in names])
    return made


CONV, NORM, NAMELESS = op("conv1", "relu1"), op("bn1/scale"), TestOp()
OPS = (CONV, NORM, NAMELESS)


def test_an_operation_is_called_after_each_of_its_nodes_and_after_all_of_them():
    assert node_names(CONV) == ("conv1", "relu1", "conv1+relu1")
    assert node_names(NORM) == ("bn1/scale",)
    assert node_names(NAMELESS) == ()


def test_a_name_is_the_whole_path():
    assert called("relu1", OPS) == [CONV]
    assert called("conv1+relu1", OPS) == [CONV]
    assert called("bn1", OPS) == []


def test_a_star_stands_for_any_letters():
    assert fitting("*1", OPS) == [CONV]
    assert fitting("bn1/*", OPS) == [NORM]
    assert fitting("bn?", OPS) == []


def test_an_operation_without_a_name_matches_only_the_pattern_of_all():
    assert fitting(EVERY, OPS) == list(OPS)
    assert fitting("?*", OPS) == [CONV, NORM]


def test_an_unknown_name_is_refused_with_the_known_names():
    other = op("same")
    assert nobody("bn1", OPS, (), "") == ("became bn1/scale; name one of them, or all as 'bn1/*'")
    assert nobody("same", OPS, (other,), "needs no plan") == "test.op needs no plan"
    assert nobody("relu2", OPS, (), "").startswith("no operator of that name; did you mean relu1")
