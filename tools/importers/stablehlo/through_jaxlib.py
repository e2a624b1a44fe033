"""Lets jaxlib print StableHLO in the generic form, which abele reads itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from ....ir.support.errors import InputError
from ..errors import UnsupportedError
from .print_generic import NO_JAXLIB, UNREADABLE

COMMAND = (
    'python -c "from jax.interpreters import mlir; from jax.extend.mlir.dialects import stablehlo; '
    "stablehlo.deserialize_portable_artifact(mlir.make_ir_context(), open('{file}', 'rb').read())"
    '.operation.print(print_generic_op_form=True, enable_debug_info=True)" > generic.mlir'
)
"""The command that prints the generic form of a file where JAX is installed."""

INSTALL = "pip install 'abele[jax]'"

SECONDS = 8
"""The seconds of processor time that jaxlib has for any file."""

BYTES_A_SECOND = 1 << 20
"""The bytes of a file for which jaxlib has one second more. It reads some twenty times as fast."""

PATIENCE = 4
"""How many times as long it may take on a busy host."""

OUT_OF_TIME = -24
"""The end of a process that has used up its processor time: SIGXCPU."""

MOST_REASON = 2000
"""The most characters of jaxlib's own reason in a message."""

_WARNING = re.compile(r"^(?:[IW]\d{4} |WARNING)", re.MULTILINE)


def by_jaxlib(data: bytes, place: str, form: str, file: Path | None) -> str:
    """The generic text of a module in a form that MLIR alone reads, with its locations.

    Raises UnsupportedError if jaxlib is not installed, and InputError for what it cannot read.

    Args:
        place, form: the model's name and form in messages.
        file: the file that has the data; None if none has.
    """
    command = COMMAND.format(file=file or "FILE")
    lacking = UnsupportedError(
        f"{place}: {form}, which abele reads through jaxlib, and jaxlib is not installed: "
        f"{INSTALL}; or print the generic form where JAX is installed: {command}"
    )
    if find_spec("jaxlib") is None:
        raise lacking
    seconds = SECONDS + len(data) // BYTES_A_SECOND
    slow = InputError(f"{place}: jaxlib takes longer than {seconds} s for it; it may be damaged")
    try:
        found = print_generic(data, file, seconds)
    except subprocess.TimeoutExpired:
        raise slow from None
    if found.returncode == OUT_OF_TIME:
        raise slow
    if found.returncode == NO_JAXLIB:
        raise lacking
    if found.returncode == UNREADABLE:
        raise InputError(f"{place}: jaxlib cannot read it: {_reason(found.stderr)}")
    if found.returncode:
        raise InputError(f"{place}: jaxlib ends with code {found.returncode}; it may be damaged")
    return found.stdout.decode("utf-8", "replace")


def in_own_process(
    data: bytes, file: Path | None, seconds: int
) -> subprocess.CompletedProcess[bytes]:
    """What a new process prints and ends with. Raises TimeoutExpired.

    Args:
        seconds: of processor time.
    """
    script = Path(__file__).with_name("print_generic.py")
    # -P and absolute paths alone: nothing is imported from the current folder.
    paths = os.pathsep.join(path for path in sys.path if os.path.isabs(path))
    return subprocess.run(
        [sys.executable, "-P", str(script), "" if file is None else str(file), str(seconds)],
        input=data if file is None else None,
        stdin=None if file is None else subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE * seconds,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )


print_generic = in_own_process
"""What prints the generic form. Tests replace it where a new process for each file takes too
long."""


def _reason(stderr: bytes) -> str:
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines()]
    return "; ".join(line for line in lines if line and not _WARNING.match(line))[:MOST_REASON]
