"""Runs a saved failure again, with the passes and relations in its record."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

from ....ir.pass_manager import parse_pipeline
from ....ir.support.errors import InputError
from ....ir.upstream import ModulePass
from ....passes.names import pipeline_passes
from ....passes.pipelines import users_passes
from ...driver.extensions.load import load_extensions
from ...driver.extensions.loaded import Extensions
from ..generators.decisions import AT_RANDOM
from ..generators.program import ABOUT, Program
from ..oracle.relations import RELATIONS, Relation
from .failures import Wrong
from .judge import Judge
from .run import PassList, Refused
from .save import LOCAL
from .settings import CheckSettings


def replayed(program: Program, record: Mapping[str, object]) -> Wrong | None:
    """The failure of a saved program, run as its record says; None if it passes.

    Raises InputError for a record that cannot be read, and AtFault.
    """
    relations = recorded_relations(record)
    first = record.get("first")
    passes = PassList(
        recorded_passes(record),
        first if isinstance(first, int) else None,
        at_random=record.get("at_random") is True,
    )
    judge = Judge(passes, CheckSettings(relation=relations, results=not relations))
    try:
        return judge.wrong(program)
    except Refused:
        return None


def saved_program(folder: Path) -> tuple[Program, dict[str, object]]:
    """A saved program and its record, once the files of extensions are loaded that it names.

    Raises InputError.
    """
    try:
        record = cast("dict[str, object]", json.loads((folder / ABOUT).read_text("utf-8")))
    except (OSError, ValueError):
        # Loading the program says what is wrong.
        record = {}
    _ = _extensions(record)
    return Program.load(folder)


def recorded_passes(record: Mapping[str, object]) -> tuple[ModulePass | str, ...]:
    """The passes and pipeline texts in a record. Executes the files that define the passes.

    Raises InputError.
    """
    found: list[ModulePass | str] = []
    own = _extensions(record).passes
    for each in cast("list[dict[str, str]]", record.get("passes", [])):
        if "pipeline" in each:
            found.append(each["pipeline"])
            continue
        registry: dict[str, Any] = {**pipeline_passes(own), **users_passes(), **AT_RANDOM}
        if "file" in each:
            cls: type[ModulePass] = _loaded(Path(each["file"]), each["class"])
            registry = {cls.name: cls}
        found += parse_pipeline(each["spec"], registry)
    return tuple(found)


def recorded_relations(record: Mapping[str, object]) -> tuple[Relation, ...]:
    """The relations in a record. Executes the files that define them. Raises InputError."""
    written = cast("list[dict[str, str]]", record.get("relations", []))
    unknown = [e["name"] for e in written if "name" in e and e["name"] not in RELATIONS]
    if unknown:
        raise InputError(f"no relation '{unknown[0]}'; need one of {', '.join(RELATIONS)}")
    return tuple(
        RELATIONS[each["name"]] if "name" in each else _loaded(Path(each["file"]), each["class"])
        for each in written
    )


def _extensions(record: Mapping[str, object]) -> Extensions:
    """The extensions that a record names. Executes their files. Raises InputError."""
    return load_extensions(cast("list[str]", record.get("load", [])))


def _loaded(file: Path, name: str) -> Any:
    spec = spec_from_file_location(f"replayed_{file.stem}", file)
    if spec is None or spec.loader is None or LOCAL in name:
        raise InputError(f"{file}: {name}: cannot be loaded; run the test that found it")
    module = module_from_spec(spec)
    # Dataclasses look up their module.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        return attrgetter(name)(module)
    except Exception as error:
        raise InputError(f"{file}: {name}: {type(error).__name__}: {error}") from error
