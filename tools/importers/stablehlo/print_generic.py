"""Prints a file of StableHLO in MLIR's generic form: python -P print_generic.py FILE SECONDS.

A process of its own runs this script, because damaged bytecode may abort the process that reads it,
or keep it busy without end. The system ends it after SECONDS of processor time. It imports nothing
of abele, and needs jaxlib. FILE is "" for the standard input.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

BYTECODE = b"ML\xefR"
"""How MLIR's bytecode begins."""

LENGTH_BYTES = 4
"""The bytes of the number before a list of bytes in a FlatBuffer, which is its length."""

NO_JAXLIB = 3
"""The exit code if jaxlib is not installed."""

UNREADABLE = 4
"""The exit code if jaxlib cannot read the file. The reason is on the standard error."""


def limit(seconds: int) -> None:
    """Let the system end this process after so many seconds of processor time, where it can."""
    with suppress(ImportError):
        resource: Any = import_module("resource")
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, hard))


def bytecode_of(data: bytes) -> bytes:
    """The bytecode of a file, or of the FlatBuffer of jax.export; b"" if there is none."""
    start = data.find(BYTECODE)
    if start <= 0:
        return data if start == 0 else b""
    size = int.from_bytes(data[max(start - LENGTH_BYTES, 0) : start], "little")
    return data[start : start + size]


def new_context() -> Any:
    """A context of jaxlib that reads StableHLO, and all operations that it does not know."""
    ir: Any = import_module("jaxlib.mlir.ir")
    registry = ir.DialectRegistry()
    import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    for name in ("stablehlo", "chlo", "sdy"):
        import_module(f"jaxlib.mlir.dialects.{name}").register_dialect(context)
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    return context


def generic(data: bytes, file: str) -> str:
    """The generic form of a text or of bytecode, with locations. Raises ImportError, and whatever
    jaxlib raises.

    Args:
        file: the path of a text, for the locations of operations that have none; "" if there is
            none.
    """
    ir: Any = import_module("jaxlib.mlir.ir")
    context = new_context()
    with context, ir.Location.unknown():
        if bytecode := bytecode_of(data):
            stablehlo: Any = import_module("jaxlib.mlir.dialects.stablehlo")
            module = stablehlo.deserialize_portable_artifact(context, bytecode)
        elif file:
            module = ir.Module.parseFile(file)
        else:
            module = ir.Module.parse(data.decode())
        return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)


def main(file: str) -> int:
    """Print the generic form of a file, and return an exit code."""
    try:
        data = Path(file).read_bytes() if file else sys.stdin.buffer.read()
        sys.stdout.buffer.write(generic(data, file).encode())
    except ImportError as error:
        print(error, file=sys.stderr)
        return NO_JAXLIB
    except Exception as error:
        print(error, file=sys.stderr)
        return UNREADABLE
    return 0


if __name__ == "__main__":
    limit(int(sys.argv[2]))
    sys.exit(main(sys.argv[1]))
