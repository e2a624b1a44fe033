# pyright: basic
"""Compiled functions that are cached in files, where that is possible. Needs numba.

Numba raises if there is no folder for the files, if one of them is damaged, and if the disk is
full. Here, the function is compiled all the same. A folder that others can write to is ignored, and
a private one is used instead: reading a compiled function can run any code. Each file is sealed for
its function, so a file that is damaged, or in the place of another, is replaced by compiling again.

A compiled function contains the code of the functions that it calls, and of the sequences of
codelets. Numba compiles it again only if its own file has changed. Here, it is compiled again if
any Python file of the same folder has changed, or one of the files that define sequences.
"""

from __future__ import annotations

import os
import pickle
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numba
from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

from ...ir.support.private_folder import intrusion, private_folder
from ...ir.support.sealed_file import Broken, read_sealed, sealed
from .kernel_sources import folder_stamp, has_changed

VARIABLE = "NUMBA_CACHE_DIR"
"""The environment variable that names the folder where compiled functions are cached."""


INDEX, CODE = "index of compiled functions 1", "compiled function 1"
"""The kinds under which files are sealed."""


class SealedFiles(IndexDataCacheFile):
    """The files of a function: an index, and one file for each compiled form.

    Attributes:
        name: the function's name.
        stamp: a digest of its sources.
    """

    _form = ""

    def __init__(self, folder, base, stamp, name):
        super().__init__(folder, base, stamp)
        self._name = name

    def save(self, key, data):
        """Keep a compiled form.

        Args:
            key: its signature, processor and code.
        """
        self._form = f"{self._name} {self._source_stamp} {key}"
        super().save(key, data)

    def load(self, key):
        """A compiled form; None if there is none."""
        self._form = f"{self._name} {self._source_stamp} {key}"
        return super().load(key)

    def _load_index(self):
        try:
            data = read_sealed(Path(self._index_path), INDEX, self._name)
        except FileNotFoundError:
            return {}
        version, stamp, overloads = pickle.loads(data)
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads):
        data = self._dump((self._version, self._source_stamp, overloads))
        with self._open_for_write(self._index_path) as stream:
            stream.write(sealed(INDEX, self._name, data))

    def _load_data(self, name):
        return pickle.loads(read_sealed(Path(self._data_path(name)), CODE, self._form))

    def _save_data(self, name, data):
        with self._open_for_write(self._data_path(name)) as stream:
            stream.write(sealed(CODE, self._form, self._dump(data)))


class FolderCache(FunctionCache):
    """A function's compiled forms in files, valid while its folder's sources are unchanged."""

    def __init__(self, function):
        super().__init__(function)
        self._folder = folder = Path(function.__code__.co_filename).parent
        own = cast(Any, self)
        problem = intrusion(Path(self.cache_path))
        if problem:
            private = str(private_folder(sha256(str(folder).encode()).hexdigest()[:16]))
            _say(f"{problem}, so compiled kernels there are ignored; {private} is used instead")
            own._cache_path = private
        name = f"{function.__module__}.{function.__qualname__}"
        # Files in numba's own format have other names.
        base = f"{own._impl.filename_base}.sealed"
        own._cache_file = SealedFiles(own._cache_path, base, folder_stamp(folder), name)

    def load_overload(self, sig, target_context):
        """The compiled form for a signature; None if there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # Unpickling damaged bytes may raise anything.
            _warn(f"{self.cache_path}: compiled kernels cannot be read ({_reason(error)})")
        try:
            # An index that cannot be read cannot be extended either.
            self.flush()
        except OSError:
            self.disable()
        return None

    def save_overload(self, sig, data):
        """Cache a compiled form, if possible, and if the sources have not changed since it was
        compiled.
        """
        if has_changed(self._folder):
            return
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(f"{self.cache_path}: compiled kernels cannot be kept ({_reason(error)})")
            self.disable()


def compiled(*signature, **options):
    """Numba's decorator `njit`, for functions that are cached where that is possible.

    With signatures, the function is compiled at once; without, when it is first called.
    """

    def decorate(function):
        if cast(Any, config).DISABLE_JIT:
            return function
        dispatcher = cast(Any, numba.njit(**options)(function))
        dispatcher._cache = _cache_of(function)
        for each in signature:
            dispatcher.compile(each)
        if signature:
            dispatcher.disable_compile()
        return dispatcher

    return decorate


def _cache_of(function):
    """The cache of a function's compiled forms; without files if no folder can be written."""
    try:
        return FolderCache(function)
    except PermissionError as error:
        _warn(f"{error.filename}: compiled kernels cannot be kept ({error.strerror})")
        return NullCache()
    except (RuntimeError, OSError):
        place = os.environ.get(VARIABLE) or Path(function.__code__.co_filename).parent
        _warn(f"{place}: compiled kernels cannot be kept (no folder can be written to)")
        return NullCache()


def _reason(error):
    """An error's message, in few words."""
    if isinstance(error, Broken):
        return "damaged"
    return getattr(error, "strerror", None) or type(error).__name__


warnings: list[str] = []
"""The reasons why compiled functions were not cached."""


def _warn(problem):
    """Warn that functions are compiled without a cache."""
    mend = f"set {VARIABLE} to a folder that only you can write to"
    _say(f"{problem}; they are compiled now; {mend}")


def _say(problem):
    """Print a warning, once per process: there are many functions, and all fail for the same
    reason.
    """
    if not warnings:
        print(f"warning: {problem}", file=sys.stderr, flush=True)
    warnings.append(problem)
