"""Kernels as machine code in files, which is loaded without numba.

Numba is needed to compile kernels, and takes longer to import than they take to load. So only the
process that compiles the kernels of a task imports it (see load). That process keeps their code in
a file: object code with the names and numbers that callers use. LLVM (llvmlite) loads it without
numba.

A file's name contains a digest of everything that its code depends on: sources, versions, the form
of the kernels, and the processor. So other forms, hosts and versions have other files beside it.
The file is sealed for this key and its task, so a file that is damaged, or in the place of another,
is not loaded. A folder that others can write to is ignored, because loading code is running it.
Whatever is wrong with a file, the kernels are compiled again.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from time import monotonic, sleep
from typing import Any, cast

from numpy import __version__ as numpy_version

from ...ir.support.cache_folder import cache_folder
from ...ir.support.private_folder import intrusion
from ...ir.support.sealed_file import Broken, read_sealed, write_sealed
from .kernel_sources import BATTERIES, KERNELS, folder_stamp
from .processor import llvm
from .switch import Choice, choice

ENDING, UNPROVED, PROOF = ".code", ".unproved", ".proof"
"""The ends of file names: of code that has passed its battery, of code that has not been tried yet,
and of the battery's result (see proofs).
"""

MOST_VERSIONS = 8
"""The most files that are kept of one task in one form."""

FILES = "*-*.*"
"""The files of all tasks."""

LOCK_SECONDS = 600.0
"""How long a process waits for another one that compiles the same kernels."""

FILE_KIND = "kernels 2"
"""The kind under which files are sealed."""

FOLDER_SETTING = "NUMBA_CACHE_DIR"
"""Numba's environment variable for its cache folder, in which kernels are kept as well."""

CALLED = "called."
"""The prefix of the names of functions that Python calls."""

RETURNED = "int64", "none"
"""The types that kernels may return, as numba calls them."""


class Kernels:
    """The kernels of a task, from a file: the definitions of its module that callers use.

    Constants are attributes; so are addresses of code, and functions that Python calls.

    Attributes:
        codes: all addresses of code.
    """

    def __init__(
        self, constants: Mapping[str, object], codes: frozenset[int], engine: object
    ) -> None:
        self.__dict__.update(constants)
        self.codes = codes
        self._engine = engine


def saved_kernels(task: str) -> Kernels | None:
    """The kernels of a task from their file; None if there is no valid file."""
    try:
        code = saved(task)
        return None if code is None else loaded_code(code)
    # llvmlite may be missing, or of another version.
    except Exception:
        return None


def saved(task: str, ending: str = ENDING) -> bytes | None:
    """The contents of a file of a task; None if there is no valid file."""
    return _read(task, ending, path_of(task, ending))


def _read(task: str, ending: str, path: Path) -> bytes | None:
    try:
        if not path.is_file() or intrusion(path.parent, FILES):
            return None
        return bytes(read_sealed(path, FILE_KIND, _key(task, ending)))
    except (OSError, Broken):
        return None


def save(task: str, data: bytes, ending: str = ENDING) -> str:
    """Keep a file of a task. Returns the reason if it cannot be kept, else ""."""
    path = path_of(task, ending)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        problem = intrusion(path.parent, FILES)
        if problem:
            return problem
        write_sealed(path, FILE_KIND, _key(task, ending), data)
        _remove_old(path.parent.glob(f"{task}-{choice().name}-*{ending}"))
    except OSError as error:
        return f"{path.parent}: {error.strerror}"
    return ""


def remove(task: str, ending: str) -> None:
    """Remove a file of a task, if it is there."""
    with suppress(OSError):
        path_of(task, ending).unlink()


@contextmanager
def locked(task: str) -> Generator[None]:
    """Alone with a task, of all processes that compile its kernels in this form into one folder.

    The system drops the lock of a process that ends. After LOCK_SECONDS, the other one may hang,
    and this one goes on without the lock. So it does where there is no folder for it.
    """
    path = path_of(task).with_name(f"{task}-{choice().name}.lock")
    with ExitStack() as stack:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(path, flags, 0o600)
            stack.callback(os.close, descriptor)
            end = monotonic() + LOCK_SECONDS
            while monotonic() < end:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    sleep(0.05)
        yield


def _remove_old(paths: Iterable[Path]) -> None:
    """Remove all files but the newest ones. They may be of other checkouts and versions."""
    times: dict[Path, float] = {}
    for path in paths:
        # Another process may have removed it.
        with suppress(FileNotFoundError):
            times[path] = path.stat().st_mtime
    for path in sorted(times, key=lambda each: -times[each])[MOST_VERSIONS:]:
        path.unlink(missing_ok=True)


@cache
def _proof_stamp() -> str:
    """A digest of everything that proofs depend on, except the code."""
    return sha256(f"{folder_stamp(BATTERIES)} {numpy_version}".encode()).hexdigest()


def path_of(task: str, ending: str = ENDING) -> Path:
    """The path of a file of a task in the current form."""
    given = os.environ.get(FOLDER_SETTING)
    folder = Path(given) / "abele" if given else cache_folder() / "kernels" / "code"
    name = f"{task}-{choice().name}-{kernel_stamp()[:32]}"
    proof = "" if ending == UNPROVED else f"-{_proof_stamp()[:8]}"
    return folder.absolute() / f"{name}{proof}{ending}"


def proved_otherwise(task: str) -> bytes | None:
    """The code of a task that another battery, or another NumPy version, has proved; or None."""
    path = path_of(task, UNPROVED)
    found = (_read(task, ENDING, each) for each in path.parent.glob(f"{path.stem}-*{ENDING}"))
    return next((code for code in found if code is not None), None)


def _key(task: str, ending: str) -> str:
    """The key for which a file of a task is sealed."""
    proof = _proof_stamp() if ending == PROOF else ""
    return f"{task}{ending} {kernel_stamp()} {proof}"


def kernel_stamp() -> str:
    """A digest of everything that the code of kernels depends on, in the current form."""
    return _stamp(choice())


@cache
def _stamp(chosen: Choice) -> str:
    assert chosen.form is not None
    assert chosen.processor is not None
    parts = (
        FILE_KIND,
        folder_stamp(KERNELS),
        {name: version(name) for name in ("numba", "llvmlite")},
        llvm().get_process_triple(),
        asdict(chosen.processor),
        asdict(chosen.form),
    )
    return sha256(json.dumps(parts).encode()).hexdigest()


# Files


def loaded_code(code: bytes) -> Kernels:
    """The kernels in machine code made by `code_of`."""
    size = int.from_bytes(code[:8], "little")
    head = json.loads(code[8 : 8 + size])
    engine = _linked(code[8 + size :])
    where = {name: engine.get_function_address(symbol) for name, symbol in head["symbols"].items()}
    if not all(where.values()):
        raise ValueError("a kernel without code")
    constants = {name: _value(each, where) for name, each in head["constants"].items()}
    functions = {
        name: _callable(engine.get_function_address(CALLED + name), count)
        for name, count in head["functions"].items()
    }
    return Kernels({**constants, **functions}, frozenset(where.values()), engine)


def _linked(code: bytes) -> Any:
    """An LLVM engine that has loaded object code."""
    binding = llvm()
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
    """A Python function that takes `count` integers. It runs without Python's lock."""
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)(code)


def code_of(module: Any) -> bytes:
    """The machine code of a task's kernels, with the definitions that callers need.

    Raises some error if a kernel needs numba to run.

    Args:
        module: the task's module, which numba has compiled.
    """
    members = cast("dict[str, Any]", vars(module))
    own, codes = _own_kernels(module), _codes_of(module)
    symbols: dict[str, str] = {}
    functions: dict[str, int] = {}
    libraries: dict[str, Any] = {}
    for name, kernel in own.items():
        (overload,) = kernel.overloads.values()
        symbols[name] = overload.fndesc.llvm_func_name
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


def _own_kernels(module: Any) -> dict[str, Any]:
    """The kernels that a module defines, by name, as compiled by numba."""
    return {
        name: each
        for name, each in cast("dict[str, Any]", vars(module)).items()
        if hasattr(each, "overloads") and each.py_func.__module__ == module.__name__
    }


def _codes_of(module: Any) -> dict[int, str]:
    """The names of a module's kernels, by the address of their code."""
    found: dict[int, str] = {}
    for name, kernel in _own_kernels(module).items():
        (overload,) = kernel.overloads.values()
        found[overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name)] = name
    return found


def _is_constant(value: object) -> bool:
    """Whether a value consists of integers."""
    if isinstance(value, tuple):
        return all(map(_is_constant, cast("tuple[object, ...]", value)))
    if isinstance(value, dict):
        return all(type(each) is int for each in cast("dict[object, object]", value).values())
    return type(value) is int


def _kept(value: Any, codes: Mapping[int, str]) -> object:
    """The form of a constant in a file. An address becomes the name of the kernel at that
    address."""
    if isinstance(value, tuple):
        return [_kept(each, codes) for each in cast("tuple[object, ...]", value)]
    return codes.get(value, value) if isinstance(value, int) else value


def _call(name: str, symbol: str, count: int) -> str:
    """A function in LLVM's language that calls a kernel with numba's calling convention.

    A kernel gets two addresses before its arguments: of its result, and of its exception.
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
    """The object code of some functions, each from its numba library, and of the functions they
    call.

    The wrappers by which Python calls numba's functions are left out, because only they need numba.

    Args:
        calls: functions in LLVM's language that call them.
    """
    binding = llvm()
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
