"""Saves a failing program, with the passes and relations that another process needs for it."""

from __future__ import annotations

import inspect
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, cast

from ....ir.pass_manager import load_pass
from ....ir.support.whole_folder import free_folder
from ....ir.upstream import ModulePass
from ....passes.names import pipeline_passes
from ....passes.pipelines import users_passes
from ...driver.extensions.registration import files_to_load, is_from_a_file
from ..generators.decisions import AT_RANDOM
from ..generators.program import KIND, Program
from ..oracle.relations import RELATIONS, Relation, name_of
from .run import PassList
from .settings import Budget

LOCAL = "<locals>"
"""A part of the qualified names of classes and functions that no other process can find."""


class Saved(NamedTuple):
    """A saved program: its folder, and the command that runs it again, "" if there is none."""

    folder: Path
    command: str


def save_failure(
    program: Program, passes: PassList, relations: Sequence[Relation], kind: str, budget: Budget
) -> Saved:
    """Save a program on which passes fail, in the folder of the budget.

    Args:
        kind: as Wrong.kind.
    """
    record = replay_record(passes.tested, kind, relations)
    record |= {"first": passes.first, "at_random": passes.at_random}
    return save_program(program, budget, record, lambda folder: replay_command(folder, record))


def save_program(
    program: Program,
    budget: Budget,
    record: Mapping[str, object],
    command: Callable[[Path], str],
) -> Saved:
    """Save a program with a record of its failure.

    Args:
        command: makes the command that runs it again, unless the budget has one.
    """
    wanted = budget.folder or Path(tempfile.mkdtemp(prefix="abele-failure-"))
    folder = free_folder(wanted, KIND)
    program.save(folder, record)
    given = budget.command.replace("FOLDER", str(folder))
    return Saved(folder, given or command(folder))


def replay_record(
    passes: Sequence[ModulePass | str], kind: str, relations: Sequence[Relation] = ()
) -> dict[str, object]:
    """The contents of replay.json.

    These are the passes, the relations, the kind of failure, and the files of extensions.
    """
    files = files_to_load({type(each) for each in passes if not isinstance(each, str)})
    return {
        "passes": [_pass_record(each) for each in passes],
        "kind": kind,
        "relations": [_relation_record(each) for each in relations],
        **({"load": files} if files else {}),
    }


def replay_command(folder: Path, record: Mapping[str, object]) -> str:
    """The command that runs a saved program again; "" if another process cannot find its passes."""
    written = cast("list[dict[str, str]]", record["passes"])
    written = [*written, *cast("list[dict[str, str]]", record.get("relations", []))]
    if any(LOCAL in each.get("class", "") for each in written):
        return ""
    return shlex.join([sys.executable, "-m", "abele.tools.testing", str(folder)])


def _pass_record(each: ModulePass | str) -> dict[str, str]:
    if isinstance(each, str):
        return {"pipeline": each}
    spec, cls = str(each.spec()), type(each)
    known = {**pipeline_passes(), **users_passes(), **AT_RANDOM}
    if is_from_a_file(cls) or (cls.name in known and load_pass(cls.name, known) is cls):
        return {"spec": spec}
    name = cls.__qualname__ if _is_in_its_module(cls) else f"{LOCAL}.{cls.__qualname__}"
    return {"spec": spec, **_definition(cls, name)}


def _is_in_its_module(cls: type[ModulePass]) -> bool:
    """Whether a class is found by its name. Those of rules in Python are not."""
    try:
        return attrgetter(cls.__qualname__)(sys.modules[cls.__module__]) is cls
    except (AttributeError, KeyError):
        return False


def _relation_record(relation: Relation) -> dict[str, str]:
    name = name_of(relation)
    if RELATIONS.get(name) is relation:
        return {"name": name}
    return _definition(inspect.unwrap(relation), getattr(relation, "__qualname__", LOCAL))


def _definition(thing: Any, name: str) -> dict[str, str]:
    """The file that defines a class or function, and its name there."""
    try:
        file = inspect.getsourcefile(thing)
    # Code that was typed at a prompt is in no file.
    except (TypeError, OSError):
        file = None
    if file is None or not Path(file).exists():
        return {"file": "", "class": f"{LOCAL}.{name}"}
    return {"file": str(Path(file).resolve()), "class": name}
