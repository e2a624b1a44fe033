"""Chooses the form of kernels, or NumPy's calls; users may force a form.

A form is a shape of kernels: the tile of results that stays in registers, and the vectors that
they load and store. The processor that it is compiled for is separate (see processor.py): where the
processor's vectors are shorter, LLVM splits each vector. So each form runs on each host that has
kernels at all. All forms write the bytes that NumPy writes.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from ...ir.support.errors import InputError
from .processor import FEATURES, NAME, Processor, processor

VARIABLE = "ABELE_KERNELS"
"""The environment variable that forces a form."""

OLD_VARIABLE, OLD_UNTIL = "ABELE_FAST", "2027-03-01"
"""The variable that VARIABLE replaces, whose 0 means PLAIN, and the date when it is no longer
read."""

PLAIN = "plain"
"""The name that selects NumPy's calls instead of kernels."""


@dataclass(frozen=True)
class Form:
    """A shape of kernels.

    Attributes:
        rows, vectors: of the tile of results that stays in registers, its rows and the vectors of
            each row.
        row_lanes: elements of a vector that holds the rows of a panel.
        vector_bytes: of the widest vector that a block is transposed in.
        has_masks: whether part of a vector is loaded and stored under a mask.
        features: the features of processors on which it is the fastest form.
        avoids: the prefix of features that its code does not use.
    """

    name: str
    rows: int
    vectors: int
    row_lanes: int
    vector_bytes: int
    has_masks: bool
    features: tuple[str, ...] = ()
    avoids: str = ""


FORMS = {
    form.name: form
    for form in (
        Form("wide", 12, 2, 16, 64, has_masks=True, features=("avx512f",)),
        # So the form has the code of a host without AVX-512 on every host where it is forced.
        Form("narrow", 6, 1, 8, 32, has_masks=False, avoids="avx512"),
    )
}
"""The forms of kernels by name. If no variable forces a form, the first one whose features the
processor has is used.
"""


@dataclass(frozen=True)
class Choice:
    """The chosen form, its processor, and the reason. Without a form, NumPy's calls are made."""

    form: Form | None
    processor: Processor | None
    reason: str

    @property
    def name(self) -> str:
        """The name of the form."""
        return PLAIN if self.form is None else self.form.name


def is_wanted() -> bool:
    """Whether kernels are used. Raises InputError as `choice` does."""
    return choice().form is not None


def choice() -> Choice:
    """The current choice.

    Raises InputError if the environment forces a form that does not exist, or that this host cannot
    run.
    """
    old = os.environ.get(OLD_VARIABLE)
    wanted = os.environ.get(VARIABLE) or _replaced(old)
    return _choice(wanted, os.environ.get(NAME), os.environ.get(FEATURES))


@cache
def _replaced(old: str | None) -> str:
    """The value of the new variable that corresponds to the old one. Warns that it is old."""
    if old is None:
        return ""
    instead = f"set {VARIABLE}={PLAIN}" if old == "0" else f"{VARIABLE} forces a form"
    print(
        f"warning: {OLD_VARIABLE} is not read after {OLD_UNTIL}; {instead}",
        file=sys.stderr,
        flush=True,
    )
    return PLAIN if old == "0" else ""


@cache
def _choice(wanted: str, name: str | None, features: str | None) -> Choice:
    """The choice for an environment.

    Args:
        name, features: part of the cache key, because they change it.
    """
    del name, features
    if wanted == PLAIN:
        return Choice(None, None, f"{VARIABLE} says so")
    if wanted and wanted not in FORMS:
        names = ", ".join((*FORMS, PLAIN))
        raise InputError(f"{VARIABLE}: no form of kernels is called {wanted!r}; need {names}")
    found, problem = None, ""
    if find_spec("numba") is None:
        problem = "numba, which the extra `fast` installs, is missing"
    else:
        found = processor()
        problem = found.missing
    if found is None or problem:
        if wanted:
            raise InputError(
                f"{VARIABLE}: this host cannot run kernels, {wanted} or other: {problem}; unset "
                f"{VARIABLE}, or set it to {PLAIN}"
            )
        return Choice(None, None, problem)
    if wanted:
        form, reason = FORMS[wanted], f"{VARIABLE} says so"
    else:
        form = next(each for each in FORMS.values() if found.has(*each.features))
        reason = f"the processor has {form.features[0]}" if form.features else "it is for all"
    if form.avoids:
        found = found.without(form.avoids)
    return Choice(form, found, reason)
