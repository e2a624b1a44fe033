import pytest
from some_tensors import context, counting, module_of

from abele.ir.errors import InputError
from abele.ir.provenance import origin
from abele.ir.upstream import ModuleOp
from abele.passes.assign_stages import AssignStages
from abele.passes.pipelining.stages import loop_over_micro_batches, stage_chips, stage_of
from abele.passes.train import Train

T = "tensor<2x4xf32>"
W = "tensor<4x4xf32>"


def network(layers: int = 3) -> str:
    states = "".join(f"nn.state @w{i} : {W} = {{w}}\n" for i in range(layers))
    body, last = "", "%x"
    for i in range(layers):
        body += f"""
          %w{i} = nn.load @w{i} : {W} loc("w{i}")
          %m{i} = nn.matmul {last}, %w{i} : ({T}, {W}) -> {T} loc("layer{i}/fc")
          %t{i} = nn.tanh %m{i} : ({T}) -> {T} loc("layer{i}/tanh")"""
        last = f"%t{i}"
    return f"{states} func.func @main(%x: {T}) -> {T} {{ {body}\n func.return {last} : {T} }}"


def assigned(*cuts: str, chips: tuple[int, ...] = (), train: bool = False) -> ModuleOp:
    ctx = context()
    module = module_of(network(), ctx, w=counting((4, 4)))
    if train:
        Train("mean_square", micro_batches=4).apply(ctx, module)
    AssignStages(cuts, chips, target="mk1x4").apply(ctx, module)
    return module


def stages(module: ModuleOp) -> dict[str, set[int | None]]:
    """The stages of the operations of each node."""
    (main,) = (op for op in module.body.block.ops if op.name == "func.func")
    loop = loop_over_micro_batches(main)
    found: dict[str, set[int | None]] = {}
    for op in (main if loop is None else loop).walk():
        if (name := origin(op)) is not None and stage_of(op) is not None:
            found.setdefault(name, set()).add(stage_of(op))
    return found


def test_a_cut_is_before_the_named_node():
    assert stages(assigned("layer1/tanh")) == {
        "layer0/fc": {0},
        "layer0/tanh": {0},
        "layer1/fc": {0},
        "layer1/tanh": {1},
        "layer2/fc": {1},
        "layer2/tanh": {1},
    }


def test_a_name_stands_for_the_nodes_below_it():
    assert stages(assigned("layer1", "layer2")) == stages(assigned("layer1/*", "layer2/*"))


def test_backward_operations_are_in_the_stages_that_mirror_those_of_their_forward_operations():
    found = stages(assigned("layer1", "layer2", train=True))
    assert [found[f"layer{i}/fc"] for i in range(3)] == [{0}, {1}, {2}]
    assert [found[f"layer{i}/fc/backward"] for i in range(3)] == [{5}, {4}, {3}]


def test_backward_stages_are_on_the_chips_of_their_forward_stages():
    module = assigned("layer1", "layer2", chips=(0, 1, 0), train=True)
    assert stage_chips(module, 6) == (0, 1, 0, 0, 1, 0)


@pytest.mark.parametrize(
    ("cuts", "chips", "message"),
    [
        (("layer9",), (), "--pipeline: layer9: no operator of that name"),
        (("layer0",), (), "layer0 is the first node, so no stage is before it"),
        (("layer1", "layer1/fc"), (), "layer1 and layer1/fc begin the same stage"),
        (("layer1",), (0, 1, 2), "3 chips for 2 stages"),
        (("layer1",), (0, 4), r"a stage on chip 4; target mk1x4 has chips 0\.\.3"),
    ],
)
def test_bad_cuts_and_chips_are_refused(
    cuts: tuple[str, ...], chips: tuple[int, ...], message: str
):
    with pytest.raises(InputError, match=message):
        assigned(*cuts, chips=chips)
