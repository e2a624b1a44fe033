"""A compiled program: from the cache, or compiled now and kept there."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING

from ....backends import executable as program_file
from ....ir.support.errors import InputError
from ....ir.support.garbage import OPEN_FILE_BYTES, collect_if_grown, collection_paused, count_held
from ....ir.support.on_step import OnStep
from ....ir.support.sealed_file import make_way
from ..executable import MACHINE, Executable
from .key import Parts, key_of
from .lock import locked
from .runs import RunFile
from .store import Store, usable_store, warn

if TYPE_CHECKING:
    from ....ir.context import AbeleContext
    from ....ir.upstream import ModuleOp

WAITING = "wait for another process that compiles it"


def cached(
    parts: Callable[[], Parts | None],
    first: Callable[[], Executable],
    anew: Callable[[], Executable],
    path: str,
    context: Callable[[], AbeleContext],
    on_step: OnStep,
) -> Executable:
    """A program from the cache; if it is not there, it is compiled and kept.

    Raises what first raises, and InputError for settings of the cache that make no sense.

    Args:
        parts: returns the parts of the program's key. It is called again after compiling, because a
            program is not kept if a file has changed meanwhile.
        first: compiles the program.
        anew: compiles it again for an executable that needs more than the cache has.
        path: the model's name in messages.
        context: as for load_executable.
        on_step: called with the name of each slow step.
    """
    store = usable_store()
    before = None if store is None else parts()
    if store is None or before is None:
        return first()
    key = key_of(before)
    keep = partial(_keep, store, key, before, parts)
    find = partial(_found, store, key, path, context, anew, keep, on_step)
    found = find()
    if found is not None:
        return found
    with locked(store.lock(key), lambda: on_step(WAITING)) as problem:
        if problem is not None:
            warn(store, problem)
            return first()
        # Another process may have compiled it while this one waited for the lock.
        found = find()
        if found is None:
            found = first()
            keep(found)
        return found


def _keep(
    store: Store, key: str, before: Parts, parts: Callable[[], Parts | None], exe: Executable
) -> None:
    """Write a program into the store, if it fits its target and its model is still the same."""
    if MACHINE not in exe.levels or exe.memory.problem() is not None:
        return
    after = parts()
    if after is None or key_of(after) != key:
        return
    try:
        make_way(store.program(key))
        exe.write(store.program(key))
        digest = program_file.digest_of(store.program(key))
        # Without it, nobody uses the program.
        store.write_parts(key, before, digest)
    except OSError as error:
        warn(store, error)
        store.remove(key)
        return
    store.touch(store.program(key))
    store.shrink()
    exe.runners.file = RunFile(store, key, digest)


def _found(
    store: Store,
    key: str,
    path: str,
    context: Callable[[], AbeleContext],
    anew: Callable[[], Executable],
    keep: Callable[[Executable], None],
    on_step: OnStep,
) -> Executable | None:
    """The program of a key, if the store has it. A damaged one is removed.

    If a part of the program is damaged that is not looked at here, the program is compiled again
    once that part is needed.

    Args:
        keep: keeps a program that was compiled again.
    """
    entry = store.program(key)
    if not os.path.exists(entry):
        return None
    on_step("read")
    collect_if_grown()
    start = perf_counter()
    try:
        program = program_file.load(entry, MACHINE, defer=True)
    except InputError:
        store.remove(key)
        return None
    kept_for = store.digest(key)
    if program.digest != kept_for:
        # It is of another key, unless a process writes it just now.
        if kept_for is not None:
            store.remove(key)
        return None
    count_held(OPEN_FILE_BYTES)
    store.touch(entry)

    @cache
    def again() -> Executable:
        """The program, compiled again."""
        store.remove(key)
        exe = anew()
        keep(exe)
        return exe

    def at(level: str) -> ModuleOp:
        """A level, which is compiled again if the file is gone, or is damaged there.

        It was verified before it was kept, and its digest is that of what was written.
        """
        try:
            with collection_paused():
                if level != MACHINE:
                    whole = program_file.load(entry)
                    if whole.digest != program.digest:
                        raise InputError(f"{entry}: another program")
                    return whole.module_at(level, context())
                module = program.module_at(level, context())
            program.check()
            return module
        except InputError:
            return again().module_at(level)

    loaders = {level: partial(at, level) for level in program.texts}
    exe = Executable(program.target, loaders, path, reported=program.profile, anew=anew, kept=entry)
    exe.runners.file = RunFile(store, key, program.digest, program)
    exe.stages.add("read", perf_counter() - start)
    return exe
