"""abele's own rules, bound once to the operations of its levels."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func

from ...dialects.abele import Abele
from ...dialects.control import Control
from ...dialects.exchange import Exchange
from ...dialects.levels import LEVELS
from ...dialects.nn import NN
from ...dialects.partition import Partition
from ...dialects.tile import Tile
from ...ir.context import AbeleContext
from ...ir.rules import RuleSet, Vocabulary, parse_rule_set
from . import nn_library as nn_library

FOLDER = "rules"


@cache
def own_vocabulary() -> Vocabulary:
    """The operations of abele's dialects."""
    context = AbeleContext(levels=LEVELS)
    for dialect in (Builtin, Func, Abele, Control, NN, Partition, Tile, Exchange):
        context.load_dialect(dialect)
    return Vocabulary(context)


@cache
def own_rules(name: str) -> RuleSet:
    """The rules of passes/rules/NAME.rw. They are checked in tests, not when they are loaded."""
    file = files("abele.passes").joinpath(FOLDER, f"{name}.rw")
    return parse_rule_set(file.read_text(encoding="utf-8"), own_vocabulary(), f"{name}.rw")
