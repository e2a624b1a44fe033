"""Names of other modules that are imported when they are first used.

A program from the cache starts without xDSL, the passes and the reference, which take half of a
start to import. Modules on that way name what they seldom need like this:

    if TYPE_CHECKING:
        from ..backends.prices.price import price
    else:
        price = deferred("..backends.prices.price", "price", __package__)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Deferred:
    """A stand-in for a function, a class or an object of another module.

    It can be called, indexed, iterated over and asked for attributes. It works as a class in
    isinstance, but not after `except`.
    """

    def __init__(self, module: str, name: str, package: str | None) -> None:
        self._place = module, name, package

    def _found(self) -> Any:
        module, name, package = self._place
        return getattr(import_module(module, package), name)

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


def deferred(module: str, name: str, package: str | None) -> Any:
    """A stand-in for a name of a module, which is imported when the stand-in is first used.

    Args:
        module: absolute, or relative to `package`.
    """
    return Deferred(module, name, package)


def itself(name: T) -> T:
    """The object behind a stand-in; any other value unchanged.

    Needed where an object is passed on without being called or asked for an attribute.
    """
    return cast(Any, name)._found() if isinstance(cast(object, name), Deferred) else name
