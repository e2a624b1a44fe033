"""The version of a kind of file: which ones this abele reads, and what it says of all others."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import InputError

MOST = 10**18 - 1
"""No version is larger: such a number is damage."""


@dataclass(frozen=True)
class FileFormat:
    """A kind of file that says its version, a whole number from 1 on.

    Attributes:
        name: what the file says it is.
        version: the one that is written, and the newest that is read.
        renew: how to make the file again.
        gone: which abele reads version 1, version 2 and so on, for those that this one no longer
            reads.
    """

    name: str
    version: int
    renew: str
    gone: tuple[str, ...] = ()

    @property
    def oldest(self) -> int:
        """The oldest version that is read."""
        return len(self.gone) + 1

    def check(self, found: object, place: str) -> int:
        """The version that a file names, if it is one that this abele reads.

        Raises InputError for every other version, and for what is no version.

        Args:
            place: the file, for messages.
        """
        # True is an int, and 2.0 equals 2.
        if type(found) is not int or not 1 <= found <= MOST:
            shown = _shown(found)
            raise InputError(f"{place}: version {shown} of {self.name}; need {self._read()}")
        if found < self.oldest:
            raise InputError(
                f"{place}: version {found} of {self.name}, which {self.gone[found - 1]} reads; "
                f"this abele reads {self._read()}; {self.renew}"
            )
        if found > self.version:
            raise InputError(
                f"{place}: version {found} of {self.name} is of a newer abele; this one reads "
                f"{self._read()}; update abele, or {self.renew} with this one"
            )
        return found

    def _read(self) -> str:
        if self.oldest == self.version:
            return f"version {self.version}"
        return f"versions {self.oldest} to {self.version}"


def _shown(found: object) -> str:
    """A value for a message, cut to a line. Few digits of a long number are ever computed."""
    if isinstance(found, int) and abs(found) > MOST:
        return f"of {found.bit_length():,} bits"
    text = repr(found)
    return text if len(text) <= 40 else f"{text[:40]}..."
