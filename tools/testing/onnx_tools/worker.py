"""The process in which a tool runs. It serves one model after another.

This file is run as a script, or forked for a Python function that has no name to import. As a
script it needs no abele, so the tool may be installed in another environment. Requests and answers
are lines of JSON. Models and arrays are files in ONNX's own formats, in the private folder in which
the process works. So nothing that the tool writes is executed by the process that started it.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import resource
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx import numpy_helper

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

CHANGES: dict[str, tuple[int, ...]] = {
    "os.rename": (0, 1),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.mkdir": (0,),
    "os.symlink": (1,),
    "os.link": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
}
"""Python's audit events that change files, with the positions of the arguments that are paths."""

DEVICES = ("/dev", "/proc")
"""Folders of devices, where writing leaves nothing."""

LONGEST_TEXT = 4000
"""The longest text of an error, in characters."""


@dataclass(frozen=True)
class Limits:
    """What a tool may use.

    Attributes:
        seconds: processor seconds for one model.
        memory: bytes of address space, besides what the process has when it starts.
        printed: bytes printed for one model.
        written: bytes of each file that it writes.
    """

    seconds: float = 20.0
    memory: int = 4 << 30
    printed: int = 16 << 20
    written: int = 1 << 30


def serve(tool: Any, folder: Path, asked: int, answered: int, printed: int, limits: Limits) -> None:
    """Answer requests until there are no more. Never returns normally into the caller's program.

    Args:
        tool: an adapter: a module, or an object with the same functions.
        folder: the only folder in which files may be written.
        asked, answered: file descriptors of requests and answers.
        printed: the file descriptor that gets all that the tool prints.
    """
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    escapes = confine(folder, limits)
    with os.fdopen(asked, "r", encoding="utf-8") as requests:
        for line in requests:
            request = json.loads(line)
            _limit_time(limits.seconds)
            try:
                answer = _answer(tool, request, folder)
            # A tool may raise anything, also SystemExit.
            except BaseException as error:
                answer = _failure(error)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            answer["escapes"] = list(dict.fromkeys(escapes))
            escapes.clear()
            os.write(answered, json.dumps(answer).encode() + b"\n")


def _answer(tool: Any, request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The answer to a request, as JSON. Its arrays and models are files in the folder."""
    do, option = request["do"], request["option"]
    if do == "hello":
        by_option = getattr(tool, "version_of", None)
        version = tool.version() if by_option is None else by_option(option)
        return {"version": version, "kind": _kind(tool, option)}
    model = onnx.ModelProto.FromString((folder / "model.onnx").read_bytes())
    if do == "parts":
        return {"parts": list(tool.parts(model, option))}
    if do == "transform":
        found = tool.transform(model, option, request["without"])
        if not isinstance(found, onnx.ModelProto):
            raise TypeError(f"the tool returned {type(found).__name__}; need onnx.ModelProto")
        (folder / "result.onnx").write_bytes(found.SerializeToString())
        return {}
    inputs = dict(_arrays(folder / "inputs", request["inputs"]))
    return {"outputs": write_arrays(folder, tool.run(model, inputs, option, request["without"]))}


def _kind(tool: Any, option: str) -> str:
    """Whether a tool runs models or transforms them. A function's own parameters decide."""
    function = getattr(tool, "function", None)
    if function is not None:
        return kind_of(function(option))
    return "transform" if hasattr(tool, "transform") else "run"


def kind_of(function: Callable[..., object]) -> str:
    """Whether a function transforms a model, or runs one because it takes its inputs too."""
    code = getattr(function, "__code__", None)
    if code is None:
        return "transform"
    own = code.co_argcount - (1 if hasattr(function, "__self__") else 0)
    return "run" if own - len(getattr(function, "__defaults__", None) or ()) >= 2 else "transform"


def _arrays(folder: Path, names: Sequence[str]) -> list[tuple[str, Any]]:
    files = [(folder / f"{i}.pb").read_bytes() for i in range(len(names))]
    tensors = [numpy_helper.to_array(onnx.TensorProto.FromString(each)) for each in files]
    return list(zip(names, tensors, strict=True))


def write_arrays(folder: Path, found: object) -> list[str]:
    """Write the outputs of a tool as 0.pb and so on, and return their names. Raises TypeError."""
    if not isinstance(found, dict):
        raise TypeError(f"the tool returned {type(found).__name__}; need a dict of arrays")
    place = folder / "outputs"
    place.mkdir(exist_ok=True)
    outputs = cast("dict[str, object]", found)
    for i, (name, value) in enumerate(outputs.items()):
        array = np.asarray(value)
        if array.dtype == object:
            raise TypeError(f"output {name!r} is no array: {type(value).__name__}")
        tensor = numpy_helper.from_array(array, name)
        (place / f"{i}.pb").write_bytes(tensor.SerializeToString())
    return list(outputs)


def _failure(error: BaseException) -> dict[str, Any]:
    """An error as JSON: its type, its text and its last stack frames."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return {
        "error": type(error).__name__,
        "text": str(error)[:LONGEST_TEXT],
        "trace": "".join(lines)[-LONGEST_TEXT:],
        "memory": isinstance(error, MemoryError) or "bad_alloc" in str(error),
    }


# Limits


def confine(folder: Path, limits: Limits) -> list[str]:
    """Limit this process from now on. Returns a list that gets the writes outside of the folder.

    The kernel forbids writes outside where it can (Linux, Landlock). Elsewhere, only writes by
    Python code are seen, and they are noted and not prevented.
    """
    os.chdir(folder)
    if sys.platform == "linux":
        # Processes that the tool leaves behind become children of this one, and end with it.
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.environ.update(HOME=str(folder), TMPDIR=str(folder), XDG_CACHE_HOME=str(folder))
    sys.dont_write_bytecode = True
    own = _pages() * resource.getpagesize()
    _limit(resource.RLIMIT_AS, own + limits.memory)
    _limit(resource.RLIMIT_FSIZE, limits.written)
    _limit(resource.RLIMIT_CORE, 0)
    escapes: list[str] = []
    inside = (os.path.realpath(folder), *DEVICES)

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITING:
                note(path)
        elif event in CHANGES:
            for place in CHANGES[event]:
                note(arguments[place])

    def note(path: object) -> None:
        if not isinstance(path, str | bytes):
            return
        # realpath raises no event that look would see.
        real = os.path.realpath(os.fsdecode(path))
        if not any(real == each or real.startswith(each + os.sep) for each in inside):
            escapes.append(real)

    sys.addaudithook(look)
    _forbid_writes_outside(inside)
    return escapes


def _pages() -> int:
    """The pages of address space that this process has; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0


def _limit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (limit, hard))


def _limit_time(seconds: float) -> None:
    """End this process by SIGXCPU after so many further processor seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds))


# Numbers of Landlock. Source: Linux, include/uapi/linux/landlock.h and arch syscall tables.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGES = sum(1 << bit for bit in range(4, 13))
"""Removing and making files and folders of each kind."""
_REFER = 1 << 13
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_CHILD_SUBREAPER = 36


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def _forbid_writes_outside(folders: Sequence[str]) -> bool:
    """Let the kernel forbid writes outside of some folders. Returns False where it cannot."""
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    version = library.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    handled = _WRITE_FILE | _CHANGES
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    attribute = ctypes.c_uint64(handled)
    rules = library.syscall(
        _CREATE_RULESET, ctypes.byref(attribute), ctypes.c_size_t(ctypes.sizeof(attribute)), 0
    )
    if rules < 0:
        return False
    for each in folders:
        place = os.open(each, os.O_PATH | os.O_CLOEXEC)
        rule = _PathBeneath(handled, place)
        library.syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(rule), 0)
        os.close(place)
    allowed = library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
    done = allowed and library.syscall(_RESTRICT_SELF, rules, 0) == 0
    os.close(rules)
    return done


def _loaded(path: str) -> Any:
    """The module of a file."""
    spec = spec_from_file_location("adapter", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Serve the adapter that the arguments name."""
    settings = json.loads(sys.argv[1])
    # The folder of this file would hide packages of the same names as files in it.
    sys.path[0] = settings["path"]
    tool = _loaded(settings["adapter"])
    descriptors = (settings["asked"], settings["answered"], settings["printed"])
    serve(tool, Path(settings["folder"]), *descriptors, Limits(**settings["limits"]))


if __name__ == "__main__":
    main()
