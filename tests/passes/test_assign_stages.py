import numpy as np
import pytest
from some_tensors import context, counting, module_of

from abele.ir.errors import DoesNotFit, InputError
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
    AssignStages(cuts, 0, chips, target="mk1x4").apply(ctx, module)
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


def test_named_cuts_replace_earlier_stages():
    module = assigned("layer1", "layer2", train=True)
    AssignStages(("layer2",), target="mk1x4").apply(context(), module)
    assert stages(module) == stages(assigned("layer2", train=True))


def test_stages_that_are_given_are_kept():
    module = assigned("layer1", "layer2", train=True)
    before = stages(module)
    AssignStages(target="mk1x4").apply(context(), module)
    assert stages(module) == before


def test_the_planner_balances_stages():
    ctx = context()
    module = module_of(network(4), ctx, w=counting((4, 4)))
    AssignStages(stages=2, target="mk1x2").apply(ctx, module)
    found = stages(module)
    assert [found[f"layer{i}/fc"] for i in range(4)] == [{0}, {0}, {1}, {1}]


def test_a_stage_that_does_not_fit_is_named_with_cuts_that_would():
    ctx = context()
    module = module_of(wide(), ctx, w=np.zeros((128, 128), np.float32))
    with pytest.raises(DoesNotFit) as caught:
        AssignStages(("fc3",), target=SMALL).apply(ctx, module)
    problem = caught.value
    assert "stage 0, which begins at fc0" in problem.what
    assert (problem.needed, problem.available) == (3 * 128 * 128 * 4, 2 * 128 * 128 * 4)
    assert problem.remedy == "--pipeline fc2 fits"


def test_a_layer_that_no_chip_holds_is_named_with_what_cuts_it():
    ctx = context()
    module = module_of(wide(), ctx, w=np.zeros((128, 128), np.float32))
    tight = SMALL.replace("49152", "30000")
    with pytest.raises(DoesNotFit) as caught:
        AssignStages(stages=2, target=tight).apply(ctx, module)
    assert caught.value.remedy == (
        f"fc0 alone keeps 65536 bytes there (its weight), {65536 - caught.value.available} too "
        "many, so no cut fits; without --pipeline, operators are cut across chips, and --replicas "
        "2 --shard fc0:n=2 cuts this one"
    )


SMALL = "tiny:8,links.topology=ladder,links.chips=2,memory.bytes_per_tile=49152"


def wide() -> str:
    """Four layers, of which a chip holds two."""
    kind, weight, body, last = "tensor<2x128xf32>", "tensor<128x128xf32>", "", "%x"
    for i in range(4):
        body += f"""
          %w{i} = nn.load @w{i} : {weight}
          %m{i} = nn.matmul {last}, %w{i} : ({kind}, {weight}) -> {kind} loc("fc{i}")"""
        last = f"%m{i}"
    states = "".join(f"nn.state @w{i} : {weight} = {{w}}\n" for i in range(4))
    return (
        f"{states} func.func @main(%x: {kind}) -> {kind} {{ {body}\n func.return {last} : {kind} }}"
    )


@pytest.mark.parametrize(
    ("count", "message"),
    [(-1, "--pipeline -1; need 1 stage or more"), (7, "--pipeline 7: the network has 6 operators")],
)
def test_numbers_of_stages_that_cannot_be_are_refused(count: int, message: str):
    ctx = context()
    module = module_of(network(), ctx, w=counting((4, 4)))
    with pytest.raises(InputError, match=message):
        AssignStages(stages=count, target="mk1x4").apply(ctx, module)


@pytest.mark.parametrize(
    ("cuts", "chips", "message"),
    [
        (("layer9",), (), "--pipeline: layer9: no operator of that name"),
        (("layer0",), (), "layer0 is the first node, so no stage is before it"),
        (("layer1", "layer1/fc"), (), "layer1 and layer1/fc begin the same stage"),
        (("layer1",), (0, 1, 2), "3 chips for 2 stages"),
        (("layer1",), (0, 4), r"a stage on chip 4; target mk1x4 has chips 0\.\.3"),
        (("layer1",), (-1, 0), "a stage on chip -1"),
    ],
)
def test_bad_cuts_and_chips_are_refused(
    cuts: tuple[str, ...], chips: tuple[int, ...], message: str
):
    with pytest.raises(InputError, match=message):
        assigned(*cuts, chips=chips)
