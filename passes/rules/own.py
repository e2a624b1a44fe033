"""abele's own rules, bound to the operations of its levels and of users' dialects."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.ir import Operation

from ...dialects.abele import Abele
from ...dialects.control import Control
from ...dialects.exchange import Exchange
from ...dialects.levels import OWN_LEVELS, USERS_DIALECTS
from ...dialects.nn import NN
from ...dialects.partition import Partition
from ...dialects.tile import Tile
from ...ir.context import AbeleContext
from ...ir.rules import RuleSet, Vocabulary, parse_rule_set
from . import nn_library as nn_library
from . import onnx_library as onnx_library

FOLDER = "rules"


def own_vocabulary() -> Vocabulary:
    """The operations of abele's dialects, and of the users' dialects that are registered."""
    return _vocabulary(_users_operations())


def own_rules(name: str) -> RuleSet:
    """The rules of passes/rules/NAME.rw. Tests check them; loading does not.

    They rewrite users' operations too, so they are bound once for each set of users' dialects.
    """
    return _rules(name, _users_operations())


def _users_operations() -> tuple[type[Operation], ...]:
    return tuple(op for dialect in USERS_DIALECTS.values() for op in dialect.operations)


@lru_cache(maxsize=4)
def _vocabulary(users: tuple[type[Operation], ...]) -> Vocabulary:
    context = AbeleContext(levels=OWN_LEVELS)
    for dialect in (Builtin, Func, Abele, Control, NN, Partition, Tile, Exchange):
        context.load_dialect(dialect)
    for op in users:
        context.load_op(op)
    return Vocabulary(context)


@lru_cache(maxsize=16)
def _rules(name: str, users: tuple[type[Operation], ...]) -> RuleSet:
    file = files("abele.passes").joinpath(FOLDER, f"{name}.rw")
    return parse_rule_set(file.read_text(encoding="utf-8"), _vocabulary(users), f"{name}.rw")
