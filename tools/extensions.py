"""What users add to abele: passes, dialects, scalar functions, targets, operators of ONNX, rules.

From a file (--load) or from an installed package, whose entry point in the group
"abele.extensions" names a module or an Extension.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from inspect import get_annotations, isabstract
from pathlib import Path
from sysconfig import get_paths
from traceback import StackSummary, format_exception_only, format_list, walk_tb
from types import FrameType, ModuleType
from typing import Any, TypeVar, cast

from xdsl.ir import Dialect, Operation

from ..backends.codelets.prices import register_price
from ..backends.codelets.scalar import ScalarFunction, register_scalar_function
from ..backends.target import Target, register_target, resolve_target
from ..dialects.levels import register_dialect
from ..dialects.nn import ElementwiseOp
from ..dialects.structured import FUNCTIONS, register_function
from ..ir.context import AbeleContext
from ..ir.errors import InputError
from ..ir.pass_manager import PassEntry, check_options
from ..ir.rules import (
    PythonRule,
    RuleSet,
    Vocabulary,
    bind_python_rules,
    library,
    rules_pass,
)
from ..ir.upstream import ModuleOp, ModulePass
from ..ir.user_entries import remove_entries
from ..passes.pipelines import LEVELS, PASSES
from ..passes.planner.derive import register_identity
from ..passes.rules import nn_library as nn_library  # for users' rules to call
from .driver.program import new_context

GROUP = "abele.extensions"
"""The entry points of packages that extend abele."""

PASS_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

SOUGHT = (
    "subclasses of ModulePass with a name, values of Dialect, ScalarFunction, Target and "
    "Extension, and functions with @rewrite, @onnx_operator, @guard, @function and @op_class"
)
"""What a module may define for abele."""


@dataclass(frozen=True)
class OnnxOperator:
    """What imports an operator of ONNX. importer: takes its abele.tools.importers.onnx.node.Node
    and gives its results."""

    name: str
    domain: str
    importer: Callable[..., Any]


def onnx_operator(
    name: str, domain: str = "ai.onnx"
) -> Callable[[Callable[..., Any]], OnnxOperator]:
    """Let a function import the nodes of an operator.

    @onnx_operator("Softplus", "com.example")
    def softplus(node):
        return node.add(SoftplusOp(node[0]))
    """

    def wrap(importer: Callable[..., Any]) -> OnnxOperator:
        return OnnxOperator(name, domain, importer)

    return wrap


@dataclass(frozen=True)
class Extension:
    """What a module of a user's adds to abele.

    A module that defines all of it itself needs none: its definitions are found. One that gathers
    them from elsewhere, as a package does, says so in a value of this type. rules: become one pass,
    named after the file or the entry point.
    """

    passes: Sequence[type[ModulePass]] = ()
    dialects: Sequence[Dialect] = ()
    functions: Sequence[ScalarFunction] = ()
    targets: Sequence[Target] = ()
    operators: Sequence[OnnxOperator] = ()
    rules: Sequence[PythonRule] = ()

    def __add__(self, other: Extension) -> Extension:
        """Both, each definition once."""
        return Extension(
            _once(*self.passes, *other.passes),
            _once(*self.dialects, *other.dialects),
            _once(*self.functions, *other.functions),
            _once(*self.targets, *other.targets),
            _once(*self.operators, *other.operators),
            _once(*self.rules, *other.rules),
        )


T = TypeVar("T")


def _once(*values: T) -> tuple[T, ...]:
    return tuple({id(value): value for value in values}.values())


@dataclass(frozen=True)
class Extensions:
    """All that was loaded, and abele's own passes.

    load: the paths that were given. folders: where users' code lies. warnings: of their rules.
    """

    passes: Mapping[str, PassEntry] = field(default_factory=lambda: dict(PASSES))
    dialects: tuple[Dialect, ...] = ()
    targets: Mapping[str, Target] = field(default_factory=dict[str, Target])
    load: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()

    def context(self) -> AbeleContext:
        """A context that knows the dialects of every level, and the users' own."""
        return new_context(self.dialects)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The part of a command line that loads the same files."""
        return tuple(word for path in self.load for word in ("--load", path))

    def brought(self, each: ModulePass) -> bool:
        """Whether a pass is a user's."""
        return each.name not in PASSES

    def traceback(self, error: BaseException) -> str:
        """The lines of users' code that an error came through, then the error; "" if none."""
        calls = [call for call in walk_tb(error.__traceback__) if self._holds(call[0])]
        if not calls:
            return ""
        lines = [*format_list(StackSummary.extract(calls)), *format_exception_only(error)[:1]]
        return "".join(["Traceback of your files (most recent call last):\n", *lines]).rstrip()

    def operation(self, error: BaseException) -> Operation | None:
        """The operation that the innermost function of users' code was at; None if unknown."""
        frames = [frame for frame, _ in walk_tb(error.__traceback__) if self._holds(frame)]
        for frame in reversed(frames):
            for value in cast(dict[str, object], frame.f_locals).values():
                if isinstance(value, Operation) and not isinstance(value, ModuleOp):
                    return value
        return None

    def _holds(self, frame: FrameType) -> bool:
        """Whether users' code runs in a frame: their folder, not one inside it of abele's."""
        path = Path(frame.f_code.co_filename)
        return _nearest(path, self.folders) > _nearest(path, _folders_of_others())


def _nearest(path: Path, folders: Iterable[Path]) -> int:
    """How long the path of the innermost folder is that holds a file; 0 if none does."""
    return max((len(each.parts) for each in folders if path.is_relative_to(each)), default=0)


@lru_cache(maxsize=1)
def _folders_of_others() -> tuple[Path, ...]:
    """Folders of abele and of all that is installed."""
    rooms = ("ir", "dialects", "backends", "passes", "tools")
    ours = [Path(import_module(f"abele.{room}").__path__[0]) for room in rooms]
    return (*ours, *map(Path, dict.fromkeys(get_paths().values())))


def load_extensions(paths: Sequence[str | os.PathLike[str]] = ()) -> Extensions:
    """Installed extensions, and those of some files: a .py, a .toml with a target, .rw rules.

    Functions, dialects, targets and operators stay for the life of the process; a file that has
    changed takes back its own first, and is run again.
    Raises InputError for whatever is wrong with one: a missing file, an error in it, a name that
    is taken, nothing to add.
    """
    files = [Path(os.fspath(path)) for path in paths]
    for path in files:
        if path.suffix not in LOADERS:
            raise InputError(f"{path}: what kind of extension is it? need {', '.join(LOADERS)}")
    # Rules may speak of dialects that other files bring.
    files.sort(key=lambda path: list(LOADERS).index(path.suffix))
    parts: list[_Part] = []
    for point in _entry_points():
        found = _installed_package(point)
        parts.append(_with_rules(found, point.name, _together(parts, ())))
    for path in {path.resolve(): path for path in files}.values():
        found = LOADERS[path.suffix](path, _together(parts, ()))
        parts.append(_with_rules(found, path.stem, _together(parts, ())))
    return _together(parts, [os.fspath(path) for path in paths])


@dataclass(frozen=True)
class _Part:
    """What one file or package has added. owner: what messages call it."""

    owner: str
    folder: Path
    extension: Extension
    digest: str = ""
    warnings: tuple[str, ...] = ()


def _together(parts: Sequence[_Part], load: Sequence[str]) -> Extensions:
    """All parts with abele's own. Raises InputError for two passes of one name."""
    passes: dict[str, PassEntry] = dict(PASSES)
    owners = dict.fromkeys((*PASSES, *LEVELS), "abele")
    for part in parts:
        for each in part.extension.passes:
            if each.name in owners and passes.get(each.name) is not each:
                raise InputError(
                    f"{part.owner}: pass '{each.name}' is there already, from "
                    f"{owners[each.name]}; need another name"
                )
            passes[each.name], owners[each.name] = each, part.owner
    whole = sum((part.extension for part in parts), Extension())
    return Extensions(
        passes,
        tuple(whole.dialects),
        {target.name: target for target in whole.targets},
        tuple(load),
        tuple(dict.fromkeys(part.folder for part in parts)),
        tuple(warning for part in parts for warning in part.warnings),
    )


_PARTS: dict[str, _Part] = {}
"""What was loaded before, by resolved path or entry point."""


def _install(key: str, part: _Part) -> _Part:
    """Add a part to abele's tables, in place of what it has added before."""
    _take_back(key)
    try:
        _register(part.extension, part.owner)
    except BaseException:
        remove_entries(part.owner)
        raise
    _PARTS[key] = part
    return part


def _take_back(key: str) -> None:
    """Remove from abele's tables what a part has added, if it is there."""
    old = _PARTS.pop(key, None)
    if old is not None:
        remove_entries(old.owner)


def _register(extension: Extension, owner: str) -> None:
    for function in extension.functions:
        register_function(function.name, function.arity, function.parameters, owner)
        register_scalar_function(function, owner)
        if function.priced_as:
            register_price(function.name, function.priced_as, owner)
        register_identity(function.name, function.carries_identity_of, owner)
    for dialect in extension.dialects:
        register_dialect(dialect, owner)
        _check_operations(dialect, owner)
    for target in extension.targets:
        register_target(target, owner)
    for each in extension.passes:
        _check_pass(each, owner)
    if extension.operators:
        # Programs that are no .onnx run where onnx is not installed.
        from .importers.onnx.reader import register_operator  # noqa: PLC0415

        for operator in extension.operators:
            register_operator(operator.domain, operator.name, operator.importer, owner)


def _check_operations(dialect: Dialect, owner: str) -> None:
    """Raise InputError for an operation that lacks a method, or its scalar function."""
    for op in dialect.operations:
        if isabstract(op):
            missing = ", ".join(sorted(op.__abstractmethods__))
            raise InputError(f"{owner}: operation {op.name} of class {op.__name__}: need {missing}")
        # A class that says itself which function it applies is asked when it is an operation.
        named_after = issubclass(op, ElementwiseOp) and op.function is ElementwiseOp.function
        name = op.name.partition(".")[2]
        if named_after and name not in FUNCTIONS:
            raise InputError(
                f"{owner}: operation {op.name} of class {op.__name__} applies the scalar function "
                f"{name!r}, which there is not; need ScalarFunction({name!r}, ...)"
            )


def _check_pass(each: type[ModulePass], owner: str) -> None:
    """Raise InputError unless pipelines can name a pass and give it its options."""
    if not PASS_NAME.fullmatch(each.name):
        raise InputError(
            f"{owner}: pass {each.name!r} of class {each.__name__}; need a name of small letters, "
            "digits and dashes, such as 'fuse-add-relu'"
        )
    if isabstract(each):
        raise InputError(f"{owner}: pass '{each.name}': need a method apply(self, ctx, op)")
    fields = [name for name in get_annotations(each) if name != "name"]
    if fields and "__dataclass_fields__" not in vars(each):
        raise InputError(
            f"{owner}: pass '{each.name}': {fields[0]} is no option yet; need "
            f"@dataclass(frozen=True) above class {each.__name__}"
        )
    try:
        check_options(each)
    except NameError as error:
        raise InputError(f"{owner}: pass '{each.name}': the type of an option: {error}") from None
    except InputError as error:
        raise InputError(f"{owner}: {error}") from None


# Packages


@lru_cache(maxsize=1)
def _entry_points() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _installed_package(point: EntryPoint) -> _Part:
    key = f"{point.name} = {point.value}"
    if key in _PARTS:
        return _PARTS[key]
    owner = f"installed extension {point.name} ({point.value})"
    try:
        found = cast(object, point.load())
    except (Exception, SystemExit) as error:
        library.forget(point.module)
        raise InputError(
            f"{owner}: cannot be loaded: {type(error).__name__}: {error}; mend or uninstall it"
        ) from error
    module = import_module(point.module)
    folder = Path(module.__file__ or ".").resolve().parent
    if isinstance(found, Extension):
        return _install(key, _Part(owner, folder, found))
    if not isinstance(found, ModuleType):
        raise InputError(f"{owner}: a {type(found).__name__}; need a module or an Extension")
    return _install(key, _Part(owner, folder, _defined(found, _text_of(found), owner)))


def _text_of(module: ModuleType) -> bytes:
    return Path(module.__file__).read_bytes() if module.__file__ else b""


# Files


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _load_python(path: Path, _: Extensions) -> _Part:
    text = _read(path)
    key, digest = str(path.resolve()), sha256(text).hexdigest()
    if key in _PARTS and _PARTS[key].digest == digest:
        return _PARTS[key]
    place = path.resolve()

    def installed(module: ModuleType) -> _Part:
        found = _defined(module, text, str(path))
        return _install(key, _Part(str(path), place.parent, found, digest))

    imported = sys.modules.get(path.stem)
    if getattr(imported, "__file__", None) == key and key not in _PARTS:
        assert imported is not None
        # Another user's file has imported it: a second copy would have classes of its own.
        return installed(imported)
    _forget_namesakes(place.parent)
    name = _module_name(path.stem, place)
    _take_back(key)
    library.forget(name)
    try:
        return installed(_run(path, text, name))
    except BaseException:
        # The next attempt must neither find half a module nor the names that it has taken.
        library.forget(name)
        sys.modules.pop(name, None)
        raise


def _run(path: Path, text: bytes, name: str) -> ModuleType:
    """The module of a file. Raises InputError with the file's line for an error in it."""
    place = path.resolve()
    module = ModuleType(name)
    module.__file__ = str(place)
    folder = str(place.parent)
    # Compiled here, not by an importer, which would leave a __pycache__ beside the user's file.
    try:
        code = compile(text, str(place), "exec", dont_inherit=True)
        # Dataclasses look their module up; files beside this one come after all that is installed.
        sys.modules[name] = module
        sys.path.append(folder)
        try:
            exec(code, vars(module))
        finally:
            sys.path.remove(folder)
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise InputError(f"{path}{line}: not Python: {error.msg}") from None
    except (Exception, SystemExit) as error:
        lines = [n for f, n in walk_tb(error.__traceback__) if f.f_code.co_filename == str(place)]
        line = f":{lines[-1]}" if lines else ""
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        raise InputError(f"{path}{line}: {kind}{error}") from error
    return module


def _forget_namesakes(folder: Path) -> None:
    """Let the files of a folder be imported anew where users' files elsewhere have their names.

    What the path does not lead to came from such a folder, which was on it for a moment.
    """
    for file in folder.glob("*.py"):
        known = getattr(sys.modules.get(file.stem), "__file__", None)
        elsewhere = known is not None and Path(known).parent != folder
        if elsewhere and PathFinder.find_spec(file.stem) is None:
            del sys.modules[file.stem]


def _module_name(stem: str, place: Path) -> str:
    """The stem, under which files beside it import it; a longer name where that one is taken."""
    known = sys.modules.get(stem)
    own = getattr(known, "__file__", None) == str(place)
    try:
        free = known is None and find_spec(stem) is None
    except (ImportError, ValueError):
        free = False
    unique = f"abele_extension_{stem}_{sha256(str(place).encode()).hexdigest()[:8]}"
    return stem if own or free else unique


def _load_target(path: Path, _: Extensions) -> _Part:
    text = _read(path)
    key, digest = str(path.resolve()), sha256(text).hexdigest()
    if key in _PARTS and _PARTS[key].digest == digest:
        return _PARTS[key]
    target = resolve_target(str(path))
    if target.name == target.base:
        target = replace(target, name=path.stem)
    found = Extension(targets=(target,))
    return _install(key, _Part(str(path), path.resolve().parent, found, digest))


_RULES: dict[Path, tuple[object, _Part]] = {}
"""What was loaded before, by resolved path, with all that it was made from."""


def _load_rules(path: Path, so_far: Extensions) -> _Part:
    text = _read(path)
    calls = (*library.FUNCTIONS.items(), *library.CLASSES.items())
    made_from = (str(path), sha256(text).hexdigest(), so_far.dialects, calls)
    known, part = _RULES.get(path.resolve(), (None, None))
    if part is None or known != made_from:
        part = _checked_rules(path, so_far)
        _RULES[path.resolve()] = made_from, part
    return part


def _checked_rules(path: Path, so_far: Extensions) -> _Part:
    """What the rules of a file add. That they are checked takes seconds where they are many."""
    # The checks are a tenth of what abele loads, and most programs bring no rules.
    from ..ir.rules.load import load_rules  # noqa: PLC0415

    rules = load_rules(path, so_far.context())
    if not rules.laws:
        raise InputError(f"{path}: nothing to add to abele; looked for rules")
    made = _pass_of_rules(path.stem, rules, str(path))
    folder = path.resolve().parent
    return _Part(str(path), folder, Extension(passes=(made,)), warnings=rules.warnings)


def _with_rules(part: _Part, name: str, so_far: Extensions) -> _Part:
    """A part whose rules are bound to the operations known by now, and a pass."""
    if not part.extension.rules:
        return part
    context = new_context((*so_far.dialects, *part.extension.dialects))
    rules = bind_python_rules(part.extension.rules, Vocabulary(context))
    made = _pass_of_rules(name, rules, part.owner)
    return replace(part, extension=part.extension + Extension(passes=(made,)))


def _pass_of_rules(name: str, rules: RuleSet, owner: str) -> type[ModulePass]:
    named = name.replace("_", "-")
    if not PASS_NAME.fullmatch(named):
        raise InputError(
            f"{owner}: its rules become a pass named after it, and {named!r} is no name of a pass; "
            f"rename it to small letters, digits and dashes, such as {_pass_name_like(named)!r}"
        )
    made = rules_pass(named, rules)
    _check_pass(made, owner)
    return made


def _pass_name_like(name: str) -> str:
    """The nearest name that a pass may have."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    like = "-".join(words).lstrip("0123456789-")
    return like or "my-rules"


LOADERS: dict[str, Callable[[Path, Extensions], _Part]] = {
    ".py": _load_python,
    ".toml": _load_target,
    ".rw": _load_rules,
}
"""By suffix, what loads a file, given all that was loaded before it."""


# Definitions in a module


def _defined(module: ModuleType, text: bytes, owner: str) -> Extension:
    """What a module defines for abele. Raises InputError if that is nothing."""
    names = _assigned(text)
    here = [value for name, value in vars(module).items() if name in names or not text]
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    found = Extension(
        [c for c in classes if issubclass(c, ModulePass) and isinstance(vars(c).get("name"), str)],
        [value for value in here if isinstance(value, Dialect)],
        [value for value in here if isinstance(value, ScalarFunction)],
        [value for value in here if isinstance(value, Target)],
        [value for value in here if isinstance(value, OnnxOperator)],
        [value for value in here if isinstance(value, PythonRule)],
    )
    found += sum((value for value in here if isinstance(value, Extension)), Extension())
    if found == Extension() and not _has_rule_functions(module):
        raise InputError(f"{owner}: nothing to add to abele; looked for {SOUGHT}")
    known = {op for dialect in found.dialects for op in dialect.operations}
    for op in classes:
        if issubclass(op, Operation) and "." in str(vars(op).get("name", "")) and op not in known:
            raise InputError(
                f"{owner}: operation {op.name} of class {op.__name__} is in no dialect; need "
                f"Dialect({op.name.partition('.')[0]!r}, [{op.__name__}, ...], [])"
            )
    return found


def _has_rule_functions(module: ModuleType) -> bool:
    """Whether a module has given rules something to call; its decorators have registered it."""
    calls = [*(each.call for each in library.FUNCTIONS.values()), *library.CLASSES.values()]
    return any(call.__module__ == module.__name__ for call in calls)


def _assigned(text: bytes) -> frozenset[str]:
    """The names that a module's text gives values to, other than by importing them."""
    names: set[str] = set()
    pending: list[ast.AST] = list(ast.parse(text).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif not isinstance(node, ast.ClassDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)
    return frozenset(names)
