"""Kernels as machine code in files, which is loaded without numba.

Numba is needed to compile kernels, and takes longer to import than they take to load. So the code
of a task's kernels is kept once more, in one file for each task, as object code with the names and
numbers that their callers use. LLVM alone (llvmlite) loads it.

A file's name says what its code depends on: sources, versions, the host's processor, and numba's
settings. So another host, or another version, looks for another file. The file is sealed for all of
this and for its task, so one that was damaged, or put in the place of another, is not loaded. A
folder that others can write to is ignored, because loading code is running it. Whatever is wrong
with a file, numba's kernels are used instead, and the file is written again.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from ...ir.cache_folder import cache_folder
from ...ir.private_folder import intrusion
from ...ir.sealed_file import read_sealed, write_sealed
from .kernel_sources import KERNELS, folder_stamp, has_changed

ENDING = ".code"
"""How the name of a file ends."""

MOST_VERSIONS = 8
"""Files that are kept of one task."""

KIND = "kernels 2"
"""What a file is sealed as."""

SETTINGS_FILE = ".numba_config.yaml"
"""A file of settings that numba reads in the working directory."""

FOLDER_SETTING = "NUMBA_CACHE_DIR"
"""Numba's environment variable for the folder of kernels, which changes no code."""

CALLED = "called."
"""How the names of functions begin that Python calls."""

RETURNED = "int64", "none"
"""What kernels may return, as numba calls it."""


class Kernels:
    """The kernels of a task: what its module defines for callers, from a file.

    Constants are attributes; so are addresses of code, and functions that Python calls.
    """

    def __init__(self, constants: Mapping[str, object], engine: object) -> None:
        self.__dict__.update(constants)
        self._engine = engine


def saved_kernels(task: str) -> Kernels | None:
    """The kernels of a task from their file; None if there is none that is good."""
    try:
        path = _path(task)
        if path is None or not path.is_file() or intrusion(path.parent, f"*{ENDING}"):
            return None
        return _loaded(read_sealed(path, KIND, _key(task)))
    # A file may be damaged in any way, and llvmlite may be missing or of another version.
    except Exception:
        return None


def save_kernels(task: str, module: Any) -> None:
    """Keep the kernels of a task in their file, if they can be kept.

    module: the task's module, whose kernels numba has compiled.
    """
    with suppress(Exception):
        path = _path(task)
        if path is None or has_changed(KERNELS):
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if intrusion(path.parent, f"*{ENDING}"):
            return
        data = _dumped(module)
        # It must load before others rely on it.
        _ = _loaded(data)
        write_sealed(path, KIND, _key(task), data)
        _remove_old(path.parent.glob(f"{task}-*{ENDING}"))


def _remove_old(paths: Iterable[Path]) -> None:
    """Remove all files but the newest ones, which may be of other checkouts and versions."""
    ages: dict[Path, float] = {}
    for path in paths:
        # Another process may have removed it.
        with suppress(OSError):
            ages[path] = path.stat().st_mtime
    for path in sorted(ages, key=lambda each: -ages[each])[MOST_VERSIONS:]:
        path.unlink(missing_ok=True)


def _path(task: str) -> Path | None:
    """The file of a task's kernels; None if numba has settings that are not looked into here."""
    if os.path.exists(SETTINGS_FILE):
        return None
    given = os.environ.get(FOLDER_SETTING)
    folder = Path(given) / "abele" if given else cache_folder() / "kernels" / "code"
    return folder.absolute() / f"{task}-{kernel_stamp()[:32]}{ENDING}"


def _key(task: str) -> str:
    """What a file of a task is sealed for."""
    return f"{task} {kernel_stamp()}"


@cache
def kernel_stamp() -> str:
    """A digest of all that the code of kernels depends on."""
    binding = _binding()
    settings = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith("NUMBA_") and name != FOLDER_SETTING
    }
    parts = (
        KIND,
        folder_stamp(KERNELS),
        {name: version(name) for name in ("numba", "llvmlite")},
        binding.get_process_triple(),
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
        settings,
    )
    return sha256(json.dumps(parts).encode()).hexdigest()


@cache
def _binding() -> Any:
    """LLVM, ready to load code for this host."""
    binding = cast(Any, import_module("llvmlite.binding"))
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


# Files


def _loaded(data: bytes | memoryview) -> Kernels:
    """The kernels in a file's contents."""
    size = int.from_bytes(data[:8], "little")
    head = json.loads(bytes(data[8 : 8 + size]))
    engine = _linked(bytes(data[8 + size :]))
    where = {name: engine.get_function_address(symbol) for name, symbol in head["symbols"].items()}
    if not all(where.values()):
        raise ValueError("a kernel without code")
    constants = {name: _value(each, where) for name, each in head["constants"].items()}
    functions = {
        name: _callable(engine.get_function_address(CALLED + name), count)
        for name, count in head["functions"].items()
    }
    return Kernels({**constants, **functions}, engine)


def _linked(code: bytes) -> Any:
    """An engine of LLVM that has loaded object code."""
    binding = _binding()
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def _value(kept: Any, where: Mapping[str, int]) -> object:
    """A constant of a module. A kernel's name stands for the address of its code."""
    if isinstance(kept, str):
        return where[kept]
    if isinstance(kept, list):
        return tuple(_value(each, where) for each in cast("list[object]", kept))
    return kept


def _callable(code: int, count: int) -> Callable[..., int]:
    """A function for Python that takes so many integers. It runs without Python's lock."""
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)(code)


def _dumped(module: Any) -> bytes:
    """The contents of a file of a module's kernels. Raises an error of some kind if one needs numba
    to run."""
    members = cast("dict[str, Any]", vars(module))
    own = {
        name: each
        for name, each in members.items()
        if hasattr(each, "overloads") and each.py_func.__module__ == module.__name__
    }
    symbols: dict[str, str] = {}
    codes: dict[int, str] = {}
    functions: dict[str, int] = {}
    libraries: dict[str, Any] = {}
    for name, kernel in own.items():
        (overload,) = kernel.overloads.values()
        symbols[name] = overload.fndesc.llvm_func_name
        codes[overload.library.get_pointer_to_function(symbols[name])] = name
        arguments = tuple(map(str, overload.signature.args))
        if {*arguments} - {"int64"} or str(overload.signature.return_type) not in RETURNED:
            raise ValueError(f"{name} takes or returns more than integers")
        if not name.startswith("_"):
            functions[name] = len(arguments)
        libraries[symbols[name]] = overload.library
    constants = {
        name: _kept(value, codes)
        for name, value in members.items()
        if name.isupper() and _is_constant(value)
    }
    head = {"symbols": symbols, "constants": constants, "functions": functions}
    text = json.dumps(head).encode()
    calls = "".join(_call(name, symbols[name], count) for name, count in functions.items())
    code = _object_code(libraries, calls)
    return len(text).to_bytes(8, "little") + text + code


def _is_constant(value: object) -> bool:
    """Whether a value consists of integers."""
    if isinstance(value, tuple):
        return all(map(_is_constant, cast("tuple[object, ...]", value)))
    if isinstance(value, dict):
        return all(type(each) is int for each in cast("dict[object, object]", value).values())
    return type(value) is int


def _kept(value: Any, codes: Mapping[int, str]) -> object:
    """What a file has for a constant. An address becomes the name of the kernel whose code is
    there."""
    if isinstance(value, tuple):
        return [_kept(each, codes) for each in cast("tuple[object, ...]", value)]
    return codes.get(value, value) if isinstance(value, int) else value


def _call(name: str, symbol: str, count: int) -> str:
    """A function in LLVM's language that calls a kernel as numba does.

    A kernel gets two addresses before its arguments: of its result, and of what it raises.
    """
    given = ", ".join(f"i64 %a{i}" for i in range(count))
    kinds = ", ".join(["ptr", "ptr", *["i64"] * count])
    return f"""
declare i32 @"{symbol}"({kinds})
define i64 @"{CALLED}{name}"({given}) {{
  %result = alloca i64
  %raised = alloca ptr
  store i64 0, ptr %result
  %status = call i32 @"{symbol}"({", ".join(filter(None, ["ptr %result, ptr %raised", given]))})
  %found = load i64, ptr %result
  ret i64 %found
}}
"""


def _object_code(libraries: Mapping[str, Any], calls: str) -> bytes:
    """The object code of some functions, each from its library of numba's, and of what they call.

    calls: functions in LLVM's language that call them.

    The functions by which Python calls numba's are left out: only they need numba.
    """
    binding = _binding()
    modules: list[Any] = []
    for name, library in libraries.items():
        module = binding.parse_bitcode(library._get_module_for_linking().as_bitcode())
        module.get_function(name).linkage = "external"
        modules.append(module)
    whole, *others = modules
    for each in (*others, binding.parse_assembly(calls)):
        whole.link_in(each)
    for function in whole.functions:
        is_ours = function.name in libraries or function.name.startswith(CALLED)
        if not function.is_declaration and not is_ours:
            function.linkage = "internal"
    machine = next(iter(libraries.values()))._codegen._tm
    manager = binding.create_new_module_pass_manager()
    manager.add_global_dead_code_eliminate_pass()
    manager.add_strip_dead_prototype_pass()
    options = binding.create_pipeline_tuning_options()
    manager.run(whole, binding.create_pass_builder(machine, options))
    missing = [f.name for f in whole.functions if f.is_declaration and "llvm." not in f.name]
    if missing:
        raise ValueError(f"needs {missing}")
    return machine.emit_object(whole)
