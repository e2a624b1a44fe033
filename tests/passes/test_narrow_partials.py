import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from some_tensors import context, module_of

from abele.ir.errors import InputError
from abele.ir.pass_manager import parse_pipeline
from abele.ir.provenance import origin
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.analysis.partial_sums import is_narrow, is_sum_of_halves
from abele.passes.pipelines import PASSES, expand
from abele.tools.testing import check_pass

LAYERS = """
func.func @main(%x: tensor<4x64xf16>, %v: tensor<64x2048xf16>, %w: tensor<2048x8xf16>)
    -> tensor<4x8xf16> {
  %0 = nn.matmul %x, %v FIRST : (tensor<4x64xf16>, tensor<64x2048xf16>) -> tensor<4x2048xf16>
      loc("fc1")
  %1 = nn.relu %0 : (tensor<4x2048xf16>) -> tensor<4x2048xf16> loc("relu1")
  %2 = nn.matmul %1, %w SECOND : (tensor<4x2048xf16>, tensor<2048x8xf16>) -> tensor<4x8xf16>
      loc("fc2")
  func.return %2 : tensor<4x8xf16>
}"""


def layers(first: str = "", second: str = "") -> str:
    return LAYERS.replace("FIRST ", first).replace("SECOND ", second)


def narrowed(text: str, options: str = "") -> ModuleOp:
    ctx = context()
    module = module_of(text, ctx)
    for each in parse_pipeline(f"narrow-partials{{{options}}}", PASSES):
        each.apply(ctx, module)
    verify(module)
    return module


def check(after: str, options: str = "", before: str | None = None) -> None:
    got = print_module(narrowed(before or layers(), options))
    assert got == print_module(module_of(after, context()))


def test_all_sums_of_products_are_kept_in_16_bits():
    check(layers("narrow_partials ", "narrow_partials "))


def test_or_in_32():
    check(layers(), "partials=float32", layers("narrow_partials "))


def test_sums_may_keep_what_they_have():
    text = layers("narrow_partials ")
    check(text, "partials=keep", text)


@pytest.mark.parametrize(
    ("tolerance", "first", "second"), [(0.001, "", ""), (0.01, "yes", ""), (0.07, "yes", "yes")]
)
def test_auto_asks_for_the_error_of_a_rounding_in_each_pass_of_the_units(tolerance, first, second):
    # 64 products are 4 passes, and 2,048 are 128; each rounds by at most 2^-11.
    flag = "narrow_partials "
    check(layers(first and flag, second and flag), f"partials=auto tolerance={tolerance}")


def test_without_units_each_product_is_rounded():
    # 64 roundings of 2^-11 are 0.032.
    text, target = layers("narrow_partials "), "tiny,amp.float16_float16.units=0"
    check(text, f'partials=auto tolerance=0.033 target="{target}"')
    check(layers(), f'partials=auto tolerance=0.03 target="{target}"')


def test_a_sum_of_float32_is_left_alone():
    text = layers().replace("f16", "f32")
    check(text, "", text)


def test_a_compute_is_a_sum_of_products_too():
    text = """
    func.func @main(%x: tensor<4xf16>, %y: tensor<4xf16>) -> tensor<f16> {
      %0 = nn.compute(%x, %y) space <[k = 4 reduction] (k) of [4], (k) of [4] -> () of []>
        body <mul sum FLAG> : (tensor<4xf16>, tensor<4xf16>) -> tensor<f16>
      func.return %0 : tensor<f16>
    }"""
    check(text.replace("FLAG", "narrow"), "", text.replace("FLAG", ""))


MEANS = """
func.func @main(%x: tensor<4x3x8x8xf16>) -> (tensor<4x3x1x1xf16>, tensor<4x3x4x4xf16>) {
  %0 = nn.reduce "sum" %x axes [2, 3] keep_dims FLAG : (tensor<4x3x8x8xf16>) -> tensor<4x3x1x1xf16>
  CAST
  %2 = nn.pool "sum" READ window [2, 2] stride [2, 2] dilation [1, 1] pad [0, 0] to [0, 0] FLAG
    : (TYPE) -> tensor<4x3x4x4xf32>
  %3 = nn.scale %2 by 0.25 : (tensor<4x3x4x4xf32>) -> tensor<4x3x4x4xf32>
  %4 = nn.cast %3 : (tensor<4x3x4x4xf32>) -> tensor<4x3x4x4xf16>
  func.return %0, %4 : tensor<4x3x1x1xf16>, tensor<4x3x4x4xf16>
}"""
WIDENED = MEANS.replace("FLAG", "").replace("READ", "%1").replace("TYPE", "tensor<4x3x8x8xf32>")
WIDENED = WIDENED.replace("CAST", "%1 = nn.cast %x : (tensor<4x3x8x8xf16>) -> tensor<4x3x8x8xf32>")


def test_sums_of_numbers_read_the_float16_and_not_its_copy():
    after = MEANS.replace("FLAG", "narrow_partials").replace("CAST", "").replace("READ", "%x")
    check(after.replace("TYPE", "tensor<4x3x8x8xf16>"), "partials=float16", WIDENED)


def test_auto_leaves_a_sum_that_may_need_the_range_of_float32():
    after = WIDENED.replace("keep_dims ", "keep_dims narrow_partials")
    check(after, "partials=auto", WIDENED)


def test_sums_of_what_is_computed_in_float32_and_other_reductions_stay():
    text = WIDENED.replace("nn.cast %x", "nn.exp %y").replace(
        "%x: ", "%y: tensor<4x3x8x8xf32>, %x: "
    )
    text = text.replace("%y : (tensor<4x3x8x8xf16>)", "%y : (tensor<4x3x8x8xf32>)")
    text = text.replace('nn.reduce "sum"', 'nn.reduce "max"')
    check(text, "", text)


def test_a_file_chooses_for_single_operators_also_in_groups(tmp_path: Path):
    grouped = layers().replace("nn.relu %0 :", "nn.relu %0 {group = 0} :")
    grouped = grouped.replace("%v :", "%v {group = 0} :")
    path = tmp_path / "c.json"
    for name in ("fc1", "fc1+relu1"):
        asked = {"fc*": {"tiles": 2}, name: {"partials": "float16"}}
        path.write_text(json.dumps({"operators": asked}))
        check(
            grouped.replace("%v {group", "%v narrow_partials {group"),
            f'partials=keep constraints="{path}"',
            grouped,
        )
    path.write_text('{"operators": {"*": {"partials": "float16"}, "fc2": {"partials": "float32"}}}')
    check(layers("narrow_partials "), f'partials=auto constraints="{path}"')


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("relu1", "operators.relu1.partials: nn.relu at relu1 sums no float16"),
        ("fc3", "operators.fc3: no operator of that name; did you mean fc2 or fc1?"),
    ],
)
def test_a_file_that_chooses_for_no_sum_of_products_is_refused(tmp_path: Path, name, says):
    path = tmp_path / "c.json"
    path.write_text(f'{{"operators": {{"{name}": {{"partials": "float16"}}}}}}')
    with pytest.raises(InputError) as raised:
        narrowed(layers(), f'constraints="{path}"')
    assert says in str(raised.value)


def test_random_sums_are_within_the_bounds_of_sums_in_16_bits():
    operators = ["nn.matmul", "nn.reduce", "nn.pool"]
    report = check_pass("narrow-partials", "nn", examples=40, seed=1, operators=operators)
    assert report.changed > 4


def test_a_tolerance_is_a_number_from_0_up():
    with pytest.raises(InputError, match="tolerance -1; need a number from 0 up"):
        narrowed(layers(), "tolerance=-1")


TRAINED = """
nn.state @v : tensor<6x5xf32> = {v}
nn.state @w : tensor<5x3xf32> = {w}
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x3xf32> {
  %v = nn.load @v : tensor<6x5xf32>
  %w = nn.load @w : tensor<5x3xf32>
  %0 = nn.matmul %x, %v : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32> loc("fc1")
  %1 = nn.relu %0 : (tensor<4x5xf32>) -> tensor<4x5xf32> loc("relu1")
  %2 = nn.matmul %1, %w : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32> loc("fc2")
  func.return %2 : tensor<4x3xf32>
}"""


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("forward", {"fc1": 1, "fc2": 1}),
        ("input_gradient", {"fc2/backward": 1}),
        ("weight_gradient", {"fc1/backward": 1, "fc2/backward": 1}),
    ],
)
def test_each_part_of_a_step_of_training_has_a_choice_of_its_own(part, expected):
    ctx = context()
    module = module_of(TRAINED, ctx, v=np.ones((6, 5), np.float32), w=np.ones((5, 3), np.float32))
    spec = f"narrow-floats,train,nn,narrow-partials{{partials=keep {part}=float16}}"
    for each in parse_pipeline(expand(spec, "tiny:4"), PASSES):
        each.apply(ctx, module)
    verify(module)
    sums = [op for op in module.walk() if is_sum_of_halves(op)]
    assert len(sums) == 5
    assert Counter(origin(op) for op in sums if is_narrow(op)) == expected
