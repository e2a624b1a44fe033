"""Settings that must hold before any test module is imported."""

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator

# Two test workers share a machine with whatever else runs there, and sums must come out the same
# everywhere: one thread each, decided before NumPy loads its BLAS.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
os.environ.setdefault("ABELE_THREADS", "1")

# glibc returns freed memory to the system, which clears it when it is asked for again. With arrays
# of megabytes that come and go, this took two fifths of the time of a large network's test.
if sys.platform == "linux":
    _mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    for _parameter in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
        if _mallopt is not None:
            _mallopt(_parameter, 1 << 28)

# Tests start many processes. Without bytecode files, each of them compiles all of abele's source.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A session holds a million objects. At Python's own threshold, a quarter of its time would go into
# looking through them for garbage.
gc.set_threshold(50_000)

# A shell lets what it starts in the background ignore Ctrl-C, and so its children. Tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Settings of this run do not apply to the runs that tests start.
os.environ.pop("PYTEST_ADDOPTS", None)

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# Times depend on what else the machine does; in CI the same examples run every time. A mistake that
# few examples show is found by make fuzz, which runs many times as many.
settings.register_profile(
    "abele",
    max_examples=50,
    deadline=None,
    print_blob=True,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("abele")

from kept_kernels import compile_once, kept_folder, kernels_of_earlier_runs  # noqa: E402
from same_examples import ignore_what_is_imported  # noqa: E402

if os.environ.get("CI"):
    ignore_what_is_imported()

pytest_plugins = ["cost_log", "skip_reasons"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--times",
        type=float,
        default=1.0,
        metavar="N",
        help="give each property N times as many examples: 0.4 in make test, 10 in make fuzz",
    )
    parser.addoption(
        "--programs",
        type=int,
        default=0,
        metavar="N",
        help="compare forms of kernels on N more generated programs, as make fuzz does",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # What collecting tests makes is no garbage: to look through it takes two fifths of the time.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # A long test that begins last keeps one worker busy while the other one waits. Files stay
    # whole, for their fixtures.
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: item.path not in slow)
    times = config.getoption("--times")
    for test in {getattr(item, "obj", None) for item in items} if times != 1 else ():
        used = getattr(test, "_hypothesis_internal_use_settings", None)
        if used is not None:
            some = settings(used, max_examples=max(1, round(times * used.max_examples)))
            test._hypothesis_internal_use_settings = some


def pytest_runtest_logfinish() -> None:
    # A command freezes the heap at its end. Here, the process goes on: garbage would never be
    # freed, and each compile would count the frozen objects, which takes a second for many.
    gc.unfreeze()


MANY = 3000
"""Tests of a run in which every worker comes to need kernels."""


@pytest.fixture(scope="session", autouse=True)
def _shared_cache(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[None]:
    """One cache of calibrated networks and of kernels per run, which all workers share.

    Calibrating a network takes up to 12 s, and compiling all kernels 50 s. A cache of earlier runs
    could hide a mistake, so only kernels are kept: see kernels_of_earlier_runs.
    """
    folder = tmp_path_factory.getbasetemp()
    # Each worker has a folder of its own below the folder of the run.
    works = bool(os.environ.get("PYTEST_XDIST_WORKER"))
    if works:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ABELE_CACHE", str(folder / "abele-cache"))
        # A program of another test could hide a mistake in compiling.
        patch.setenv("ABELE_CACHE_BYTES", "0")
        with kernels_of_earlier_runs(folder / "abele-cache", kept_folder(request.config)):
            if works and len(request.session.items) > MANY:
                compile_once(folder / "kernels.lock")
            yield
