import pytest
from xdsl.dialects.test import TestOp

from abele.backends.graph.layers import layers_of
from abele.ir.provenance import named
from abele.ir.upstream import UNKNOWN_LOC


def layers(*names: str | None) -> list[str]:
    ops = [TestOp() for _ in names]
    for op, name in zip(ops, names, strict=True):
        op.location = UNKNOWN_LOC if name is None else named(name)
    return layers_of(ops)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["conv1/conv+conv1+relu1/partials", "conv1/conv+conv1+relu1"], ["conv1", "conv1"]),
        (["fire2/squeeze", "fire2/expand"], ["fire2/squeeze", "fire2/expand"]),
        (["fire2/squeeze/partials", "fire2/squeeze"], ["fire2/squeeze", "fire2/squeeze"]),
        (["pool5/partials"], ["pool5"]),
        (["softmax/largest", "softmax/centre+softmax/exp", "softmax"], ["softmax"] * 3),
        ([None], [""]),
    ],
)
def test_steps_of_lowering_are_left_out(names: list[str | None], expected: list[str]):
    assert layers(*names) == expected
