import numpy as np
import pytest
from lengths import lengths
from some_models import classifier
from some_tensors import context, module_of

from abele.backends.reference import run_reference
from abele.dialects import nn, partition
from abele.dialects.dtypes import QUARTERS
from abele.ir.errors import InputError
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.narrow_products import NarrowProducts
from abele.passes.pipelines import PASSES
from abele.tools import Training, compile_model
from abele.tools.testing import check_pass
from abele.tools.testing.search.contracts import contracts_of

PRODUCT = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x2xf32> {
  %w = nn.load @w : tensor<8x2xf32>
  %0 = nn.matmul %x, %w SCALES : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  func.return %0 : tensor<4x2xf32>
}"""
WEIGHTS = np.linspace(-3, 3, 16, dtype=np.float32).reshape(8, 2)


def program(scales: str = "", weights: np.ndarray = WEIGHTS, text: str = PRODUCT) -> ModuleOp:
    ctx = context()
    state = "nn.state @w : tensor<8x2xf32> = {w}"
    return module_of(state + text.replace("SCALES", scales), ctx, w=weights)


def narrowed(module: ModuleOp, options: str = "") -> ModuleOp:
    for each in parse_pipeline(f"narrow-products{{{options}}}", PASSES):
        each.apply(context(), module)
    verify(module)
    return module


def products(module: ModuleOp) -> list[nn.ContractionOp]:
    return [op for op in module.walk() if isinstance(op, nn.ContractionOp)]


def test_a_product_reads_8_bit_floats_and_has_the_sum_of_their_scales():
    # The largest weight is 3: 3 / 2^-6 = 192 is kept, 3 / 2^-7 is not.
    after = """
    nn.state @w : tensor<8x2xf32> = {w}
    func.func @main(%x: tensor<4x8xf32>) -> tensor<4x2xf32> {
      %0 = nn.clip %x to -240.0, 240.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %1 = nn.cast %0 : (tensor<4x8xf32>) -> tensor<4x8xf8E4M3FNUZ>
      %w = nn.load @w : tensor<8x2xf32>
      %2 = nn.scale %w by 64.0 : (tensor<8x2xf32>) -> tensor<8x2xf32>
      %3 = nn.clip %2 to -240.0, 240.0 : (tensor<8x2xf32>) -> tensor<8x2xf32>
      %4 = nn.cast %3 : (tensor<8x2xf32>) -> tensor<8x2xf8E4M3FNUZ>
      %5 = nn.matmul %1, %4 scale -6 : (tensor<4x8xf8E4M3FNUZ>, tensor<8x2xf8E4M3FNUZ>)
        -> tensor<4x2xf16>
      %6 = nn.cast %5 : (tensor<4x2xf16>) -> tensor<4x2xf32>
      func.return %6 : tensor<4x2xf32>
    }"""
    got = print_module(narrowed(program()), locations=False)
    assert got == print_module(module_of(after, context(), w=WEIGHTS), locations=False)


def test_calibrated_scales_replace_those_of_weights_and_are_used_once():
    (op,) = products(narrowed(program("{scales = array<i64: -3, -5>}")))
    assert op.exponent == -8
    assert not op.attributes
    factors = [each.parameters[0] for each in op.parent.ops if isinstance(each, nn.ScaleOp)]
    assert sorted(factors) == [8.0, 32.0]


def test_each_value_is_made_narrow_once_for_all_products_that_read_it():
    text = PRODUCT.replace(
        "func.return",
        "%1 = nn.matmul %x, %w : (tensor<4x8xf32>, "
        "tensor<8x2xf32>) -> tensor<4x2xf32>\n func.return",
    )
    module = narrowed(program(text=text))
    assert len(products(module)) == 2
    assert sum(isinstance(op, nn.ClipOp) for op in module.walk()) == 2


@pytest.mark.parametrize("scale", [-6, 0, 7])
def test_scales_cancel(scale):
    # Operands and results are exact in every type, so that a scale applied twice would show.
    weights = (2.0 ** np.arange(8)[:, None] * np.ones(2) * 2.0**scale).astype(np.float32)
    x = np.ones((4, 8), np.float32) * 2.0**-scale
    module = narrowed(program(f"{{scales = array<i64: {-scale}, {scale}>}}", weights))
    outputs = run_reference(module, {"arg0": x.astype(np.float32)}).outputs
    np.testing.assert_array_equal(outputs["out0"], np.full((4, 2), 255.0))


def test_large_values_are_limited_to_the_largest_8_bit_float():
    module = narrowed(program(weights=np.eye(8, 2, dtype=np.float32)))
    x = np.full((4, 8), 1e6, np.float32)
    outputs = run_reference(module, {"arg0": x}).outputs
    np.testing.assert_array_equal(outputs["out0"], np.full((4, 2), 240))


@pytest.mark.parametrize(
    ("scales", "weights", "message"),
    [
        ("", WEIGHTS * np.nan, "weights: largest value nan; need a finite one"),
        ("", WEIGHTS * 1e30, r"weights: largest value 3e\+30 needs a scale of 2\^94"),
        ("{scales = array<i64: 32, 0>}", WEIGHTS, "scale 32; need -32 to 31"),
        ("{scales = array<i64: 1>}", WEIGHTS, "need 2 exponents, as in array<i64: -3, -6>"),
        ("{scales = 3 : i64}", WEIGHTS, "scales 3 : i64; need 2 exponents"),
    ],
)
def test_what_no_scale_fits_is_refused_with_the_product(scales, weights, message):
    with pytest.raises(InputError, match=f"nn.matmul at .*{message}"):
        _ = narrowed(program(scales, weights))


def test_products_that_are_kept_stay_and_unknown_names_are_refused():
    text = PRODUCT.replace("tensor<4x2xf32>\n  func", 'tensor<4x2xf32> loc("fc")\n  func')
    (op,) = products(narrowed(program(text=text), 'keep="fc"'))
    assert not op.is_of_quarters
    with pytest.raises(InputError, match="option 'keep': fd: "):
        _ = narrowed(program(text=text), 'keep="fd"')


def test_a_step_of_training_multiplies_gradients_of_1_5_2(tmp_path):
    exe = compile_model(
        classifier(), target="c600:8", precision="float8", batch=4, train=Training()
    )
    made = [op for op in exe.module_at("partition").walk() if isinstance(op, partition.ComputeOp)]
    types = [
        {str(element) for element in QUARTERS for v in op.operands if str(element) in str(v.type)}
        for op in made
        if op.structure().body.is_scaled_product
    ]
    forward, gradient = map(str, QUARTERS)
    assert len(types) == 3
    assert types.count({forward}) == 1
    assert types.count({forward, gradient}) == 2


@pytest.mark.parametrize("examples", lengths(12, 40))
def test_any_program_computes_the_same_within_the_errors_of_its_casts(examples: int):
    relation = contracts_of(NarrowProducts)
    report = check_pass("narrow-products", examples=examples, seed=7, relation=relation)
    assert report.changed > examples / 2


LOCATED = PRODUCT.replace("tensor<4x2xf32>\n  func", 'tensor<4x2xf32> loc("fc")\n  func')


def test_an_option_has_the_scales_of_a_product_and_leaves_the_rest_to_the_pass():
    (op,) = products(narrowed(program(text=LOCATED), 'scales="-3/*:fc","5/5:*"'))
    assert op.exponent == -3 - 6
    (op,) = products(
        narrowed(program("{scales = array<i64: 1, 1>}", text=LOCATED), 'scales="-3/*:fc"')
    )
    assert op.exponent == 2


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ("fc", "scales': fc; need EXPONENT/EXPONENT:NAME"),
        ("-3/x:fc", "need EXPONENT/EXPONENT:NAME"),
        ("-3/2:", "need EXPONENT/EXPONENT:NAME"),
        ("-3:fc", "1 exponents for nn.matmul at .*; need 2"),
        ("-3/2:fd", "option 'scales': fd: .*fc"),
        ("-33/2:fc", "scale -33; need -32 to 31"),
    ],
)
def test_an_option_that_fits_no_product_is_refused(scales, message):
    with pytest.raises(InputError, match=message):
        narrowed(program(text=LOCATED), f'scales="{scales}"')
