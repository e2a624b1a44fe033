from pathlib import Path

import numpy as np
import pytest
from some_tensors import context, module_of
from xdsl.dialects.builtin import f16, f32, i8
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation

from abele.dialects import nn
from abele.dialects.dtypes import QUARTERS, numpy_dtype
from abele.ir.support.errors import InputError
from abele.ir.support.number_formats import FORMATS, Overflow, format_of
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp, VerifyException
from abele.tools import Executable, compile_model

E4M3, E5M2 = QUARTERS
SCALE_OF_CASTS = (-32, -3, 0, 31)


def every_number(element: Attribute) -> np.ndarray:
    """All 256 elements of a type."""
    return np.arange(256, dtype=np.uint8).view(numpy_dtype(element))


def numbers_of(array: np.ndarray) -> np.ndarray:
    """The numbers that elements stand for without a scale, by the description of the format."""
    return format_of(array.dtype).decode(array.view(np.uint8))


def product(
    first: Attribute,
    second: Attribute,
    words: str = "",
    shape: tuple[int, int, int] = (4, 8, 2),
    result: str = "f16",
) -> str:
    m, k, n = shape
    a, b, c = f"tensor<{m}x{k}x{first}>", f"tensor<{k}x{n}x{second}>", f"tensor<{m}x{n}x{result}>"
    return f"""
    func.func @main(%x: {a}, %w: {b}) -> {c} {{
      %0 = nn.matmul %x, %w {words} : ({a}, {b}) -> {c}
      func.return %0 : {c}
    }}"""


def compiled(text: str, folder: Path, target: str = "c600:4") -> Executable:
    file = folder / "program.mlir"
    _ = file.write_text(text)
    return compile_model(file, target=target)


def applied(ops: list[Operation], values: np.ndarray, folder: Path) -> np.ndarray:
    """What a compiled program of operations in a row makes of values."""
    source = ops[0].operands[0]
    function = FuncOp("main", ([source.type], [ops[-1].results[0].type]))
    source.replace_all_uses_with(function.body.block.args[0])
    function.body.block.add_ops([*ops, ReturnOp(ops[-1].results[0])])
    exe = compiled(print_module(ModuleOp([function])), folder)
    (result,) = exe.run({"arg0": values}).values()
    return result


def argument(shape: tuple[int, ...], element: Attribute):
    return FuncOp("f", ([nn.tensor(shape, element)], [])).body.block.args[0]


@pytest.mark.parametrize("first", QUARTERS, ids=str)
@pytest.mark.parametrize("second", QUARTERS, ids=str)
def test_each_pair_of_8_bit_floats_has_the_product_that_its_formats_say(first, second, tmp_path):
    # One product per result: nothing is added, so that the only rounding is that to float16.
    exe = compiled(product(first, second, "scale -7", (256, 1, 256)), tmp_path)
    a, b = every_number(first)[:, None], every_number(second)[None]
    (result,) = exe.run({"arg0": a, "arg1": b}).values()
    with np.errstate(all="ignore"):
        expected = (numbers_of(a) * numbers_of(b) * 2.0**-7).astype(np.float16)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("tiles", [1, 16])
def test_a_scale_multiplies_products_before_they_are_added_in_float16(tiles, tmp_path):
    # Without it, each product is 57,600, and two of them exceed float16.
    exe = compiled(product(E4M3, E4M3, "scale -10", (2, 512, 2)), tmp_path, f"c600:{tiles}")
    full = np.full((2, 512), 240, numpy_dtype(E4M3))
    (result,) = exe.run({"arg0": full, "arg1": full.T}).values()
    # 32 products of 56.25 are a pass, after which the sum is rounded; 16 tiles have one pass each.
    total = np.float16(0)
    for _ in range(16):
        total = np.float16(np.float32(total) + np.float32(32 * 56.25))
    assert total == 28768
    np.testing.assert_array_equal(result, np.full((2, 2), {1: total, 16: 28800}[tiles], np.float16))


def test_tiles_hold_and_exchange_a_byte_per_element(tmp_path):
    sizes = (64, 512, 64)
    narrow = compiled(product(E4M3, E4M3, "", sizes), tmp_path, "c600:64").profile
    text = product(E4M3, E4M3, "", sizes).replace(str(E4M3), "f16")
    wide = compiled(text, tmp_path, "c600:64").profile
    assert narrow["host_input_bytes"] * 2 == wide["host_input_bytes"]
    assert narrow["exchange_bytes"] < wide["exchange_bytes"]
    assert narrow["cycles"] < wide["cycles"]


@pytest.mark.parametrize("scale", [-32, -1, 0, 3])
def test_every_float16_is_kept_as_the_code_of_f134_that_gfloat_says(scale, tmp_path):
    gfloat = pytest.importorskip("gfloat")
    f134 = gfloat.FormatInfo(
        name="f134",
        k=8,
        precision=5,
        bias=0,
        has_nz=True,
        domain=gfloat.types.Domain.Finite,
        num_high_nans=0,
        has_subnormals=True,
        is_signed=True,
        is_twos_complement=False,
    )
    numbers = np.array([gfloat.decode_float(f134, code).fval for code in range(128)])
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    ops = nn.kept_narrow(argument(values.shape, f16), FORMATS["f134"], scale)
    got = applied(ops, values, tmp_path)
    assert got.dtype == np.int8
    with np.errstate(invalid="ignore"):
        exact = np.ldexp(values.astype(np.float64), -scale)
    rounded = gfloat.round_ndarray(f134, np.where(np.isnan(exact), 0.0, exact), sat=True)
    codes = np.searchsorted(numbers, np.abs(rounded)) * np.sign(rounded)
    np.testing.assert_array_equal(got, codes)
    back = applied(
        nn.made_wide(argument(got.shape, i8), FORMATS["f134"], f32, scale), got, tmp_path
    )
    np.testing.assert_array_equal(back, np.ldexp(rounded, scale))


@pytest.mark.parametrize("name", ["f16", "bf16", "f143", "f152"])
@pytest.mark.parametrize("scale", [-3, 0])
def test_values_are_kept_narrow_as_their_format_rounds_them(name, scale, tmp_path):
    fmt = FORMATS[name]
    values = np.exp(np.linspace(-30, 30, 5000)).astype(np.float32)
    values = np.concatenate([values, -values, np.float32([0, np.inf, -np.inf])])
    ops = nn.kept_narrow(argument(values.shape, f32), fmt, scale)
    got = applied(ops, values, tmp_path)
    expected = np.ldexp(fmt.round(np.ldexp(values.astype(np.float64), -scale)), scale)
    assert got.dtype == fmt.numpy_dtype
    back = nn.made_wide(ops[-1].results[0], fmt, f32, scale)
    back[0].operands[0] = argument(got.shape, nn.element_of(ops[-1].results[0]))
    np.testing.assert_array_equal(applied(back, got, tmp_path), expected.astype(np.float32))


@pytest.mark.parametrize("element", QUARTERS, ids=str)
@pytest.mark.parametrize("scale", SCALE_OF_CASTS)
@pytest.mark.parametrize("saturates", [True, False])
def test_every_float16_becomes_the_8_bit_float_that_the_format_says(
    element, scale, saturates, tmp_path
):
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    ops = nn.quartered(argument(values.shape, f16), element, scale, saturates=saturates)
    got = applied(ops, values, tmp_path)
    fmt = format_of(got.dtype)
    with np.errstate(invalid="ignore"):
        exact = np.ldexp(values.astype(np.float64), -scale)
    overflow = Overflow.CLIP if saturates else Overflow.NAN
    expected = fmt.encode(fmt.round(exact, "nearest", overflow))
    np.testing.assert_array_equal(got.view(np.uint8), expected)


@pytest.mark.parametrize("element", QUARTERS, ids=str)
def test_a_float32_is_rounded_once(element, tmp_path):
    # Just above the middle between two 8-bit floats: as a float16 first, it would be the middle.
    numbers = np.unique(numbers_of(every_number(element))[1:128])
    middles = (numbers[:-1] + numbers[1:]) / 2
    values = np.nextafter(middles.astype(np.float32), np.float32(np.inf))
    got = applied(nn.quartered(argument(values.shape, f32), element, 0), values, tmp_path)
    np.testing.assert_array_equal(numbers_of(got), numbers[1:])


@pytest.mark.parametrize("element", QUARTERS, ids=str)
def test_widened_elements_are_the_numbers_that_they_stand_for(element, tmp_path):
    read = nn.made_wide(argument((256,), element), format_of(numpy_dtype(element)), f32, -5)
    got = applied(read, every_number(element), tmp_path)
    np.testing.assert_array_equal(got, numbers_of(every_number(element)) * 2.0**-5)


@pytest.mark.parametrize("element", QUARTERS, ids=str)
@pytest.mark.parametrize("factor", [1.0, 0.9, 1.001])
def test_the_least_scale_keeps_the_largest_value_and_no_smaller_one_does(element, factor):
    fmt = format_of(numpy_dtype(element))
    for power in (-30, -1, 0, 1, 30):
        largest = fmt.largest * factor * 2.0**power
        scale = nn.least_scale(largest, element)
        assert largest * 2.0**-scale <= fmt.largest < largest * 2.0 ** (1 - scale)
    assert nn.least_scale(0.0, element) == 0


@pytest.mark.parametrize(
    ("largest", "message"),
    [
        (1e30, r"largest value 1e\+30 needs a scale of 2\^92; need at most 2\^31"),
        (np.inf, "largest value inf; need a finite one"),
    ],
)
def test_a_value_beyond_every_scale_is_refused(largest, message):
    with pytest.raises(ValueError, match=message):
        _ = nn.least_scale(largest, E4M3)


@pytest.mark.parametrize("scale", [-33, 32])
def test_a_scale_that_the_machine_does_not_have_is_refused(scale):
    with pytest.raises(ValueError, match=f"scale {scale}; need -32 to 31"):
        _ = nn.quartered(argument((2,), f32), E4M3, scale)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (product(E4M3, E4M3, "scale 63"), "scale 63; need -64 to 62"),
        (product(E4M3, E4M3, "into_i32"), "into_i32 of 8-bit floats"),
        (product(E4M3, f16, ""), "operand 1 has elements f16, and another has 8-bit floats"),
        (product(f16, f16, "scale 1"), "scale 1 of elements f16; need f8E4M3FNUZ or f8E5M2FNUZ"),
        (product(E4M3, E4M3, "", result=str(E4M3)), "need tensor<4x2xf16>"),
    ],
)
def test_a_product_that_no_unit_computes_is_refused(text, message):
    with pytest.raises(VerifyException, match=message):
        _ = module_of(text, context())


def test_a_product_prints_its_scale():
    text = product(E4M3, E5M2, "transpose_lhs scale -3", (8, 8, 2))
    module = module_of(text, context())
    assert "nn.matmul %x, %w transpose_lhs scale -3 : (tensor<8x8xf8E4M3FNUZ>" in print_module(
        module
    )


def test_a_target_without_units_says_which_has_them(tmp_path):
    message = (
        "nn.matmul at .*operands of f8E4M3FNUZ, for which target mk2:4 has no units; need one of "
        "tiny, c600, c600x2, or a cast of the operands to f16"
    )
    with pytest.raises(InputError, match=message):
        _ = compiled(product(E4M3, E4M3), tmp_path, "mk2:4")


def test_a_convolution_and_its_gradients_take_8_bit_floats():
    image, weight = argument((1, 3, 8), E4M3), argument((2, 3, 3), E4M3)
    made = nn.ConvOp(image, weight, scale=-2)
    gradient = argument((1, 2, 6), E5M2)
    for op in (
        made,
        nn.ConvInputGradOp(gradient, weight, [8]),
        nn.ConvWeightGradOp(image, gradient, [3]),
    ):
        op.verify()
        assert nn.element_of(op.result) == f16
    assert made.structure().body.parameters == (0.25,)


def test_only_products_of_8_bit_floats_are_added_up_in_float16():
    y, x, k = nn.dim("y", 4), nn.dim("x", 2), nn.dim("k", 8, "reduction")
    a, b = argument((4, 8), f32), argument((8, 2), f32)
    read = [nn.at(a, y, k), nn.at(b, k, x)]
    with pytest.raises(VerifyException, match="scaled_mul sum, which is for 8-bit floats; need nn"):
        _ = nn.compute("scaled_mul", read, [y, x], combiner="sum", parameters=[0.5])
