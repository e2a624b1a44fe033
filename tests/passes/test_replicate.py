import numpy as np
import pytest
from some_tensors import context, module_of

from abele.backends.reference import run_reference
from abele.dialects import control, nn
from abele.ir.errors import InputError
from abele.ir.text import print_module
from abele.ir.upstream import ModuleOp
from abele.ir.verify import verify
from abele.passes.replicas.rounds import AUTO, DIRECT, RING, Way
from abele.passes.replicate import Replicate

ZERO = np.zeros((), np.float32)

TWO = "tiny:8,links.topology=ladder,links.chips=2"
FOUR = "tiny:16,links.topology=ladder,links.chips=4"

COLLECTED = """
func.func @main(%x: tensor<8x3xf32>) -> tensor<3xf32> {
  %zero = nn.constant {z} : tensor<f32>
  %first = nn.expand %zero to [3] : (tensor<f32>) -> tensor<3xf32>
  %parts = nn.reshape %x to [2, 4, 3] : (tensor<8x3xf32>) -> tensor<2x4x3xf32>
  BEGIN
  ^bb0(%total: TYPE, %i: tensor<i32>):
    %index = nn.reshape %i to [1] : (tensor<i32>) -> tensor<1xi32>
    %row = nn.gather %parts, %index axis 0
        : (tensor<2x4x3xf32>, tensor<1xi32>) -> tensor<1x4x3xf32>
    %part = nn.reshape %row to [4, 3] : (tensor<1x4x3xf32>) -> tensor<4x3xf32>
    OWN
    %sum = nn.add %total, %own : (TYPE, TYPE) -> TYPE
    control.yield %sum : TYPE
  }
  END
}"""

BEFORE = (
    COLLECTED.replace(
        "BEGIN",
        "%last = control.repeat 2 (%first) : (tensor<3xf32>) -> (tensor<3xf32>) {",
    )
    .replace("OWN", '%own = nn.reduce "sum" %part axes [0] : (tensor<4x3xf32>) -> TYPE')
    .replace("END", "func.return %last : tensor<3xf32>")
    .replace("TYPE", "tensor<3xf32>")
)

SPACE = "<[d0p = 2, d0 = 2 reduction, d1 = 3] (d0 + 2 * d0p, d1) of [4, 3] -> (d0p, d1) of [2, 3]>"

AFTER = (
    COLLECTED.replace(
        "BEGIN",
        "%0 = nn.expand %first to [2, 3] : (tensor<3xf32>) -> tensor<2x3xf32>\n"
        "%last = control.repeat 2 (%0) : (tensor<2x3xf32>) -> (tensor<2x3xf32>) {",
    )
    .replace(
        "OWN",
        f"%own = nn.compute(%part) space {SPACE} body <identity sum> : (tensor<4x3xf32>) -> TYPE",
    )
    .replace(
        "END",
        '%2 = nn.reduce "sum" %last axes [0] : (tensor<2x3xf32>) -> tensor<3xf32>\n'
        "func.return %2 : tensor<3xf32>",
    )
    .replace("TYPE", "tensor<2x3xf32>")
)


def replicated(text: str, replicas: int = 2, way: Way = DIRECT, target: str = TWO) -> ModuleOp:
    module = module_of(text, context(), z=ZERO)
    Replicate(replicas, way, (), target).apply(context(), module)
    verify(module)
    return module


def test_each_replica_collects_its_own_sums_over_micro_batches():
    got = replicated(BEFORE)
    assert str(got.attributes.pop("abele.replicas")) == "2 : i64"
    assert str(got.attributes.pop("abele.samples")) == "[array<i64: 0>]"
    wanted = print_module(module_of(AFTER, context(), z=ZERO), locations=False)
    assert nameless(print_module(got, locations=False)) == nameless(wanted)


def nameless(text: str) -> str:
    for name in ("own", "0", "1", "2"):
        text = text.replace(f"%{name} ", "% ").replace(f"%{name})", "%)").replace(f"%{name},", "%,")
    return text


def test_replicas_of_which_there_is_one_change_nothing():
    got = replicated(BEFORE, 1)
    for name in ("abele.replicas", "abele.samples"):
        del got.attributes[name]
    wanted = module_of(BEFORE, context(), z=ZERO)
    assert print_module(got, locations=False) == print_module(wanted, locations=False)


NOT_LINEAR = BEFORE.replace(
    '%own = nn.reduce "sum" %part axes [0] : (tensor<4x3xf32>) -> tensor<3xf32>',
    '%s = nn.reduce "sum" %part axes [0] : (tensor<4x3xf32>) -> tensor<3xf32>\n'
    "%own = nn.tanh %s : (tensor<3xf32>) -> tensor<3xf32>",
)

READ_TWICE = NOT_LINEAR.replace(
    "nn.tanh %s : (tensor<3xf32>)", "nn.mul %s, %s : (tensor<3xf32>, tensor<3xf32>)"
)

GROUPS = """
func.func @main(%x: tensor<8x6x5x5xf32>, %dy: tensor<8x4x5x5xf32>) -> tensor<4x3x3x3xf32> {
  %g = nn.compute(%x, %dy) space <[g = 2, o = 2, c = 3, ky = 3, kx = 3, n = 8 reduction,
      y = 5 reduction, x = 5 reduction]
      (n, g, c, y + ky - 1 fill, x + kx - 1 fill) of [8, 2, 3, 5, 5],
      (n, g, o, y, x) of [8, 2, 2, 5, 5]
      -> (g, o, c, ky, kx) of [2, 2, 3, 3, 3]>
      body <mul sum> : (tensor<8x6x5x5xf32>, tensor<8x4x5x5xf32>) -> tensor<4x3x3x3xf32>
  func.return %g : tensor<4x3x3x3xf32>
}"""

NOT_ZERO = BEFORE.replace("%zero to [3]", "%one to [3]").replace(
    "%zero = ", "%one = nn.constant {one} : tensor<f32>\n%zero = "
)


@pytest.mark.parametrize("text", [NOT_LINEAR, READ_TWICE, NOT_ZERO])
def test_sums_that_are_more_than_collected_are_merged_in_each_micro_batch(text: str):
    module = module_of(text, context(), z=ZERO, one=np.ones((), np.float32))
    Replicate(2, DIRECT, (), TWO).apply(context(), module)
    (loop,) = (op for op in module.walk() if isinstance(op, control.RepeatOp))
    assert nn.shape_of(loop.outputs[0]) == (3,)


@pytest.mark.parametrize("way", [AUTO, RING])
def test_the_program_means_the_same(way: Way):
    given = {"arg0": np.arange(24, dtype=np.float32).reshape(8, 3) % 7}
    for text in (BEFORE, NOT_LINEAR, READ_TWICE):
        before = run_reference(module_of(text, context(), z=ZERO), given).outputs
        after = run_reference(replicated(text, 4, way, FOUR), given).outputs
        for name, array in before.items():
            np.testing.assert_array_equal(after[name], array)


def test_sums_that_are_viewed_in_another_shape_keep_it():
    rng = np.random.default_rng(0)
    given = {
        "arg0": rng.integers(-2, 3, (8, 6, 5, 5)).astype(np.float32),
        "arg1": rng.integers(-2, 3, (8, 4, 5, 5)).astype(np.float32),
    }
    before = run_reference(module_of(GROUPS, context()), given).outputs
    after = run_reference(replicated(GROUPS, 4, RING, FOUR), given).outputs
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


EIGHT_BITS = """
func.func @main(%x: tensor<8x4xf8E4M3FNUZ>, %y: tensor<8x4xf8E4M3FNUZ>) -> tensor<4x4xf16> {
  %0 = nn.matmul %x, %y transpose_lhs scale -3
      : (tensor<8x4xf8E4M3FNUZ>, tensor<8x4xf8E4M3FNUZ>) -> tensor<4x4xf16>
  func.return %0 : tensor<4x4xf16>
}"""

NO_SAMPLES_LEFT = """
func.func @main(%x: tensor<8x3xf32>) -> tensor<3xf32> {
  %none = nn.slice %x from [0, 0] step [1, 1] size [0, 3] : (tensor<8x3xf32>) -> tensor<0x3xf32>
  %0 = nn.reduce "sum" %none axes [0] : (tensor<0x3xf32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
}"""


@pytest.mark.parametrize("text", [EIGHT_BITS, NO_SAMPLES_LEFT])
def test_sums_without_parts_stay_whole(text: str):
    try:
        module = replicated(text, way=RING)
    except InputError as error:
        assert "no operation has a dimension of samples" in str(error)
    else:
        assert not any(isinstance(op, nn.ComputeOp) for op in module.walk())


def test_rounds_follow_each_other_only_where_they_pay():
    ways = {way: replicated(BEFORE, 4, way, FOUR) for way in (AUTO, DIRECT, RING)}
    rounds = {way: str(module).count("wrap") for way, module in ways.items()}
    assert rounds[AUTO] == rounds[DIRECT] == 0 < rounds[RING]


@pytest.mark.parametrize(
    ("replicas", "target", "problem"),
    [
        (0, TWO, "replicas 0; need 1 or more"),
        (3, "tiny:8", "has 1 chip$"),
        (4, TWO, "replicas 4; target .* has 2 chips$"),
        (3, FOUR, "replicas 3 on 4 chips of target .*; need a number that divides them"),
        (8, "tiny:16,links.topology=ladder,links.chips=8", "replicas 8 of 4 samples at a time"),
    ],
)
def test_replicas_that_cannot_be_are_refused(replicas: int, target: str, problem: str):
    with pytest.raises(InputError, match=problem):
        replicated(BEFORE, replicas, DIRECT, target)


def test_a_program_without_samples_is_refused():
    text = """
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %0 = nn.relu %x : (tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }
    """
    with pytest.raises(InputError, match="replicas 2: no operation has a dimension of samples"):
        replicated(text)


def test_axes_of_samples_are_checked():
    module = module_of(BEFORE, context(), z=ZERO)
    with pytest.raises(InputError, match="batch_axes arg0:2: input 'arg0' has 2 axes"):
        Replicate(2, DIRECT, ("arg0:2",), TWO).apply(context(), module)
