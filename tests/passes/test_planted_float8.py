"""Bugs of 8-bit floats, planted in narrow-products: the kit and bisect find each of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from some_models import model, node, random

from abele.dialects import nn
from abele.dialects.dtypes import QUARTERS
from abele.dialects.levels import EXCHANGE, NN
from abele.ir.pass_manager import parse_pipeline
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.narrow_products import NarrowProducts
from abele.passes.pipelines import PASSES, pipeline
from abele.tools.debug.bisect.bisect import bisect
from abele.tools.driver.request import Request
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.search.contracts import contracts_of, with_apply

TARGET = "c600:4"

Damage = Callable[[ModuleOp], None]


def products(module: ModuleOp) -> list[nn.ContractionOp]:
    return [op for op in module.walk() if isinstance(op, nn.ContractionOp) and op.is_of_quarters]


def narrowings(module: ModuleOp) -> list[nn.CastOp]:
    """The casts to 8-bit floats."""
    casts = (op for op in module.walk() if isinstance(op, nn.CastOp))
    return [op for op in casts if nn.element_of(op.result) in QUARTERS]


def apply_scales_twice(module: ModuleOp) -> None:
    for op in products(module):
        op.properties["scale"] = nn.integer(2 * op.exponent)


def drop_saturation(module: ModuleOp) -> None:
    for op in narrowings(module):
        if isinstance(op.operand.owner, nn.ClipOp):
            op.operands[0] = op.operand.owner.operand


def take_one_format_for_the_other(module: ModuleOp) -> None:
    for op in narrowings(module):
        (other,) = (each for each in QUARTERS if each != nn.element_of(op.result))
        readers = [use for use in op.result.uses if isinstance(use.operation, nn.ContractionOp)]
        if not readers:
            continue
        taken = nn.BitCastOp(op.result, other)
        taken.location = op.location
        assert op.parent is not None
        op.parent.insert_op_after(taken, op)
        for use in readers:
            use.operation.operands[use.index] = taken.result


BUGS: dict[str, Damage] = {
    "scales are applied twice": apply_scales_twice,
    "saturation is missing": drop_saturation,
    "1.4.3 is taken for 1.5.2": take_one_format_for_the_other,
}


def damaged(damage: Damage) -> ModulePass:
    def apply(ctx: Context, op: ModuleOp) -> None:
        NarrowProducts().apply(ctx, op)
        damage(op)

    return with_apply(NarrowProducts(), apply)


# The numbers that the kit draws for products are too small to saturate: bisect has to find that.
@pytest.mark.parametrize("name", ["scales are applied twice", "1.4.3 is taken for 1.5.2"])
def test_the_kit_finds_a_planted_bug(name: str):
    with pytest.raises(Miscompiled):
        _ = check_pass(
            damaged(BUGS[name]),
            examples=20,
            seed=7,
            relation=contracts_of(NarrowProducts),
            reduce_seconds=0,
        )


@pytest.mark.parametrize("name", [None, *BUGS])
def test_bisect_names_the_pass_with_a_planted_bug(name: str | None):
    wrong = NarrowProducts() if name is None else damaged(BUGS[name])
    passes = [wrong, *parse_pipeline(pipeline(NN, EXCHANGE, TARGET), PASSES)]
    weights = random((8, 4), 1)
    made = model([node("MatMul", "x w", "y")], {"x": [2, 8]}, ["y"], {"w": weights})
    # 300 is more than the largest number of the format, 240.
    x = np.where(np.arange(16).reshape(2, 8) % 5, 1.5, 300.0).astype(np.float32)
    verdict = bisect(Request(made, TARGET), passes=passes, inputs={"x": x})
    if name is None:
        assert verdict.passed, verdict.text
    else:
        assert verdict.name == "narrow-products"
