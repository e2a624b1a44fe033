from dataclasses import dataclass, field

from some_passes import NeedsLimit, Nothing
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from abele.ir.pass_options import pass_options


@dataclass(frozen=True)
class Told(ModulePass):
    """Do nothing, well described.

    first_limit: at most so many;
    over two lines. second: another.

    third: after a blank line
    """

    name = "told"
    first_limit: int = 2
    second: tuple[int, ...] = (1, 2)
    third: str = "a"
    fourth: bool = field(default=False, metadata={"doc": "in its field"})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


def test_meanings_are_in_the_docstring_or_in_the_field():
    assert [str(each) for each in pass_options(Told)] == [
        "first-limit: an integer, default 2; at most so many; over two lines",
        "second: integers a,b,..., default 1,2; another",
        'third: text, default "a"; after a blank line',
        "fourth: true or false, default false; in its field",
    ]


def test_types_and_defaults_of_every_kind():
    assert [str(each) for each in (*pass_options(Nothing), *pass_options(NeedsLimit))] == [
        "rate: a number, default 0.5",
        "limit: an integer or nothing, default none",
        "sizes: integers a,b,..., default none",
        "fractions: numbers a,b,..., default none",
        "keep-order: true or false, default false",
        'label: text, default ""',
        "either: an integer or a number, default 0",
        "limit: an integer, needed",
    ]
