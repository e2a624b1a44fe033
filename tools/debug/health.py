"""Whether abele works on this host: facts of the host, features in use, and failures."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ...backends.host.cores import cores
from ...backends.host.load import NoKernels, proof_of
from ...backends.host.machine_code import path_of
from ...backends.host.processor import Processor
from ...backends.host.proofs import Proof
from ...backends.host.switch import Choice, choice
from ...backends.host.tasks import NEEDS
from ...backends.host.threads import THREADS
from ...ir.support.cache_folder import cache_folder
from ...ir.support.private_folder import intrusion
from ..driver.cache.store import store_here

PACKAGES = ("abele", "numpy", "ml_dtypes", "xdsl", "onnx", "numba", "llvmlite")
"""The packages whose versions are shown."""

INSTRUCTION_SETS: Mapping[str, tuple[str, ...]] = {
    "x86_64": ("avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512fp16"),
    "aarch64": ("neon", "fullfp16", "sve", "sve2"),
}
"""The instruction sets that are shown, by family of processors."""


@dataclass(frozen=True)
class Folder:
    """A folder of the cache.

    Attributes:
        problem: the reason why abele does not use it, or "".
    """

    name: str
    path: str
    files: int
    size: int
    problem: str


@dataclass(frozen=True)
class Health:
    """Facts of a host, the features that abele uses, and the results of self-tests."""

    host: Mapping[str, str]
    form: str
    reason: str
    versions: Mapping[str, str]
    threads: int
    folders: tuple[Folder, ...]
    proofs: tuple[Proof, ...]

    @property
    def problems(self) -> list[str]:
        """The problems of the host, in words."""
        found = [f"{each.path}: {each.problem}" for each in self.folders if each.problem]
        return found + [f"kernels of {p.task}: {p.problem}" for p in self.proofs if p.problem]

    @property
    def verdict(self) -> str:
        """A line that says whether the host is fine, and with which kernels."""
        problems = self.problems
        if problems:
            more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
            return f"something is wrong with this host: {problems[0]}{more}"
        if not self.proofs:
            return f"this host is fine: plain NumPy computes everything ({self.reason})"
        cases = sum(each.cases for each in self.proofs)
        return f"this host is fine: {self.form} kernels passed {cases:,} cases of their self-test"


def health(again: bool = False) -> Health:
    """Facts and failures of this host. Compiles and proves the kernels that are not compiled or
    proved yet.

    Raises InputError if the environment asks for a feature that this host does not have.

    Args:
        again: whether kernels that have been proved are proved again.
    """
    chosen = choice()
    return Health(
        _host(chosen.processor),
        chosen.name,
        chosen.reason,
        dict(_versions()),
        THREADS.count,
        tuple(_folders(chosen)),
        tuple(_proof(task, again) for task in NEEDS) if chosen.form else (),
    )


def _host(processor: Processor | None) -> dict[str, str]:
    found = {
        "system": platform.platform(),
        "processor": _model_name() or platform.processor() or platform.machine(),
        "cores": f"{cores()} of {os.cpu_count()}",
    }
    if processor is not None:
        names = INSTRUCTION_SETS.get(processor.family, ())
        found["instruction sets"] = " ".join(name for name in names if processor.has(name))
        found["compiled for"] = f"{processor.family}, {processor.name}"
    return found


@cache
def _model_name() -> str:
    """The processor's name, as Linux has it; "" elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((each.partition(":")[2].strip() for each in lines if "model name" in each), "")


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", f"{platform.python_version()} ({sys.executable})"
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "not installed"


def _folders(chosen: Choice) -> Iterator[Folder]:
    yield _folder("programs", store_here().folder)
    yield _folder("rules", cache_folder() / "rules")
    if chosen.form is not None:
        yield _folder("kernels", path_of("sharing").parent)


def _folder(name: str, path: Path) -> Folder:
    path = path.absolute()
    problem = ""
    try:
        files = [each.stat().st_size for each in path.iterdir() if each.is_file()]
        problem = intrusion(path, "*")
    except FileNotFoundError:
        files = []
    except OSError as error:
        files, problem = [], error.strerror or type(error).__name__
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if not problem and not os.access(place, os.W_OK | os.X_OK):
        problem = "nothing can be written there"
    return Folder(name, str(path), len(files), sum(files), problem)


def _proof(task: str, again: bool) -> Proof:
    try:
        return proof_of(task, again)
    except NoKernels as problem:
        return Proof(task, problem=str(problem))
