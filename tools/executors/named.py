"""The executor that a text names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...backends.host.cores import cores
from ...ir.support.errors import InputError
from .executor import Executor
from .here import Here
from .limits import Limits
from .local import Local
from .on_dask import DaskLocal, OnDask

DEFAULT = "local"
"""The executor if nobody names one: one process per core."""

MOST_WORKERS = 1024
"""Processes that an executor of this host may have. A round bound of ours."""


def _here(rest: str, limits: Limits) -> Executor:
    del limits
    if rest:
        raise InputError(f"executor here:{rest}: need here, which has one worker")
    return Here()


def _local(rest: str, limits: Limits) -> Executor:
    return Local(count_of(rest, "local") if rest else cores(), limits)


def _dask(rest: str, limits: Limits) -> Executor:
    host, _, port = rest.removeprefix("//").rpartition(":")
    named = rest.startswith("//") and host and not set(host) & set("/@ ")
    if not named or not (port.isascii() and port.isdigit() and 0 < int(port[:9]) < 1 << 16):
        raise InputError(f"executor dask:{rest[:80]}: need dask://HOST:PORT, such as dask://a:8786")
    return OnDask(host, int(port), limits)


def _dask_local(rest: str, limits: Limits) -> Executor:
    return DaskLocal(count_of(rest, "dask-local"), limits)


def count_of(text: str, name: str) -> int:
    """The number of workers in the name of an executor. Raises InputError."""
    plain = text.isascii() and text.isdigit() and len(text) <= 9
    if not plain or not 1 <= int(text) <= MOST_WORKERS:
        raise InputError(
            f"executor {name}:{text[:40]}: need {name}:N, with N in 1..{MOST_WORKERS} workers"
        )
    return int(text)


EXECUTORS: Mapping[str, tuple[str, Callable[[str, Limits], Executor]]] = {
    "local": ("local:N, N processes of this host, or local, one per core", _local),
    "here": ("here, this process", _here),
    "dask": ("dask://HOST:PORT, the workers of a scheduler of Dask", _dask),
    "dask-local": ("dask-local:N, a scheduler and N workers of Dask on this host", _dask_local),
}
"""By what comes before the colon in a name: what names look like, and a function that makes an
executor from what comes after the colon. It raises InputError."""


def executor_of(text: str = DEFAULT, limits: Limits | None = None) -> Executor:
    """The executor that a text names, such as "local:2". Raises InputError.

    Args:
        limits: what each worker may use; by default no more than one thread.
    """
    scheme, _, rest = text.partition(":")
    if scheme not in EXECUTORS:
        listed = "; ".join(meaning for meaning, _ in EXECUTORS.values())
        raise InputError(f"executor {text[:80]!r}: need one of: {listed}")
    _, make = EXECUTORS[scheme]
    return make(rest, Limits() if limits is None else limits)
