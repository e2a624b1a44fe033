"""The processor that kernels are compiled for: LLVM's name of it, and its features."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, cast

from ...ir.support.errors import InputError

NAME, FEATURES = "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"
"""Numba's environment variables that select another processor than the host's."""

NEEDED = {"x86_64": ("avx2", "fma", "f16c"), "aarch64": ()}
"""By family, the features without which no kernel is compiled: LLVM would call functions that no
library has (float16), or that are many times slower than NumPy (fused multiply-add).
"""

FAMILIES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Other names of families."""


@dataclass(frozen=True)
class Processor:
    """A processor for which code can be compiled.

    Attributes:
        family: the first part of LLVM's triple.
        name: LLVM's name.
        features: in LLVM's form, such as "+avx2,-avx512f".
    """

    family: str
    name: str
    features: str

    def has(self, *features: str) -> bool:
        """Whether the processor has all of these features."""
        return {f"+{each}" for each in features} <= {*self.features.split(",")}

    def without(self, prefix: str) -> Processor:
        """The same processor without the features whose names have this prefix."""
        kept = [
            "-" + each[1:] if each.startswith("+" + prefix) else each
            for each in self.features.split(",")
        ]
        return replace(self, features=",".join(kept))

    @property
    def missing(self) -> str:
        """The reason why no kernels are compiled for it, or ""."""
        if self.family not in NEEDED:
            return f"kernels have not been tried on {self.family}"
        lacks = [each for each in NEEDED[self.family] if not self.has(each)]
        return f"the processor has no {' and no '.join(lacks)}" if lacks else ""

    @property
    def settings(self) -> dict[str, str]:
        """The environment in which numba compiles for it."""
        return {NAME: self.name, FEATURES: self.features}


@cache
def llvm() -> Any:
    """LLVM, ready to load code for this host."""
    binding = cast(Any, import_module("llvmlite.binding"))
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@cache
def host() -> Processor:
    """The processor of this host."""
    binding = llvm()
    family = str(binding.get_process_triple()).split("-")[0]
    try:
        features = str(binding.get_host_cpu_features().flatten())
    except RuntimeError:
        # LLVM cannot detect this host.
        features = ""
    return Processor(FAMILIES.get(family, family), str(binding.get_host_cpu_name()), features)


def processor() -> Processor:
    """The processor that numba's settings name, else that of this host.

    Raises InputError if the host lacks a feature that they require.
    """
    return _processor(os.environ.get(NAME), os.environ.get(FEATURES))


@cache
def _processor(name: str | None, features: str | None) -> Processor:
    own = host()
    if features is None:
        # In the way in which numba decides.
        features = "" if name == "generic" else own.features
    wanted = [each[1:] for each in features.split(",") if each.startswith("+")]
    lacks = [each for each in wanted if not own.has(each)] if own.features else []
    if lacks:
        raise InputError(
            f"{FEATURES}: this host's processor has no {', '.join(lacks)}; code with it would end "
            f"the process; unset {FEATURES}"
        )
    return replace(own, name=own.name if name in (None, "host") else name, features=features)
