from some_tensors import context, counting, module_of

from abele.ir.rewriting import limited
from abele.ir.text import print_module
from abele.ir.verify import verify
from abele.passes.fuse_chains import FuseChains
from abele.passes.update_early import UpdateEarly

W = counting((4, 4))


def updated(before: str) -> str:
    ctx = context()
    module = module_of(before, ctx, w=W)
    UpdateEarly().apply(ctx, module)
    verify(module)
    return print_module(module, locations=False)


def check(before: str, after: str) -> None:
    ctx = context()
    wanted = print_module(module_of(after, ctx, w=W), locations=False)
    assert updated(before) == wanted
    assert updated(after) == wanted


STATES = """
    nn.state @w : tensor<4x4xf32> = {w}
    nn.state @v : tensor<4x4xf32> = {w}
"""


def test_an_update_follows_its_gradient_and_the_last_read_of_the_old_weight():
    start = (
        STATES
        + """
    func.func @main(%x: tensor<9x4xf32>, %z: tensor<4x9xf32>) -> tensor<4x9xf32> {
      %w = nn.load @w : tensor<4x4xf32>
      %0 = nn.matmul %z, %x : (tensor<4x9xf32>, tensor<9x4xf32>) -> tensor<4x4xf32>"""
    )
    update = """
      %new = nn.sub %w, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.store %new, @w : tensor<4x4xf32>"""
    first = """
      %1 = nn.matmul %w, %z : (tensor<4x4xf32>, tensor<4x9xf32>) -> tensor<4x9xf32>"""
    second = """
      %2 = nn.relu %1 : (tensor<4x9xf32>) -> tensor<4x9xf32>"""
    end = """
      func.return %2 : tensor<4x9xf32>
    }"""
    gradient = start[start.index("\n      %0") :]
    begin = start.removesuffix(gradient)
    check(
        start + first + second + update + end,
        begin + first + gradient + update + second + end,
    )


def test_an_update_stays_before_the_return_of_the_old_weight():
    text = (
        STATES
        + """
    func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %w = nn.load @w : tensor<4x4xf32>
      %new = nn.sub %w, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.store %new, @w : tensor<4x4xf32>
      func.return %w : tensor<4x4xf32>
    }"""
    )
    check(text, text)


def test_an_update_that_makes_more_than_it_reads_comes_at_the_end():
    start = (
        STATES
        + """
    func.func @main(%x: tensor<1x4xf32>, %y: tensor<4x1xf32>) -> tensor<1x4xf32> {
      %w = nn.load @w : tensor<4x4xf32>"""
    )
    update = """
      %0 = nn.matmul %y, %x : (tensor<4x1xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
      %new = nn.sub %w, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.store %new, @w : tensor<4x4xf32>"""
    rest = """
      %1 = nn.relu %x : (tensor<1x4xf32>) -> tensor<1x4xf32>"""
    end = """
      func.return %1 : tensor<1x4xf32>
    }"""
    check(start + update + rest + end, start + rest + update + end)


def test_several_stores_of_one_state_stay_in_order():
    text = f"""{STATES}
    func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {{
      %new = nn.relu %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.store %new, @w : tensor<4x4xf32>
      %y = nn.relu %new : (tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.store %x, @w : tensor<4x4xf32>
      func.return %y : tensor<4x4xf32>
    }}"""
    check(text, text)


def test_what_the_updates_of_several_weights_need_stays_in_order():
    text = (
        STATES
        + """
    func.func @main(%x: tensor<4x9xf32>, %z: tensor<9x4xf32>) {
      %w = nn.load @w : tensor<4x4xf32>
      %v = nn.load @v : tensor<4x4xf32>
      %0 = nn.relu %x : (tensor<4x9xf32>) -> tensor<4x9xf32>
      %1 = nn.matmul %0, %z : (tensor<4x9xf32>, tensor<9x4xf32>) -> tensor<4x4xf32>
      %2 = nn.sub %w, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.store %2, @w : tensor<4x4xf32>
      %3 = nn.sub %v, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.store %3, @v : tensor<4x4xf32>
      func.return
    }"""
    )
    check(text, text)


def test_a_running_mean_is_updated_with_the_weight_that_follows_it():
    start = (
        STATES
        + """
    func.func @main(%x: tensor<4x9xf32>, %z: tensor<9x4xf32>) -> tensor<4x9xf32> {
      %w = nn.load @w : tensor<4x4xf32>
      %v = nn.load @v : tensor<4x4xf32>"""
    )
    update = """
      %0 = nn.matmul %x, %z : (tensor<4x9xf32>, tensor<9x4xf32>) -> tensor<4x4xf32>
      %1 = nn.add %v, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %2 = nn.sub %w, %1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.store %1, @v : tensor<4x4xf32>
      nn.store %2, @w : tensor<4x4xf32>"""
    read = """
      %3 = nn.matmul %w, %x : (tensor<4x4xf32>, tensor<4x9xf32>) -> tensor<4x9xf32>"""
    rest = """
      %4 = nn.relu %3 : (tensor<4x9xf32>) -> tensor<4x9xf32>"""
    end = """
      func.return %4 : tensor<4x9xf32>
    }"""
    found = updated(start + read + rest + update + end)
    assert found.rindex("nn.store") < found.index("nn.relu")


def test_a_group_moves_as_one_unless_rewrites_are_limited():
    text = (
        STATES
        + """
    func.func @main(%x: tensor<4x9xf32>, %z: tensor<9x4xf32>) -> tensor<4x9xf32> {
      %w = nn.load @w : tensor<4x4xf32>
      %0 = nn.matmul %x, %z : (tensor<4x9xf32>, tensor<9x4xf32>) -> tensor<4x4xf32>
      %1 = nn.relu %x : (tensor<4x9xf32>) -> tensor<4x9xf32>
      %2 = nn.scale %0 by 0.5 : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %3 = nn.sub %w, %2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.store %3, @w : tensor<4x4xf32>
      func.return %1 : tensor<4x9xf32>
    }"""
    )
    module = module_of(text, context(), w=W)
    FuseChains().apply(context(), module)
    before = print_module(module, locations=False)
    with limited(0):
        UpdateEarly().apply(context(), module)
    assert print_module(module, locations=False) == before
    UpdateEarly().apply(context(), module)
    found = print_module(module, locations=False)
    names = ("nn.matmul", "nn.scale", "nn.sub", "nn.store", "nn.relu")
    position = [found.index(name) for name in names]
    assert position == sorted(position)
