import pytest

from abele.ir.errors import InputError
from abele.ir.pass_manager import parse_pipeline
from abele.ir.text import parse_module, print_module
from abele.passes.group_supersteps import GroupSupersteps
from abele.passes.pipelines import PASSES

from ..strategies import context
from .programs import TO_EXCHANGE, TO_SUPERSTEPS, after, net


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "tile.copy [@a] -> @b {superstep = 1 : i64} tile.copy [@b] -> @c {superstep = 1 : i64}",
            "not in the superstep of the operations before it, since it reads @b, which is only "
            "being made",
        ),
        (
            "tile.compute_set @s { tile.vertices space <[i = 4] (i) of [4] -> (i) of [4]> "
            "body <relu> plan <split [2]> reads [@a] writes @b } {superstep = 1 : i64} "
            "tile.copy [@a] -> @c {superstep = 1 : i64}",
            "since it moves data behind what computes",
        ),
        ("%c = tile.read @a {superstep = 1 : i64} : i1", "cannot be part of a superstep"),
    ],
)
def test_a_schedule_that_cannot_happen_at_once_is_refused(body: str, message: str):
    made = context()
    variables = "\n".join(
        f"tile.variable @{name} : tensor<4xf32> layout <[4 by 2] (d0) of [4]> "
        for name in ("a", "b", "c")
    )
    module = parse_module(f"{variables}\nfunc.func @main() {{ {body} func.return }}", made)
    with pytest.raises(InputError, match=message):
        GroupSupersteps().apply(made, module)


def test_a_grouped_program_is_continued_by_the_whole_way():
    module, made = net()
    whole = (
        f"{TO_SUPERSTEPS},schedule-supersteps,allocate,group-supersteps,convert-tile-to-exchange"
    )
    for each in parse_pipeline(whole, PASSES):
        each.apply(made, module)
    assert print_module(module) == print_module(after(TO_EXCHANGE))
