from abele.ir.text import parse_module
from abele.passes.schedule_supersteps import SUPERSTEP, ScheduleSupersteps

from ..strategies import context

VARIABLE = "tile.variable @{} : tensor<4xf32> layout <[4 by 2] (d0) of [4]>"


def numbers(body: str, *variables: str) -> list[int]:
    """The superstep of each operation of a function body."""
    declared = "\n".join(VARIABLE.format(v) for v in variables)
    made = context()
    module = parse_module(f"{declared}\nfunc.func @main() {{ {body} func.return }}", made)
    ScheduleSupersteps().apply(made, module)
    return [
        op.attributes[SUPERSTEP].value.data  # pyright: ignore
        for op in module.walk()
        if SUPERSTEP in op.attributes
    ]


def test_copies_that_depend_on_each_other_have_a_superstep_each():
    steps = numbers("tile.copy [@a] -> @b tile.copy [@b] -> @c", "a", "b", "c")
    assert steps[0] != steps[1]


def test_a_copy_does_not_overwrite_a_variable_that_its_superstep_sends():
    steps = numbers("tile.copy [@a] -> @b tile.copy [@c] -> @a", "a", "b", "c")
    assert steps[0] != steps[1]


def test_independent_copies_share_a_superstep():
    steps = numbers("tile.copy [@a] -> @b tile.copy [@a] -> @c", "a", "b", "c")
    assert steps[0] == steps[1]


def test_the_host_reads_in_a_later_superstep_than_it_writes():
    steps = numbers(
        'tile.input "x" -> @a : tensor<4xf32> tile.output @a -> "y" : tensor<4xf32>', "a"
    )
    assert steps[0] != steps[1]


def test_an_existing_schedule_is_kept():
    text = "tile.copy [@a] -> @b {superstep = 5 : i64} tile.copy [@a] -> @c {superstep = 9 : i64}"
    assert numbers(text, "a", "b", "c") == [5, 9]
