from abele.dialects.nn.group import GROUP
from abele.ir.text import parse_module
from abele.passes.fuse_chains import FuseChains
from abele.passes.plan_splits import PlanSplits
from abele.passes.unfuse import Unfuse

from ..strategies import context

TEXT = """
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = nn.square %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = nn.relu %0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  func.return %1 : tensor<4x6xf32>
}"""


def test_groups_and_their_plans_go():
    ctx = context()
    module, plain = parse_module(TEXT, ctx), parse_module(TEXT, ctx)
    FuseChains().apply(ctx, module)
    assert sum(GROUP in op.attributes for op in module.walk()) == 2
    PlanSplits("tiny:4").apply(ctx, module)
    Unfuse().apply(ctx, module)
    module.attributes.clear()
    assert module.is_structurally_equivalent(plain)
