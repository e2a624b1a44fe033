"""Every rule of abele's own: what it makes of a program, and that the program computes the same."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from some_tensors import context, module_of, small_integers

from abele.backends.reference import run_reference
from abele.dialects.dtypes import numpy_dtype
from abele.dialects.nn.base import element_of, shape_of
from abele.ir.pass_manager import parse_pipeline
from abele.ir.rewriting import Source, Watcher, watched
from abele.ir.rules.bound_rule import BoundRule
from abele.ir.rules.lint import lint_rules
from abele.ir.text import print_module
from abele.ir.verify import verify
from abele.passes.pipelines import PASSES
from abele.passes.rules.own import own_rules
from abele.tools.testing.rules import RuleReport

HALVES = np.full((4, 6), 0.5, np.float32)
W = small_integers(1, (8, 4, 3, 3))
S = small_integers(2, (8, 1, 1))

MATRIX = "tensor<4x6xf32>"
ONE = f"({MATRIX}) -> {MATRIX}"
TWO = f"({MATRIX}, {MATRIX}) -> {MATRIX}"
IMAGE, RESULT = "tensor<1x4x6x6xf32>", "tensor<1x8x4x4xf32>"
WINDOW = "stride [1, 1] dilation [1, 1] pad [0, 0] to [0, 0]"
CONV = f"({IMAGE}, tensor<8x4x3x3xf32>) -> {RESULT}"

# Pass, rule, types of %x and %y, the value that is returned with its type, before, after.
CASES = [
    (
        "canonicalize reshape_of_reshape", [MATRIX], "%1 : tensor<2x12xf32>",
        f"""%0 = nn.reshape %x to [24] : ({MATRIX}) -> tensor<24xf32>
            %1 = nn.reshape %0 to [2, 12] : (tensor<24xf32>) -> tensor<2x12xf32>""",
        f"%1 = nn.reshape %x to [2, 12] : ({MATRIX}) -> tensor<2x12xf32>",
    ),
    (
        "canonicalize reshape_to_itself", [MATRIX], f"%0 : {MATRIX}",
        f"%0 = nn.reshape %x to [4, 6] : {ONE}", "",
    ),
    (
        "canonicalize transpose_of_transpose", ["tensor<2x3x4xf32>"], "%1 : tensor<3x4x2xf32>",
        """%0 = nn.transpose %x [2, 1, 0] : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
           %1 = nn.transpose %0 [1, 0, 2] : (tensor<4x3x2xf32>) -> tensor<3x4x2xf32>""",
        "%1 = nn.transpose %x [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>",
    ),
    (
        "canonicalize transpose_in_place", [MATRIX], f"%0 : {MATRIX}",
        f"%0 = nn.transpose %x [0, 1] : {ONE}", "",
    ),
    (
        "canonicalize expand_to_itself", [MATRIX], f"%0 : {MATRIX}",
        f"%0 = nn.expand %x to [4, 6] : {ONE}", "",
    ),
    *(
        (
            f"canonicalize {rule}", [MATRIX, "tensor<6xf32>"], f"%1 : {MATRIX}",
            f"""%0 = nn.expand %y to [4, 6] : (tensor<6xf32>) -> {MATRIX}
                %1 = nn.sub {operands} : {TWO}""",
            f"%1 = nn.sub {folded} : ({types}) -> {MATRIX}",
        )
        for rule, operands, folded, types in [
            ("expand_for_the_second", "%x, %0", "%x, %y", f"{MATRIX}, tensor<6xf32>"),
            ("expand_for_the_first", "%0, %x", "%y, %x", f"tensor<6xf32>, {MATRIX}"),
        ]
    ),
    (
        "canonicalize expand_for_a_condition", [MATRIX, "tensor<6xi1>"], f"%1 : {MATRIX}",
        f"""%0 = nn.expand %y to [4, 6] : (tensor<6xi1>) -> tensor<4x6xi1>
            %1 = nn.select %0, %x, %x : (tensor<4x6xi1>, {MATRIX}, {MATRIX}) -> {MATRIX}""",
        f"%1 = nn.select %y, %x, %x : (tensor<6xi1>, {MATRIX}, {MATRIX}) -> {MATRIX}",
    ),
    *(
        (
            f"canonicalize {rule}", ["tensor<4x6xi1>", "tensor<6xf32>"], f"%1 : {MATRIX}",
            f"""%0 = nn.expand %y to [4, 6] : (tensor<6xf32>) -> {MATRIX}
                %1 = nn.select %x, {operands} : (tensor<4x6xi1>, {types}) -> {MATRIX}""",
            f"%1 = nn.select %x, {folded} : (tensor<4x6xi1>, {small}) -> {MATRIX}",
        )
        for rule, operands, types, folded, small in [
            (
                "expand_for_a_choice",
                "%0, %y", f"{MATRIX}, tensor<6xf32>",
                "%y, %y", "tensor<6xf32>, tensor<6xf32>",
            ),
            (
                "expand_for_the_other_choice",
                "%y, %0", f"tensor<6xf32>, {MATRIX}",
                "%y, %y", "tensor<6xf32>, tensor<6xf32>",
            ),
        ]
    ),
    *(
        (
            f"canonicalize {rule}", [MATRIX], f"%1 : {MATRIX}",
            f"%0 = nn.constant {{halves}} : {MATRIX}\n%1 = nn.sub {operands} : {TWO}",
            f"""%0 = nn.constant {{half}} : tensor<f32>
                %1 = nn.sub {operands} : ({types}) -> {MATRIX}""",
        )
        for rule, operands, types in [
            ("number_for_the_second", "%x, %0", f"{MATRIX}, tensor<f32>"),
            ("number_for_the_first", "%0, %x", f"tensor<f32>, {MATRIX}"),
        ]
    ),
    *(
        (
            f"canonicalize {rule}", ["tensor<4x6xi1>", MATRIX], f"%1 : {MATRIX}",
            f"""%0 = nn.constant {{halves}} : {MATRIX}
                %1 = nn.select %x, {operands} : (tensor<4x6xi1>, {MATRIX}, {MATRIX}) -> {MATRIX}""",
            f"""%0 = nn.constant {{half}} : tensor<f32>
                %1 = nn.select %x, {operands} : (tensor<4x6xi1>, {types}) -> {MATRIX}""",
        )
        for rule, operands, types in [
            ("number_for_a_choice", "%0, %y", f"tensor<f32>, {MATRIX}"),
            ("number_for_the_other_choice", "%y, %0", f"{MATRIX}, tensor<f32>"),
        ]
    ),
    (
        "canonicalize slice_of_all", [MATRIX], f"%0 : {MATRIX}",
        f"%0 = nn.slice %x from [0, 0] step [1, 1] size [4, 6] : {ONE}", "",
    ),
    (
        "canonicalize pad_with_nothing", [MATRIX], f"%0 : {MATRIX}",
        f'%0 = nn.pad "constant" %x low [0, 0] high [0, 0] value 0.0 : {ONE}', "",
    ),
    (
        "canonicalize concat_of_one", [MATRIX], f"%0 : {MATRIX}",
        f"%0 = nn.concat %x axis 0 : {ONE}", "",
    ),
    (
        "canonicalize cast_to_itself", [MATRIX], f"%0 : {MATRIX}",
        f"%0 = nn.cast %x : {ONE}", "",
    ),
    *(
        (
            f"canonicalize {outer}_of_{inner}", [MATRIX], f"%1 : {MATRIX}",
            f"%0 = nn.{inner} %x : {ONE}\n%1 = nn.{outer} %0 : {ONE}",
            f"%1 = nn.{left} %x : {ONE}" if left else "",
        )
        for outer, inner, left in [
            ("neg", "neg", ""),
            ("abs", "abs", "abs"),
            ("abs", "neg", "abs"),
            ("square", "neg", "square"),
            ("square", "abs", "square"),
            ("relu", "relu", "relu"),
        ]
    ),
    (
        "canonicalize not_of_not", [MATRIX, MATRIX], "%2 : tensor<4x6xi1>",
        f"""%0 = nn.less %x, %y : ({MATRIX}, {MATRIX}) -> tensor<4x6xi1>
            %1 = nn.logical_not %0 : (tensor<4x6xi1>) -> tensor<4x6xi1>
            %2 = nn.logical_not %1 : (tensor<4x6xi1>) -> tensor<4x6xi1>""",
        f"%2 = nn.less %x, %y : ({MATRIX}, {MATRIX}) -> tensor<4x6xi1>",
    ),
    (
        "canonicalize scale_by_one", [MATRIX], f"%0 : {MATRIX}",
        f"%0 = nn.scale %x by 1.0 : {ONE}", "",
    ),
    (
        "canonicalize power_of_one", [MATRIX], f"%0 : {MATRIX}",
        f"%0 = nn.power %x to 1.0 : {ONE}", "",
    ),
    (
        "canonicalize clip_of_clip", [MATRIX], f"%1 : {MATRIX}",
        f"%0 = nn.clip %x to -2.0, 3.0 : {ONE}\n%1 = nn.clip %0 to -1.0, 6.0 : {ONE}",
        f"%1 = nn.clip %x to -1.0, 3.0 : {ONE}",
    ),
    (
        "canonicalize square", [MATRIX], f"%0 : {MATRIX}",
        f"%0 = nn.mul %x, %x : {TWO}", f"%0 = nn.square %x : {ONE}",
    ),
    (
        "canonicalize scale", [MATRIX], f"%1 : {MATRIX}",
        f"%0 = nn.constant {{halves}} : {MATRIX}\n%1 = nn.mul %0, %x : {TWO}",
        f"%1 = nn.scale %x by 0.5 : {ONE}",
    ),
    (
        "canonicalize shift", [MATRIX], f"%1 : {MATRIX}",
        f"%0 = nn.constant {{halves}} : {MATRIX}\n%1 = nn.add %x, %0 : {TWO}",
        f"%1 = nn.shift %x by 0.5 : {ONE}",
    ),
    *(
        (
            f"fold-scales {rule}", [IMAGE], f"%3 : {RESULT}",
            f"""%0 = nn.constant {{w}} : tensor<8x4x3x3xf32>
                %1 = nn.constant {{{blob}}} : {scale}
                %2 = nn.conv %x, %0 {WINDOW} : {CONV}
                %3 = nn.mul %2, %1 : ({RESULT}, {scale}) -> {RESULT}""",
            f"""%0 = nn.constant {{w}} : tensor<8x4x3x3xf32>
                %1 = nn.constant {{{blob}}} : {scale}
                %2 = nn.reshape %1 to [8, 1, 1, 1] : ({scale}) -> tensor<8x1x1x1xf32>
                %4 = nn.mul %0, %2 : (tensor<8x4x3x3xf32>, tensor<8x1x1x1xf32>)
                  -> tensor<8x4x3x3xf32>
                %3 = nn.conv %x, %4 {WINDOW} : {CONV}""",
        )
        for rule, blob, scale in [
            ("scale_of_conv", "s", "tensor<8x1x1xf32>"),
            ("scale_of_conv_in_a_batch", "t", "tensor<1x8x1x1xf32>"),
        ]
    ),
    *(
        (f"fold-scales power_of_{rule}", [MATRIX], f"%1 : {MATRIX}",
         f"%0 = nn.abs %x : {ONE}\n%1 = nn.power %0 to {exponent} : {ONE}",
         f"%0 = nn.abs %x : {ONE}\n{roots}")
        for rule, exponent, roots in [
            ("a_half", 0.5, f"%1 = nn.sqrt %0 : {ONE}"),
            ("a_quarter", 0.25, f"%2 = nn.sqrt %0 : {ONE}\n%1 = nn.sqrt %2 : {ONE}"),
            ("three_quarters", 0.75,
             f"""%2 = nn.sqrt %0 : {ONE}
                 %3 = nn.sqrt %2 : {ONE}
                 %1 = nn.mul %3, %2 : {TWO}"""),
            ("minus_a_root", -0.5,
             f"%2 = nn.sqrt %0 : {ONE}\n%1 = nn.reciprocal %2 : {ONE}"),
            ("minus_a_root", -0.75,
             f"""%2 = nn.sqrt %0 : {ONE}
                 %3 = nn.sqrt %2 : {ONE}
                 %4 = nn.mul %3, %2 : {TWO}
                 %1 = nn.reciprocal %4 : {ONE}"""),
        ]
    ),
]  # fmt: skip


ROUNDED = (
    "power_of_a_half",
    "power_of_a_quarter",
    "power_of_three_quarters",
    "power_of_minus_a_root",
)
"""Rules that round more often than what they replace; all others keep every bit."""


class Fired(Watcher):
    def __init__(self) -> None:
        self.names: list[str] = []

    def begin(self, source: Source, root: object) -> None:
        self.names.append(source.name)


def program(types: list[str], returned: str, body: str) -> str:
    arguments = ", ".join(f"%{n}: {t}" for n, t in zip("xy", types, strict=False))
    type_ = returned.partition(" : ")[2]
    return f"func.func @main({arguments}) -> {type_} {{\n{body}\nfunc.return {returned}\n}}"


@pytest.mark.parametrize(
    ("bound_rule", "types", "returned", "before", "after"), CASES, ids=[c[0] for c in CASES]
)
def test_a_rule_makes_its_right_side_and_the_program_computes_the_same(
    bound_rule: str, types: list[str], returned: str, before: str, after: str
):
    ctx, blobs = context(), {"halves": HALVES, "w": W, "s": S, "t": S.reshape(1, 8, 1, 1)}
    blobs["half"] = HALVES[0, 0].reshape(())
    name, rule = bound_rule.split()
    module = module_of(program(types, returned, before), ctx, **blobs)
    arguments = module.body.block.first_op.body.block.args
    inputs = {
        f"arg{i}": small_integers(i, shape_of(each)).astype(numpy_dtype(element_of(each)))
        for i, each in enumerate(arguments)
    }
    expected = run_reference(module, inputs).outputs

    fired = Fired()
    with watched(fired):
        for each in parse_pipeline(f"{name},eliminate-dead", PASSES):
            each.apply(ctx, module)
    verify(module)

    # Where the last operation went, its operand is returned.
    last = returned if after else re.sub(r"^%\d+", "%x", returned)
    need = module_of(program(types, last, after), ctx, **blobs)
    assert fired.names[0] == rule
    assert print_module(module, locations=False) == print_module(need, locations=False)
    for key, value in run_reference(module, inputs).outputs.items():
        rounded = 4 * np.finfo(np.float32).eps if rule in ROUNDED else 0.0
        np.testing.assert_allclose(value, expected[key], rtol=rounded, atol=0)


SPECIAL = np.array([-np.inf, -1, -0.0, 0.0, 1e-45, 3e38, np.inf, np.nan], np.float32)

OF_BASE = [
    ("abs %x", True),
    ("square %x", True),
    ("mul %x, %x", True),
    ("exp %x", True),
    ("scale %positive by 2.0", True),
    ("shift %positive by 1.0", True),
    ('reduce "sum" %positive axes [0] keep_dims', True),
    ("sqrt %x", False),
    ("mul %x, %positive", False),
    ("scale %positive by -1.0", False),
    ("shift %positive by -1.0", False),
    # Of no elements, it would be minus infinity.
    ('reduce "max" %positive axes [0] keep_dims', False),
]
"""Operations that make the base of a power, and whether it has no minus sign."""


@pytest.mark.parametrize("exponent", [-0.75, -0.5, -0.25, 0.25, 0.5, 0.75])
@pytest.mark.parametrize(("base", "unsigned"), OF_BASE, ids=[each[0] for each in OF_BASE])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_roots_take_infinities_and_zeros_to_what_the_power_takes_them_to(
    base: str, unsigned: bool, exponent: float
):
    kind = "tensor<8x1xf32>"
    result = "tensor<1x1xf32>" if "reduce" in base else kind
    operands = ", ".join([kind] * base.count("%"))
    body = f"""%positive = nn.abs %x : ({kind}) -> {kind}
        %0 = nn.{base} : ({operands}) -> {result}
        %1 = nn.power %0 to {exponent} : ({result}) -> {result}"""
    module = module_of(program([kind], f"%1 : {result}", body), context())
    inputs = {"arg0": SPECIAL.reshape(8, 1)}
    expected = run_reference(module, inputs).outputs["out0"]
    for each in parse_pipeline("fold-scales", PASSES):
        each.apply(context(), module)
    assert ("nn.power" not in print_module(module)) == unsigned
    found = run_reference(module, inputs).outputs["out0"]
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(np.float32).eps)
    zeros = found == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


OF_NN = ("canonicalize", "fold_scales")
OFTEN = 3
"""How often each rule is fired, at least."""


@pytest.mark.parametrize(
    ("name", "bound_rule"),
    [(name, bound_rule) for name in OF_NN for bound_rule in own_rules(name).bound],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_rule_keeps_the_meaning_and_fires_only_where_it_fits(
    check_rule: Callable[..., RuleReport], name: str, bound_rule: BoundRule
):
    report = check_rule(bound_rule, rules=own_rules(name), examples=OFTEN, seed=0)
    assert report.fired[bound_rule.name] >= OFTEN


def test_the_rules_from_tile_to_exchange_keep_the_meaning_and_fire_only_where_they_fit(
    check_rules: Callable[..., RuleReport],
):
    rules = own_rules("tile_to_exchange")
    report = check_rules(rules, examples=OFTEN, seed=0)
    for bound_rule in rules.bound:
        assert report.fired[bound_rule.name] >= OFTEN, bound_rule.name


@pytest.mark.parametrize("name", OF_NN)
def test_every_rule_has_a_case(name: str):
    proven = {case[0].split()[1] for case in CASES if case[0].startswith(name.replace("_", "-"))}
    assert {bound_rule.name for bound_rule in own_rules(name).bound} == proven


@pytest.mark.parametrize("name", OF_NN)
def test_on_programs_made_of_its_own_pattern_every_rule_is_well_typed_and_none_hides_another(
    name: str,
):
    assert lint_rules(own_rules(name)) == ()


KEPT = [
    ("canonicalize", "a clip whose limits lie beyond the other's", [MATRIX], f"%1 : {MATRIX}",
     f"%0 = nn.clip %x to 0.0, 1.0 : {ONE}\n%1 = nn.clip %0 to 2.0, 3.0 : {ONE}"),
    ("canonicalize", "limits of whole numbers, which are rounded", ["tensor<3xi32>"],
     "%1 : tensor<3xi32>",
     """%0 = nn.clip %x to -1.5, 0.5 : (tensor<3xi32>) -> tensor<3xi32>
        %1 = nn.clip %0 to 0.5, 1.0 : (tensor<3xi32>) -> tensor<3xi32>"""),
    ("canonicalize", "a negative of unsigned numbers, which has no sign to drop",
     ["tensor<4xui8>"], "%1 : tensor<4xui8>",
     """%0 = nn.neg %x : (tensor<4xui8>) -> tensor<4xui8>
        %1 = nn.abs %0 : (tensor<4xui8>) -> tensor<4xui8>"""),
    ("fold-scales", "a narrow float's factor, whose product may be too large",
     ["tensor<1x4x6x6xf16>"], "%3 : tensor<1x8x4x4xf16>",
     f"""%0 = nn.constant {{w16}} : tensor<8x4x3x3xf16>
         %1 = nn.constant {{s16}} : tensor<8x1x1xf16>
         %2 = nn.conv %x, %0 {WINDOW}
           : (tensor<1x4x6x6xf16>, tensor<8x4x3x3xf16>) -> tensor<1x8x4x4xf16>
         %3 = nn.mul %2, %1 : (tensor<1x8x4x4xf16>, tensor<8x1x1xf16>) -> tensor<1x8x4x4xf16>"""),
    ("fold-scales", "weights that are no constant", [IMAGE, "tensor<8x4x3x3xf32>"],
     f"%2 : {RESULT}",
     f"""%0 = nn.constant {{s}} : tensor<8x1x1xf32>
         %1 = nn.conv %x, %y {WINDOW} : {CONV}
         %2 = nn.mul %1, %0 : ({RESULT}, tensor<8x1x1xf32>) -> {RESULT}"""),
]  # fmt: skip


def test_a_state_with_a_store_is_not_a_constant():
    ctx = context()
    body = f"""%0 = nn.load @w : tensor<8x4x3x3xf32>
        %1 = nn.constant {{s}} : tensor<8x1x1xf32>
        %2 = nn.conv %x, %0 {WINDOW} : {CONV}
        %3 = nn.mul %2, %1 : ({RESULT}, tensor<8x1x1xf32>) -> {RESULT}
        nn.store %0, @w : tensor<8x4x3x3xf32>"""
    state = "nn.state @w : tensor<8x4x3x3xf32> = {w}\n"
    module = module_of(state + program([IMAGE], f"%3 : {RESULT}", body), ctx, s=S, w=W)
    text = print_module(module)
    for each in parse_pipeline("fold-scales", PASSES):
        each.apply(ctx, module)
    assert print_module(module) == text


@pytest.mark.parametrize(
    ("name", "why", "types", "returned", "body"), KEPT, ids=[f"{k[0]}: {k[1]}" for k in KEPT]
)
def test_programs_that_no_rule_may_change_stay_the_same(
    name: str, why: str, types: list[str], returned: str, body: str
):
    ctx = context()
    narrow = {"w16": W.astype(np.float16), "s16": S.astype(np.float16)}
    module = module_of(program(types, returned, body), ctx, s=S, **narrow)
    text = print_module(module)
    for each in parse_pipeline(name, PASSES):
        each.apply(ctx, module)
    assert print_module(module) == text
