"""Objects that hold a machine, and that Python neither copies nor pickles."""

from __future__ import annotations

from typing import NoReturn

from ...ir.support.errors import InputError


class NotCopied:
    """What holds the memory of a machine, its state, and addresses that hold in this process."""

    def __reduce__(self) -> NoReturn:
        """Raise InputError. Python's copy and pickle ask here what an object consists of."""
        raise InputError(
            f"{self!r} cannot be copied or pickled: it holds the memory and the state of a "
            "machine; compile the model again, or save the program with .save(FILE) and load it "
            "with compile_model(FILE)"
        )
