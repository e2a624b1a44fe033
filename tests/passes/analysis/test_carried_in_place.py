import pytest

from abele.dialects import control
from abele.dialects.levels import NN, PARTITION
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module
from abele.passes.analysis.carried_in_place import carried_in_place
from abele.passes.pipelines import PASSES, pipeline

from ...strategies import context

V = "tensor<4xf32>"
BINARY = f"({V}, {V}) -> {V}"


@pytest.mark.parametrize(
    ("body", "positions"),
    [
        (f"%0 = nn.mul %a, %b : {BINARY} %1 = nn.tanh %0 : ({V}) -> {V} ; %1, %b", [0]),
        (f"%0 = nn.tanh %a : ({V}) -> {V} %1 = nn.mul %a, %b : {BINARY} ; %0, %1", [1]),
        (f"%0 = nn.tanh %a : ({V}) -> {V} ; %b, %0", []),
        (f"%0 = nn.tanh %a : ({V}) -> {V} ; %0, %0", [0]),
        (f"%0 = nn.slice %a from [3] step [-1] size [4] : ({V}) -> {V} ; %0, %b", []),
    ],
    ids=[
        "overwritten by its last reader",
        "read after the new value is made",
        "passed on to another place",
        "yielded twice",
        "not read in place",
    ],
)
def test_an_iteration_overwrites_what_nothing_reads_later(body: str, positions: list[int]):
    ops, _, yields = body.partition(" ; ")
    made = context()
    module = parse_module(
        f"""func.func @main(%x: {V}, %y: {V}) -> ({V}, {V}) {{
          %p, %q = control.repeat 3 (%x, %y) : ({V}, {V}) -> ({V}, {V}) {{
          ^bb0(%a: {V}, %b: {V}):
            {ops}
            control.yield {yields} : {V}, {V}
          }}
          func.return %p, %q : {V}, {V}
        }}""",
        made,
    )
    for each in parse_pipeline(pipeline(NN, PARTITION, "tiny:1"), PASSES):
        each.apply(made, module)
    (loop,) = [op for op in module.walk() if isinstance(op, control.RepeatOp)]
    assert list(carried_in_place(loop).values()) == positions
