from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from some_passes import Chooses, NeedsLimit, Nothing
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from abele.ir.pass_options import is_option_type, pass_options


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


def test_meanings_come_from_the_docstring_or_the_field():
    assert [str(each) for each in pass_options(Told)] == [
        "first-limit: an integer, default 2; at most so many; over two lines",
        "second: a list a,b,... of integers, default 1,2; another",
        'third: text, default "a"; after a blank line',
        "fourth: true or false, default false; in its field",
    ]


def test_the_values_of_a_literal_are_listed():
    assert [str(each) for each in pass_options(Chooses)] == [
        'how: one of a, b, default "a"',
        "order: a list a,b,... of one of a, b, default none",
    ]


@pytest.mark.parametrize("hint", [dict[str, int], dict, list[int], bytes, tuple[Path, ...]])
def test_a_pipeline_cannot_express_every_type(hint: object):
    assert not is_option_type(hint)


@pytest.mark.parametrize("hint", [int | None, tuple[int | str, ...], Literal["a"], int | bytes])
def test_a_pipeline_can_express_plain_types_and_tuples_of_them(hint: object):
    assert is_option_type(hint)


def test_types_and_defaults_of_every_kind():
    assert [str(each) for each in (*pass_options(Nothing), *pass_options(NeedsLimit))] == [
        "rate: a number, default 0.5",
        "limit: an integer or none, default none",
        "sizes: a list a,b,... of integers, default none",
        "fractions: a list a,b,... of numbers, default none",
        "keep-order: true or false, default false",
        'label: text, default ""',
        "either: a number, default 0",
        "limit: an integer, needed",
    ]
