"""Imports that happen when an imported name is first used.

A program from the cache starts without xDSL, the passes and the reference, which take half of a
start to import. Modules on that way import what they seldom need like this:

    with deferred(__name__):
        from ..backends.prices.price import price

The block stands behind the other imports. Python 3.15 calls this `lazy from` (PEP 810).
"""

from __future__ import annotations

import builtins
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import resolve_name
from threading import RLock, get_ident
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Deferred:
    """A stand-in for a function, a class or an object of another module.

    It can be called, indexed, iterated over and asked for attributes. It works as a class in
    isinstance, but not after `except`.
    """

    def __init__(self, module: str, name: str) -> None:
        self._place = module, name

    def _found(self) -> Any:
        module, name = self._place
        return getattr(__import__(module, fromlist=(name,)), name)

    def __call__(self, *given: Any, **options: Any) -> Any:
        """Call the object."""
        return self._found()(*given, **options)

    def __getattr__(self, name: str) -> Any:
        """An attribute of the object."""
        return getattr(self._found(), name)

    def __getitem__(self, key: Any) -> Any:
        """An item of the object."""
        return self._found()[key]

    def __iter__(self) -> Any:
        """The items of the object."""
        return iter(self._found())

    def __contains__(self, item: object) -> bool:
        """Whether the object contains an item."""
        return item in self._found()

    def __instancecheck__(self, each: object) -> bool:
        """Whether an object is an instance of this class."""
        return isinstance(each, self._found())


class _Module:
    """What `from module import name` finds: a stand-in for each name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Deferred:
        return Deferred(self._name, name)


_ONE_AT_A_TIME = RLock()
"""Held while a block replaces the import function of this process."""


@contextmanager
def deferred(importer: str) -> Generator[None]:
    """A block of `from module import name` whose names are stand-ins, and imports nothing.

    Raises ImportError for `import module`, which has no stand-in. Other modules, and other threads,
    import as always.

    Args:
        importer: `__name__` of the module with the block.
    """
    thread = get_ident()
    with _ONE_AT_A_TIME:
        import_now = builtins.__import__

        def import_later(
            name: str,
            globals: Mapping[str, Any] | None = None,
            locals: Mapping[str, Any] | None = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> Any:
            # Another thread may import while this one is between two lines of the block.
            if globals is None or (globals.get("__name__"), get_ident()) != (importer, thread):
                return import_now(name, globals, locals, fromlist or (), level)
            if not fromlist:
                raise ImportError(f"import {name} cannot be deferred; need from {name} import ...")
            return _Module(resolve_name("." * level + name, globals["__package__"]))

        builtins.__import__ = import_later
        try:
            yield
        finally:
            builtins.__import__ = import_now


def itself(name: T) -> T:
    """The object behind a stand-in; any other value unchanged.

    Needed where an object is passed on without being called or asked for an attribute.
    """
    return cast(Any, name)._found() if isinstance(cast(object, name), Deferred) else name
