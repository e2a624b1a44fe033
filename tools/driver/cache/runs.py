"""A program of the cache that is ready to run: its file, beside the program's.

Each host, and each form of kernels, has a file of its own, since a home may be shared. The file is
sealed for the program and the kernels, so one in the place of another is not used.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....backends.executable import ProgramFile
from ....backends.host.machine_code import kernel_stamp
from ....backends.host.read_bound_program import BoundProgram, Damaged
from ....backends.host.switch import is_wanted
from ....backends.tile_rows import row_bytes
from ....ir.support.errors import InputError
from ....ir.support.sealed_file import Broken, read_sealed, write_sealed
from ..arrays import Tensor
from ..signature import Signature
from .store import Store

if TYPE_CHECKING:
    from ....backends.machine import Machine
    from ....ir.upstream import ModuleOp


KIND = "run 2"
"""What a file is sealed as."""

HOST_DIGITS = 16
"""Digits of a host, with its kernels, in the name of a file."""

MOST_HOSTS = 8
"""Files that are kept of a program."""


@dataclass(frozen=True)
class RunFile:
    """The file that keeps a program ready to run on this host.

    Attributes:
        digest: of the program.
        program: from the cache, if it was there.
    """

    store: Store
    key: str
    digest: str
    program: ProgramFile | None = None

    @property
    def path(self) -> Path:
        """The path of the file. There are kernels."""
        return self.store.run(self.key, kernel_stamp()[:HOST_DIGITS])

    @property
    def seal(self) -> str:
        """What the file is sealed for."""
        return f"{self.digest} {kernel_stamp()}"

    @property
    def exists(self) -> bool:
        """Whether the file is there, and may be used."""
        return self.program is not None and is_wanted() and self.path.is_file()

    @property
    def signature(self) -> Signature:
        """The inputs and outputs of the program, if it is ready to run."""
        assert self.program is not None
        inputs, outputs = (
            tuple(
                Tensor(
                    each.name,
                    each.shape,
                    np.dtype(each.dtype),
                    texts=each.texts,
                    columns=each.columns,
                )
                for each in tensors
            )
            for tensors in (self.program.inputs, self.program.outputs)
        )
        return Signature(inputs, outputs)

    def load(self) -> BoundProgram | None:
        """The program, ready to run; None if it must be bound. A damaged file is removed."""
        if self.program is None or not self.exists:
            return None
        target = self.program.target
        try:
            blobs = {blob.digest: blob.stored for blob in self.program.blobs}
            data = read_sealed(self.path, KIND, self.seal)
            found = BoundProgram(data, blobs, target.tiles, row_bytes(target.bytes_per_tile))
            # What was copied meanwhile counts only now.
            self.program.check()
            return found
        except (Broken, Damaged):
            with suppress(OSError):
                self.path.unlink()
        except (OSError, InputError):
            pass
        return None

    def save(self, machine: Machine, module: ModuleOp) -> None:
        """Keep a machine's program ready to run, if that is possible. The machine has not run."""
        if not is_wanted() or not self.store.program(self.key).is_file():
            return
        # A program that is ready to run needs neither the machine nor this.
        data: bytes | None = None
        # The machine runs without the file, and its tables take memory several times.
        with suppress(MemoryError):
            home = import_module("....backends.host.write_bound_program", __package__)
            data = home.bound_program_file(machine, module)
        if data is None:
            return
        with suppress(OSError):
            write_sealed(self.path, KIND, self.seal, data)
            self.store.keep_newest_runs(self.key, MOST_HOSTS)
            self.store.shrink()
