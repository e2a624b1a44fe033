"""The names of the kernels that calls run, for messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..codelets.calls import Call
from .bound_products import Products
from .calls import KernelCall, WhileEqual
from .write_bound_program import code_names


def kernels_in(calls: Iterable[Call]) -> tuple[str, ...]:
    """The distinct kernels that calls run, in order.

    A kernel has the name of its task, such as "products"; a NumPy function is "numpy.copyto".
    """
    names = code_names()
    return tuple(dict.fromkeys(task for call in calls for task in _tasks(call, names)))


def _tasks(call: Call, names: Mapping[int, str]) -> Iterator[str]:
    function, _ = call
    if isinstance(function, WhileEqual):
        for each in (function.once, function.each):
            yield from _tasks(each, names)
    elif isinstance(function, Products):
        yield "products"
    elif isinstance(function, KernelCall):
        code, *_ = function.arguments
        yield names.get(code, "unknown").split(".", maxsplit=1)[0]
    else:
        yield f"numpy.{getattr(function, '__name__', 'call')}"
