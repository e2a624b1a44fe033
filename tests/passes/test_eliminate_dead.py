from some_tensors import context, counting, module_of

from abele.ir.instruments.record_ir import RecordIR
from abele.ir.pass_manager import PassManager
from abele.ir.rewriting import limited
from abele.ir.text import print_module
from abele.ir.verify import verify
from abele.passes.eliminate_dead import UNREAD, UNUSED, EliminateDead

W = counting((4,))


def check(before: str, after: str) -> None:
    ctx = context()
    module = module_of(before, ctx, w=W)
    EliminateDead().apply(ctx, module)
    verify(module)
    need = module_of(after, ctx, w=W)
    assert print_module(module, locations=False) == print_module(need, locations=False)


def test_unread_chains_loads_and_states_go():
    check(
        """
        nn.state @w : tensor<4xf32> = {w}
        nn.state @never : tensor<4xf32> = {w}
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = nn.load @w : tensor<4xf32>
          %1 = nn.constant {w} : tensor<4xf32>
          %2 = nn.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          %3 = nn.softmax %2 axis 0 : (tensor<4xf32>) -> tensor<4xf32>
          %4 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
          func.return %4 : tensor<4xf32>
        }""",
        """
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %4 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
          func.return %4 : tensor<4xf32>
        }""",
    )


def test_operations_whose_result_is_stored_stay():
    text = """
    nn.state @w : tensor<4xf32> = {w}
    func.func @main(%x: tensor<4xf32>) {
      %0 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
      nn.store %0, @w : tensor<4xf32>
      func.return
    }"""
    check(text, text)


LOOP = """
nn.state @w : tensor<4xf32> = {w}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = nn.load @w : tensor<4xf32>
  %0 = control.repeat 3 (%x) : (tensor<4xf32>) -> (tensor<4xf32>) {
  ^bb0(%y: tensor<4xf32>):
    %z = nn.add %y, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    INSIDE
    control.yield %z : tensor<4xf32>
  }
  func.return %x : tensor<4xf32>
}"""


def test_an_unread_loop_is_removed_with_everything_that_only_it_reads():
    check(
        LOOP.replace("INSIDE", "%u = nn.neg %z : (tensor<4xf32>) -> tensor<4xf32>"),
        """
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          func.return %x : tensor<4xf32>
        }""",
    )


def test_a_loop_that_stores_stays_without_its_dead_operations():
    check(
        LOOP.replace(
            "INSIDE",
            """nn.store %z, @w : tensor<4xf32>
    %u = nn.neg %z : (tensor<4xf32>) -> tensor<4xf32>""",
        ),
        LOOP.replace("INSIDE", "nn.store %z, @w : tensor<4xf32>"),
    )


def test_every_rewrite_is_reported():
    text = """
    nn.state @w : tensor<4xf32> = {w}
    func.func @main(%x: tensor<4xf32>) {
      %0 = nn.load @w : tensor<4xf32>
      func.return
    }"""
    module, record = module_of(text, context(), w=W), RecordIR()
    PassManager((EliminateDead(),), (record,)).run(context(), module)
    assert [each.source for each in record.stages[-1].changes] == [UNREAD, UNUSED]


def test_limited_rewrites_leave_the_rest():
    text = """
    func.func @main(%x: tensor<4xf32>) {
      %0 = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
      func.return
    }"""
    module = module_of(text, context())
    with limited(1):
        EliminateDead().apply(context(), module)
    assert [op.name for op in module.walk() if op.name.startswith("nn.")] == ["nn.relu"]
