"""How passes are named in a saved failure, so that another process finds them again."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

from ....ir.errors import InputError
from ....ir.pass_manager import load_pass, parse_pipeline
from ....ir.upstream import ModulePass
from ....passes.pipelines import PASSES
from ..oracle.relations import RELATIONS, Relation, name_of

LOCAL = "<locals>"


def replay_record(
    passes: Sequence[ModulePass | str], kind: str, relations: Sequence[Relation] = ()
) -> dict[str, object]:
    """What replay.json says of passes, of relations, and of what was wrong."""
    return {
        "passes": [_written(each) for each in passes],
        "kind": kind,
        "relations": [_relation_written(each) for each in relations],
    }


def replay_command(folder: Path, record: Mapping[str, object]) -> str:
    """The command that runs a saved program again; "" if another process cannot find its passes."""
    written = cast("list[dict[str, str]]", record["passes"])
    written = [*written, *cast("list[dict[str, str]]", record.get("relations", []))]
    if any(LOCAL in each.get("class", "") for each in written):
        return ""
    return shlex.join([sys.executable, "-m", "abele.tools.testing", str(folder)])


def _written(each: ModulePass | str) -> dict[str, str]:
    if isinstance(each, str):
        return {"pipeline": each}
    spec, cls = str(each.spec()), type(each)
    if cls.name in PASSES and load_pass(cls.name, PASSES) is cls:
        return {"spec": spec}
    return {"spec": spec, **_place_of(cls, cls.__qualname__)}


def _place_of(thing: Any, name: str) -> dict[str, str]:
    """The file that something is written in, and its name there."""
    try:
        file = inspect.getsourcefile(thing)
    # What was typed at a prompt is in no file.
    except (TypeError, OSError):
        file = None
    if file is None or not Path(file).exists():
        return {"file": "", "class": f"{LOCAL}.{name}"}
    return {"file": str(Path(file).resolve()), "class": name}


def recorded_passes(record: Mapping[str, object]) -> tuple[ModulePass | str, ...]:
    """The passes that a record names, and texts of pipelines. Loading a file runs it.

    Raises InputError.
    """
    found: list[ModulePass | str] = []
    for each in cast("list[dict[str, str]]", record.get("passes", [])):
        if "pipeline" in each:
            found.append(each["pipeline"])
            continue
        registry: dict[str, Any] = dict(PASSES)
        if "file" in each:
            cls: type[ModulePass] = _loaded(Path(each["file"]), each["class"])
            registry = {cls.name: cls}
        found += parse_pipeline(each["spec"], registry)
    return tuple(found)


def _relation_written(relation: Relation) -> dict[str, str]:
    name = name_of(relation)
    if RELATIONS.get(name) is relation:
        return {"name": name}
    return _place_of(inspect.unwrap(relation), getattr(relation, "__qualname__", LOCAL))


def recorded_relations(record: Mapping[str, object]) -> tuple[Relation, ...]:
    """The relations that a record names. Loading a file runs it. Raises InputError."""
    written = cast("list[dict[str, str]]", record.get("relations", []))
    unknown = [e["name"] for e in written if "name" in e and e["name"] not in RELATIONS]
    if unknown:
        raise InputError(f"no relation '{unknown[0]}'; there are {', '.join(RELATIONS)}")
    return tuple(
        RELATIONS[each["name"]] if "name" in each else _loaded(Path(each["file"]), each["class"])
        for each in written
    )


def _loaded(file: Path, name: str) -> Any:
    spec = spec_from_file_location(f"replayed_{file.stem}", file)
    if spec is None or spec.loader is None or LOCAL in name:
        raise InputError(f"{file}: {name}: cannot be loaded; run the test that found it")
    module = module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        return attrgetter(name)(module)
    except Exception as error:
        raise InputError(f"{file}: {name}: {type(error).__name__}: {error}") from error
