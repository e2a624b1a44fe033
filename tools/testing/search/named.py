"""The operations and numbers in the code of a pass.

Reads the functions of a pass, its patterns and their helpers, without running them. It looks
through decorators (also xDSL's `op_type_rewrite_pattern`, which keeps the decorated function in a
closure), annotations, tables, and functions of other modules of the same package or folder.
"""

from __future__ import annotations

import dis
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import get_annotations
from math import isfinite
from pathlib import Path
from types import CodeType, FunctionType, GenericAlias, MethodType, ModuleType, UnionType
from typing import Any, Union, cast, get_args, get_origin

from xdsl.ir import Dialect, Operation

from ....dialects.levels import DIALECTS, USERS_DIALECTS, load_dialect
from ....ir.rules.choices import Hints
from ....ir.rules.rule_set import RulesPass
from ....ir.upstream import ModulePass

MOST = 12
"""The most operators of a base class that still tells what a pass matches."""
MOST_VALUES = 20_000
"""The number of values after which the reader stops; a table of a million entries adds nothing."""

MOST_NUMBERS = 32
"""The most numbers of each kind to keep. A pass with more of them has a table of data."""
LARGEST = 4096
"""The largest integer that is kept: no attribute of a generated program is larger."""
LONGEST = 6
"""The longest list of integers that is kept."""
ANYWAY = (0, 1)
"""Numbers that many attributes have in any case."""

LIBRARIES = ("abele", "xdsl")
"""Packages whose helpers are not read: they name operations that a pass does not match."""
INSTALLED = ("site-packages", "dist-packages")
"""Folders that hold packages of many authors."""

_OP_NAME = re.compile(r"[a-z_]\w*\.[\w.]+\Z")
_OP_CLASS = re.compile(r"[A-Z]\w*Op\Z")
_WORD = re.compile(r"[A-Za-z_]\w*")
_WRAPPERS = (staticmethod, classmethod, property, cached_property, partial, MethodType)
_INSIDE = ("__func__", "fget", "func", "args", "keywords")
"""The attributes under which wrappers keep the function that they wrap."""


def classes_named_by(tested: ModulePass) -> Iterator[type]:
    """The classes named in the code of a pass or in the patterns of its rules.

    Operations that the code names by text, as "nn.relu" or "ReluOp", are among them. A class may
    come more than once.
    """
    if isinstance(tested, RulesPass):
        for rule in tested.rule_set().chosen(tested.only, tested.skip).bound:
            for pattern in rule.variants[0].walk():
                if len(pattern.classes) <= MOST:
                    yield from pattern.classes
        return
    yield from _Reader(type(tested)).read(tested)


def words_of(tested: ModulePass) -> set[str]:
    """The names of variables and attributes in the code of a pass."""
    reader = _Reader(type(tested))
    for _ in reader.read(tested):
        pass
    return reader.words


def literals_of(tested: ModulePass) -> Hints:
    """The numbers and short lists of integers in the code of a pass.

    Numbers in rules are left out, because the programs of rules contain them already.
    """
    if isinstance(tested, RulesPass):
        return Hints()
    reader = _Reader(type(tested))
    for _ in reader.read(tested):
        pass
    return reader.literals()


class _Reader:
    """Reads the values in a pass's code one after another.

    Attributes:
        home: the home of the pass's class.
        words: the names in the functions read so far.
        numbers, lists: the numbers and lists read so far, each once, in the order of the code.
    """

    def __init__(self, home: type) -> None:
        self.home = Home.of(home)
        self.left: list[object] = []
        self.seen: set[int] = set()
        self.words: set[str] = set()
        self.numbers: dict[int | float, None] = {}
        self.lists: dict[tuple[int, ...], None] = {}

    def literals(self) -> Hints:
        """The numbers and lists read so far that are possible values of attributes."""
        whole = [n for n in self.numbers if isinstance(n, int) and abs(n) <= LARGEST]
        floats = [n for n in self.numbers if isinstance(n, float)]
        return Hints(
            tuple(whole[:MOST_NUMBERS]),
            tuple(floats[:MOST_NUMBERS]),
            lists=tuple(self.lists)[:MOST_NUMBERS],
        )

    def read(self, tested: ModulePass) -> Iterator[type]:
        """The classes that a pass's code names."""
        self.left = [*vars(tested).values(), *self._members(type(tested))]
        kept: list[object] = []
        while self.left and len(kept) < MOST_VALUES:
            value = self.left.pop()
            if id(value) in self.seen:
                continue
            self.seen.add(id(value))
            # Otherwise another object could get the same id.
            kept.append(value)
            if isinstance(value, type) and not isinstance(value, GenericAlias):
                yield value
            elif isinstance(value, str) and (found := _operation(value)):
                yield found
            self._note(value)
            self.left += self._inside(value)

    def _note(self, value: object) -> None:
        """Record a value that is a number or a short list of integers."""
        # A truth value is an int too.
        if type(value) in (int, float):
            number = cast("int | float", value)
            if number not in ANYWAY and isfinite(number):
                self.numbers[number] = None
        elif isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            if 0 < len(items) <= LONGEST and all(type(each) is int for each in items):
                self.lists[cast("tuple[int, ...]", items)] = None

    def _inside(self, value: object) -> Iterable[object]:
        """The values that a value contains, wraps or mentions."""
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, _WRAPPERS):
            wrapper = cast("object", value)
            return [getattr(wrapper, name) for name in _INSIDE if hasattr(wrapper, name)]
        if isinstance(value, UnionType | GenericAlias) or get_origin(value) is Union:
            return get_args(value)
        if isinstance(value, Mapping):
            table = cast("Mapping[object, object]", value)
            return [*table.keys(), *table.values()]
        if isinstance(value, tuple | list | set | frozenset):
            return cast("Iterable[object]", value)
        if isinstance(value, type):
            return self._members(value) if self._is_own(value) else ()
        if self._is_own(type(value)):
            return [type(value), *getattr(value, "__dict__", {}).values()]
        return ()

    def _members(self, cls: type) -> list[object]:
        """The members of a class and of its user-written bases."""
        # Overridden methods too: a wrapper such as `must_accept_all` overrides those of its pass.
        own = [each for each in cls.__mro__ if self._is_own(each)]
        return [
            value
            for each in own
            for name, value in vars(each).items()
            if isinstance(value, FunctionType) or not name.startswith("__")
        ]

    def _of_function(self, function: FunctionType) -> Iterator[object]:
        for cell in function.__closure__ or ():
            # A cell is empty until its variable is assigned.
            with suppress(ValueError):
                yield cell.cell_contents
        yield getattr(function, "__wrapped__", None)
        if not self._is_own(function):
            return
        names, constants = _mentioned(function.__code__)
        self.words |= names
        scope: dict[str, Any] = function.__globals__
        for hint in get_annotations(function).values():
            if isinstance(hint, str):
                names |= set(_WORD.findall(hint))
            else:
                yield hint
        yield from constants
        yield from function.__defaults__ or ()
        yield from _values(scope, names)

    def _is_own(self, value: type | FunctionType) -> bool:
        """Whether a class or function is in the module, package or folder of the pass."""
        return self.home.has(value.__module__, _file_of(value))


@dataclass(frozen=True)
class Home:
    """The origin of a pass's code: a module, and the package or folder around it."""

    module: str
    folder: Path | None

    @staticmethod
    def of(defined: type) -> Home:
        """The home of a class."""
        return Home(defined.__module__, _folder(_file_of(defined)))

    def has(self, module: str, file: object) -> bool:
        """Whether a module, in this file, belongs to the pass."""
        if module == self.module:
            return True
        top = self.module.partition(".")[0]
        if top in LIBRARIES or module.partition(".")[0] in (*LIBRARIES, "builtins"):
            return False
        if "." in self.module and module.partition(".")[0] == top:
            return True
        folder = _folder(file)
        if self.folder is None or folder is None or not folder.is_relative_to(self.folder):
            return False
        return not set(INSTALLED) & {self.folder.name, *folder.relative_to(self.folder).parts}


def _file_of(value: type | FunctionType) -> object:
    """The file that defines a class or function; None if there is none."""
    if isinstance(value, FunctionType):
        return value.__globals__.get("__file__")
    return getattr(sys.modules.get(value.__module__), "__file__", None)


def _folder(file: object) -> Path | None:
    return Path(file).resolve().parent if isinstance(file, str) else None


def _mentioned(code: CodeType) -> tuple[set[str], list[object]]:
    """The names and constants in code, including those of nested functions."""
    names, constants = set(code.co_names), list[object]()
    for const in (*code.co_consts, *_small_integers(code)):
        if isinstance(const, CodeType):
            more, inside = _mentioned(const)
            names |= more
            constants += inside
        else:
            constants.append(const)
    return names, constants


def _small_integers(code: CodeType) -> list[int]:
    """The integers inside the instructions of code, where Python 3.14 keeps small ones."""
    found = (each for each in dis.get_instructions(code) if each.opname == "LOAD_SMALL_INT")
    return [cast("int", each.argval) for each in found]


def _values(scope: Mapping[str, Any], names: set[str]) -> Iterator[object]:
    """The values of names in a module's scope, in modules found there, and in local imports."""
    package = str(scope.get("__package__") or "")
    left: list[object] = [scope[name] for name in sorted(names & scope.keys())]
    for name in sorted(names):
        left += [sys.modules[each] for each in (name, f"{package}.{name}") if each in sys.modules]
    seen: set[int] = set()
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, ModuleType):
            inside = vars(value)
            left += [inside[name] for name in sorted(names & inside.keys())]
        else:
            yield value


def _operation(text: str) -> type[Operation] | None:
    """The operation with this name, or with this class name; None if there is none."""
    if _OP_CLASS.match(text):
        return _by_class_name().get(text)
    if not _OP_NAME.match(text):
        return None
    return next((op for op in _dialect(text).operations if op.name == text), None)


def _by_class_name() -> dict[str, type[Operation]]:
    """All operations by class name. Of two operations with one name, the higher level's is kept."""
    dialects = [*USERS_DIALECTS.values(), *map(load_dialect, reversed(DIALECTS))]
    return {op.__name__: op for dialect in dialects for op in dialect.operations}


def _dialect(text: str) -> Dialect:
    """The dialect in an operation's name; an empty dialect if it is unknown."""
    name = text.partition(".")[0]
    if name in DIALECTS:
        return load_dialect(name)
    return USERS_DIALECTS.get(name, Dialect("none"))
