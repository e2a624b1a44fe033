"""Verdicts that are kept beside the rules, with a digest that shows when they are stale.

The verdicts on the rules of `canonicalize.rw` are in `canonicalize.proofs.json`. The digest of a
verdict covers the rule, the classes of the operations that it names, the guards and functions that
it calls, the meanings of scalar functions, and the code that proves. That of a rule about ONNX also
covers the importers of its operators. Documentation and comments do not count.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from hashlib import sha256
from importlib.resources import files
from inspect import getsource, getsourcefile, unwrap
from pathlib import Path
from typing import Any, cast

from xdsl.ir import Operation

from ...dialects import scalar_meanings, slopes
from ...dialects.onnx import Operator
from ...ir.rules.bound_rule import BoundRule
from ...ir.rules.library import FUNCTIONS
from ...ir.rules.vocabulary import Vocabulary
from ...ir.support.errors import InputError
from ...ir.support.whole_file import whole_file
from ...passes.rules.own import FOLDER, own_rules
from ..importers.onnx.reader import OPERATORS
from ..testing.rules.rule_check import is_about_onnx
from .verdicts import Verdict

SUFFIX = ".proofs.json"
PACKAGE = "abele."
PROVING = "abele.tools.proving"
OF_ONNX = ("onnx_rules.py", "programs.py")
"""The files of the folder of proofs that only verdicts on rules about ONNX rest on."""
NO_PROOF = ("equivalent_rules.py", "kept.py", "plugin.py", "rules.py", *OF_ONNX)
"""The files that no verdict on a rule about nn rests on."""
NAMED = re.compile(r"\b(\w+\.\w+)\b")
CALLED = re.compile(r"\b(\w+)\(")


@dataclass(frozen=True)
class Kept:
    """A verdict that is kept.

    Attributes:
        made: the day on which it was made, such as "2026-11-30".
        stale: whether the rule, a definition or the prover has changed since.
    """

    verdict: Verdict
    made: str
    stale: bool

    @property
    def text(self) -> str:
        """The verdict in one sentence."""
        stale = (
            " Stale: the rule, a definition or the prover has changed since." if self.stale else ""
        )
        return f"{self.verdict.text}; {self.made}.{stale}"


def own_file(name: str) -> Path:
    """The file with the verdicts on abele's own rules of NAME.rw."""
    return Path(str(files("abele.passes").joinpath(FOLDER, f"{name}{SUFFIX}")))


def file_beside(rules: Path) -> Path:
    """The file with the verdicts on the rules of a file."""
    return rules.with_name(f"{rules.stem}{SUFFIX}")


def kept_in(file: Path, rules: Sequence[BoundRule], vocabulary: Vocabulary) -> dict[str, Kept]:
    """The kept verdicts on rules, by name. Raises InputError for a file of another form."""
    if not file.exists():
        return {}
    try:
        records: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
        bound = {rule.name: rule for rule in rules}
        return {
            name: Kept(
                Verdict.of(record["verdict"]),
                record["made"],
                record["digest"] != digest_of(bound[name], vocabulary),
            )
            for name, record in records.items()
            if name in bound
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{file}: not a file of verdicts ({error}); write it with abele prove --keep"
        ) from None


def keep(
    file: Path, verdicts: Sequence[Verdict], rules: Sequence[BoundRule], vocabulary: Vocabulary
) -> None:
    """Write verdicts to a file. Verdicts on other rules that the file has stay in it."""
    records: dict[str, Any] = {}
    if file.exists():
        records = json.loads(file.read_text(encoding="utf-8"))
    bound = {rule.name: rule for rule in rules}
    today = datetime.now(UTC).date().isoformat()
    for verdict in verdicts:
        rule = bound[verdict.rule]
        known = verdict.record()
        # How long a proof takes differs from run to run.
        known["seconds"] = round(verdict.seconds, 1)
        digest = digest_of(rule, vocabulary)
        records[rule.name] = {"made": today, "digest": digest, "verdict": known}
    with whole_file(file) as stream:
        stream.write((json.dumps(records, indent=1) + "\n").encode())


def own_verdicts(name: str) -> dict[str, Kept]:
    """The kept verdicts on abele's own rules of NAME.rw, by the name of the rule."""
    rules = own_rules(name)
    return kept_in(own_file(name), rules.bound, rules.vocabulary)


def verdict_on(rule: BoundRule, vocabulary: Vocabulary) -> Kept | None:
    """The kept verdict on a rule; None if there is none, or if it cannot be read."""
    path = Path(rule.place.file)
    file = file_beside(path) if path.is_absolute() or path.exists() else own_file(path.stem)
    try:
        return kept_in(file, [rule], vocabulary).get(rule.name)
    except InputError:
        return None


# Digests


def digest_of(rule: BoundRule, vocabulary: Vocabulary) -> str:
    """What a verdict on a rule rests on, as 16 hexadecimal digits."""
    made = sha256(f"{_engine()} {rule.text}".encode())
    for part in sorted(_parts(rule, vocabulary)):
        made.update(part.encode())
    if is_about_onnx(rule):
        for part in _importers(rule, vocabulary):
            made.update(part.encode())
    return made.hexdigest()[:16]


@cache
def _engine() -> str:
    """A digest of the code that proves, and of what scalar functions mean."""
    code = files(PROVING)
    paths = [path for path in Path(str(code)).rglob("*.py") if path.name not in NO_PROOF]
    sources = [path.read_text(encoding="utf-8") for path in sorted(paths)]
    sources += [getsource(module) for module in (scalar_meanings, slopes)]
    return sha256("\n".join(map(code_of, sources)).encode()).hexdigest()


def _importers(rule: BoundRule, vocabulary: Vocabulary) -> Iterator[str]:
    """The code by which a rule about ONNX is proved, and that reads the operators it names."""
    folder = Path(str(files(PROVING)))
    yield from (code_of((folder / name).read_text(encoding="utf-8")) for name in OF_ONNX)
    named = {vocabulary.ops[name] for name in NAMED.findall(rule.text) if name in vocabulary.ops}
    operators = {cls.DEFINITION.op_type for cls in named if issubclass(cls, Operator)}
    known = [OPERATORS[name] for name in sorted(operators & OPERATORS.keys())]
    for module in sorted({_function(each).__module__ for each in known}):
        yield _code_of_module(module)


def _function(importer: Any) -> Any:
    while isinstance(importer, partial):
        importer = importer.func
    return importer


@cache
def _code_of_module(name: str) -> str:
    return code_of(getsource(sys.modules[name]))


def _parts(rule: BoundRule, vocabulary: Vocabulary) -> Iterator[str]:
    classes: set[type[Operation]] = set()
    for pattern in rule.variants[0].walk():
        classes |= pattern.classes
    classes |= {vocabulary.ops[name] for name in NAMED.findall(rule.text) if name in vocabulary.ops}
    bases = {base for cls in classes for base in cls.__mro__}
    for base in bases:
        if base.__module__.startswith(PACKAGE):
            yield _definition(base.__module__, base.__name__)
    for name in dict.fromkeys(CALLED.findall(rule.text)):
        if name in FUNCTIONS:
            call = cast("Callable[..., Any]", unwrap(FUNCTIONS[name].call))
            yield _definition(call.__module__, call.__name__)


def _definition(module: str, name: str) -> str:
    return f"{module}.{name} {_definitions(module).get(name, '')}"


@lru_cache(maxsize=256)
def _definitions(module: str) -> Mapping[str, str]:
    """The classes and functions of a module, by name, without documentation."""
    path = getsourcefile(sys.modules[module]) if module in sys.modules else None
    if path is None or not Path(path).exists():
        return {}
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    kinds = (ast.ClassDef, ast.FunctionDef)
    return {
        node.name: sha256(ast.unparse(_without_documents(node)).encode()).hexdigest()
        for node in tree.body
        if isinstance(node, kinds)
    }


def code_of(source: str) -> str:
    """The code of a file without documentation and comments, in one layout."""
    return ast.unparse(_without_documents(ast.parse(source)))


def _without_documents(tree: ast.AST) -> ast.AST:
    """A tree of code without the texts that stand alone in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            kept = [each for each in node.body if not _is_text(each)]
            node.body = kept or [ast.Pass()]
    return tree


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
