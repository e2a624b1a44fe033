"""A pass is held to what it declares by the structure of programs."""

from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from abele.ir.text import parse_module
from abele.ir.upstream import Context, ModuleOp
from abele.passes import narrow_floats
from abele.passes.narrow_floats import NarrowFloats
from abele.tools.driver.context import new_context
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.oracle.promises import narrowed_sum


@dataclass(frozen=True)
class NarrowEverything(NarrowFloats):
    """Narrows sums too."""

    name = "narrow-everything"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with patch.object(narrow_floats, "wide_operations", lambda *_: set()):
            super().apply(ctx, op)


def test_sums_that_become_narrow_are_found_though_all_values_are_within_their_bounds(
    tmp_path: Path,
):
    with pytest.raises(Miscompiled) as caught:
        check_pass(NarrowEverything(), examples=120, seed=3, folder=tmp_path / "found")
    assert caught.value.wrong.kind == "promise"
    assert "adds up elements of f16; need float32" in caught.value.wrong.text


def test_a_sum_that_was_narrow_may_stay_so():
    def total(element: str) -> ModuleOp:
        text = f"""func.func @main(%x: tensor<4x{element}>) -> tensor<{element}> {{
          %0 = nn.reduce "sum" %x axes [0] : (tensor<4x{element}>) -> tensor<{element}>
          func.return %0 : tensor<{element}>
        }}"""
        return parse_module(text, new_context())

    assert narrowed_sum(total("f16"), total("f16")) is None
    assert narrowed_sum(total("f32"), total("f32")) is None
    found = narrowed_sum(total("f32"), total("f16"))
    assert found is not None
    assert found.startswith("nn.reduce at ")
