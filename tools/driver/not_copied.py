"""A base class of objects that hold a machine, which Python must neither copy nor pickle."""

from __future__ import annotations

from typing import NoReturn

from ...ir.support.errors import InputError


class NotCopied:
    """An object that holds a machine's memory, its state, and addresses of this process."""

    def __reduce__(self) -> NoReturn:
        """Raise InputError. Python's copy and pickle ask here what an object consists of."""
        raise InputError(
            f"{self!r} cannot be copied or pickled: it holds the memory and the state of a "
            "machine; compile the model again, or save the program with .save(FILE) and load it "
            "with compile_model(FILE)"
        )
